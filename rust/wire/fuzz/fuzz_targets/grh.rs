// SPDX-License-Identifier: GPL-2.0-only

//! Route headers by any network: addresses that are taken are those of the right header.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::gid::Gid;
use oxib_wire::grh;
use oxib_wire::grh::{
    Grh,
    NetworkType, //
};

const NETWORKS: [NetworkType; 4] = [
    NetworkType::Infiniband,
    NetworkType::RoceV1,
    NetworkType::Ipv4,
    NetworkType::Ipv6,
];

fn check(bytes: &[u8; grh::LEN], network: NetworkType) {
    let Ok(addresses) = grh::parse(bytes, network) else {
        return;
    };
    assert!(!addresses.sgid.is_multicast());
    if network == NetworkType::Ipv4 {
        assert_eq!((bytes[20], bytes[29]), (0x45, 17));
        assert_eq!(addresses.sgid.ipv4().as_ref(), bytes[32..].first_chunk());
        assert_eq!(addresses.dgid, Gid::from_ipv4(*bytes.last_chunk().unwrap()));
    } else {
        let grh = Grh::from_bytes(bytes);
        assert_eq!(grh.addresses(), addresses);
        assert_eq!(Grh::new(grh.route(), addresses).bytes(), *bytes);
    }
}

fuzz_target!(|bytes: &[u8]| if let Some(bytes) = bytes.first_chunk() {
    for network in NETWORKS {
        check(bytes, network);
    }
});
