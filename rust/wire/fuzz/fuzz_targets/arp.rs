// SPDX-License-Identifier: GPL-2.0-only

//! ARP packets: one that is taken is a prefix of the input, of the right kind, and what replies to
//! it is taken too.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::arp::{
    ArpError,
    Operation,
    Packet,
    LEN, //
};

fuzz_target!(|bytes: &[u8]| match Packet::parse(bytes) {
    Ok((operation, packet)) => {
        assert!(bytes.starts_with(&packet.bytes()));
        assert!(bytes.starts_with(&[0, 32, 8, 0, 20, 4, 0, operation.get() as u8]));
        let reply = Packet::reply(packet.target(), packet.sender());
        assert_eq!(
            Packet::parse(&reply.bytes()),
            Ok((Operation::Reply, &reply))
        );
    }
    Err(ArpError::Short(length)) => assert!(length == bytes.len() && length < LEN),
    Err(_) => assert!(bytes.len() >= LEN),
});
