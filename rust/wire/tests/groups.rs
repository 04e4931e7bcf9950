// SPDX-License-Identifier: GPL-2.0-only

//! Properties of the multicast groups: the mapping of IP groups to MGIDs, and of these to the
//! groups that carry them on the Ethernet side of a RoCE port.

use oxib_wire::gid::Gid;
use oxib_wire::mgid;
use oxib_wire::mgid::{
    Mgid,
    MgidKind,
    Scope, //
};
use oxib_wire::pkey::Pkey;
use oxib_wire::roce;
use proptest::prelude::*;
use std::collections::HashSet;
use std::net::Ipv4Addr;

fn scope() -> impl Strategy<Value = Scope> {
    prop::sample::select(vec![
        Scope::LinkLocal,
        Scope::SiteLocal,
        Scope::OrganizationLocal,
        Scope::Global,
    ])
}

fn pkey() -> impl Strategy<Value = Pkey> {
    any::<u16>()
        .prop_map(Pkey::new)
        .prop_filter("names no partition", |pkey| pkey.is_valid())
}

/// Bytes that are an IPoIB MGID but for one byte, sometimes.
fn almost_mgid() -> impl Strategy<Value = [u8; 16]> {
    let signature = prop::sample::select(vec![0x40, 0x60]);
    let high = prop::sample::select(vec![0, 0xff]);
    (
        signature,
        scope(),
        pkey(),
        high,
        any::<[u8; 4]>(),
        0..16_usize,
        any::<u8>(),
    )
        .prop_map(|(signature, scope, pkey, high, low, index, value)| {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&[0xff, 0x10 | scope.get(), signature, 0x1b]);
            bytes[4..6].copy_from_slice(&pkey.full().bytes());
            bytes[12..].copy_from_slice(&low.map(|byte| byte | high));
            bytes[index] = value;
            bytes
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn ipv4_group_comes_back(id in 0..1_u32 << 28, pkey in pkey(), scope in scope()) {
        let group = (0xe000_0000 | id).to_be_bytes();
        let gid = mgid::ipv4(group, pkey, scope);
        let parsed = Mgid { kind: MgidKind::Ipv4(group), pkey: pkey.full(), scope };
        prop_assert_eq!(Mgid::parse(&gid), Some(parsed));
        prop_assert_eq!(parsed.gid(), gid);
        prop_assert!(gid.is_multicast());
        prop_assert_ne!(gid, mgid::broadcast(pkey, scope));
    }

    #[test]
    fn ipv6_group_comes_back(group: [u8; 16], pkey in pkey(), scope in scope()) {
        let gid = mgid::ipv6(group, pkey, scope);
        let Some(Mgid { kind: MgidKind::Ipv6(id), pkey: parsed_pkey, scope: parsed_scope }) =
            Mgid::parse(&gid)
        else {
            return Err(TestCaseError::fail("not an IPv6 group"));
        };
        prop_assert_eq!(&id[..], &group[6..]);
        prop_assert_eq!((parsed_pkey, parsed_scope), (pkey.full(), scope));
    }

    #[test]
    fn what_is_taken_apart_goes_together_again(
        bytes in prop_oneof![any::<[u8; 16]>(), almost_mgid()],
    ) {
        let gid = Gid::from_bytes(bytes);
        if let Some(parsed) = Mgid::parse(&gid) {
            prop_assert_eq!(parsed.gid(), gid);
        }
        prop_assert_eq!(mgid::classify(&gid), Mgid::parse(&gid).map(|parsed| parsed.kind));
    }

    #[test]
    fn ethernet_group_is_in_its_range(bytes in prop_oneof![any::<[u8; 16]>(), almost_mgid()]) {
        let group = roce::group_for(&Gid::from_bytes(bytes));
        prop_assert_eq!(group[0], 239);
        prop_assert_eq!(group[1] & 0xc0, 64);
        prop_assert!(Ipv4Addr::from(group).is_multicast());
        // The Ethernet address must not be one that switches flood: 01:00:5e:00:00:xx.
        prop_assert_ne!((group[1] & 0x7f, group[2]), (0, 0));
        prop_assert_eq!(
            roce::group_gid(&Gid::from_bytes(bytes)).ipv4(),
            Some(group)
        );
    }
}

/// Counts the MGIDs that share their Ethernet group with an earlier one.
fn collisions(mgids: impl Iterator<Item = Gid>) -> usize {
    let (mut seen, mut collided) = (HashSet::new(), 0);
    for mgid in mgids {
        if !seen.insert(roce::group_for(&mgid)) {
            collided += 1;
        }
    }
    collided
}

/// The hash must spread MGIDs that differ in few bits about as well as chance would: of 65536
/// thrown into 2^22 places, chance lets about 510 share one.
#[test]
fn ethernet_groups_spread() {
    let (pkey, scope) = (Pkey::DEFAULT, Scope::LinkLocal);
    let numbers = || 0..=u16::MAX;
    let solicited = |number: u16| {
        let [high, low] = number.to_be_bytes();
        [
            0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0x0f, high, low,
        ]
    };
    let families: [(&str, usize); 3] = [
        (
            "IPv4 groups in sequence",
            collisions(numbers().map(|number| {
                let [high, low] = number.to_be_bytes();
                mgid::ipv4([239, 1, high, low], pkey, scope)
            })),
        ),
        (
            "solicited-node groups in sequence",
            collisions(numbers().map(|number| mgid::ipv6(solicited(number), pkey, scope))),
        ),
        (
            "broadcast groups of all partitions",
            collisions((1..0x8000).map(|base| mgid::broadcast(Pkey::new(base), scope))),
        ),
    ];
    for (family, collided) in families {
        assert!(collided < 1024, "{family}: {collided} share a group");
    }
}
