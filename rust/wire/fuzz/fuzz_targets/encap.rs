// SPDX-License-Identifier: GPL-2.0-only

//! Encapsulation headers: a datagram that is taken is its header and the packet, nothing less.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::encap::{
    EncapError,
    Header,
    LEN, //
};

fuzz_target!(|datagram: &[u8]| match Header::parse(datagram) {
    Ok((ethertype, packet)) => {
        assert_eq!(packet.len() + LEN, datagram.len());
        assert!(datagram.ends_with(packet));
        assert_eq!(Header::new(ethertype).bytes()[..2], datagram[..2]);
    }
    Err(EncapError::Short(length)) => assert!(length == datagram.len() && length < LEN),
    Err(EncapError::EtherType(number)) => assert_eq!(number.to_be_bytes(), datagram[..2]),
});
