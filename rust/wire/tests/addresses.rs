// SPDX-License-Identifier: GPL-2.0-only

//! Properties of the address types, with the standard library's addresses as the judge where it
//! has an opinion.

use oxib_wire::gid::Gid;
use oxib_wire::hwaddr::{
    AddrError,
    HwAddr, //
};
use oxib_wire::pkey::Pkey;
use oxib_wire::qpn::Qpn;
use proptest::prelude::*;
use std::net::{
    Ipv4Addr,
    Ipv6Addr, //
};

/// GIDs of every class; bytes at random would hardly ever be other than plain unicast.
fn gid() -> impl Strategy<Value = [u8; 16]> {
    prop_oneof![
        any::<[u8; 16]>(),
        any::<[u8; 4]>().prop_map(|ipv4| Gid::from_ipv4(ipv4).bytes()),
        any::<[u8; 8]>().prop_map(|guid| {
            let mut bytes = [0; 16];
            bytes[..2].copy_from_slice(&[0xfe, 0x80]);
            bytes[8..].copy_from_slice(&guid);
            bytes
        }),
        any::<[u8; 15]>().prop_map(|rest| {
            let mut bytes = [0xff; 16];
            bytes[1..].copy_from_slice(&rest);
            bytes
        }),
        // A zero GID but for a few bits anywhere.
        (0..128_u32, 0..128_u32)
            .prop_map(|(one, other)| ((1_u128 << one) | (1 << other)).to_be_bytes()),
    ]
}

proptest! {
    #[test]
    fn gid_is_what_the_ipv6_address_is(bytes in gid()) {
        let (gid, judge) = (Gid::from_bytes(bytes), Ipv6Addr::from(bytes));
        let mapped = judge.to_ipv4_mapped();
        prop_assert_eq!(gid.ipv4(), mapped.map(|ipv4| ipv4.octets()));
        prop_assert_eq!(
            gid.is_multicast(),
            judge.is_multicast() || mapped.is_some_and(|ipv4| ipv4.is_multicast())
        );
        prop_assert_eq!(gid.is_link_local(), judge.segments()[..4] == [0xfe80, 0, 0, 0]);
        prop_assert_eq!(
            gid.is_routable(),
            !judge.is_unspecified()
                && !judge.is_loopback()
                && !gid.is_multicast()
                && !gid.is_link_local()
        );
    }

    #[test]
    fn gid_text_is_an_ipv6_address(bytes in gid()) {
        let text = Gid::from_bytes(bytes).to_string();
        prop_assert_eq!(text.len(), 39);
        prop_assert_eq!(text.parse::<Ipv6Addr>().ok(), Some(Ipv6Addr::from(bytes)));
    }

    #[test]
    fn gids_are_ordered_like_numbers(one in gid(), other in gid()) {
        prop_assert_eq!(
            Gid::from_bytes(one).cmp(&Gid::from_bytes(other)),
            u128::from_be_bytes(one).cmp(&u128::from_be_bytes(other))
        );
    }

    #[test]
    fn mapped_gid_gives_the_address_back(ipv4: [u8; 4]) {
        let gid = Gid::from_ipv4(ipv4);
        prop_assert_eq!(gid.ipv4(), Some(ipv4));
        prop_assert_eq!(Ipv6Addr::from(gid.bytes()), Ipv4Addr::from(ipv4).to_ipv6_mapped());
    }

    #[test]
    fn qpn_takes_24_bits(number in prop_oneof![any::<u32>(), 0..=0x01ff_ffff_u32]) {
        let qpn = Qpn::new(number);
        prop_assert_eq!(qpn.is_some(), number < 1 << 24);
        if let Some(qpn) = qpn {
            prop_assert_eq!(qpn.get(), number);
            prop_assert_eq!(Qpn::from_bytes(qpn.bytes()), qpn);
            prop_assert!(number.to_be_bytes().ends_with(&qpn.bytes()));
        }
    }

    #[test]
    fn keys_match_both_ways_and_only_within_a_partition(
        base in 0..0x8000_u16,
        other in 0..0x8000_u16,
        full: [bool; 2],
    ) {
        let membership = full.map(|full| u16::from(full) << 15);
        let one = Pkey::new(base | membership[0]);
        let same = Pkey::new(base | membership[1]);
        prop_assert_eq!(one.matches(same), base != 0 && full != [false, false]);
        let other = Pkey::new(other | membership[1]);
        prop_assert_eq!(one.matches(other), other.matches(one));
        prop_assert!(!one.matches(other) || one.base() == other.base());
    }

    #[test]
    fn hardware_address_keeps_its_bytes(bytes: [u8; 20]) {
        let address = HwAddr::from_slice(&bytes).unwrap();
        prop_assert_eq!(address.as_bytes(), &bytes);
        prop_assert_eq!(
            HwAddr::new(address.qpn(), address.gid()).with_flags(address.flags()),
            address
        );
        prop_assert_eq!(address.flags(), bytes[0]);
        prop_assert!(bytes[1..].starts_with(&address.qpn().bytes()));
        prop_assert!(bytes.ends_with(&address.gid().bytes()));
        let parsed: Vec<u8> = address
            .to_string()
            .split(':')
            .map(|pair| u8::from_str_radix(pair, 16).unwrap())
            .collect();
        prop_assert_eq!(parsed, bytes);
    }

    #[test]
    fn hardware_address_has_20_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let parsed = HwAddr::from_slice(&bytes);
        if bytes.len() == 20 {
            prop_assert!(parsed.is_ok());
        } else {
            prop_assert_eq!(parsed, Err(AddrError { length: bytes.len() }));
        }
    }
}
