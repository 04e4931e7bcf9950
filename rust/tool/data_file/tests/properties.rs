// SPDX-License-Identifier: GPL-2.0-only

//! The properties that hold for every file.

use oxib_data_file::{
    line::{
        parse,
        parse_gid, //
    },
    resolver::{
        LookupResult,
        Resolver, //
    },
    Entry,
    FileSet, //
};
use oxib_wire::{
    acm::entry::check_address,
    gid::Gid, //
};
use proptest::prelude::*;
use std::{
    collections::BTreeMap,
    fmt::Write,
    net::{
        IpAddr,
        Ipv6Addr, //
    }, //
};

/// A resolver that knows no name.
struct NoNames;

impl Resolver for NoNames {
    fn look_up(&self, _name: &str) -> LookupResult {
        Err("unknown".to_owned())
    }
}

/// Generates any address that can be in the cache.
fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 16]>().prop_map(IpAddr::from)
    ]
    .prop_map(|address| address.to_canonical())
    .prop_filter("an address of a node", |address| {
        check_address(*address).is_ok()
    })
}

/// Generates any GID that a port can have.
fn gid() -> impl Strategy<Value = Gid> {
    any::<[u8; 16]>()
        .prop_filter("a GID of a port", |bytes| {
            parse_gid(&Ipv6Addr::from(*bytes).to_string()).is_ok()
        })
        .prop_map(Gid::from_bytes)
}

/// Generates any entry that a line can give.
fn entry() -> impl Strategy<Value = Entry> {
    let qpn = proptest::option::of(2..=0xff_ffff_u32);
    let pkey = proptest::option::of(any::<u16>().prop_filter("a P_Key", |key| key & 0x7fff != 0));
    (address(), gid(), qpn, pkey, any::<u32>()).prop_map(|(address, gid, qpn, pkey, lifetime)| {
        Entry {
            address,
            gid,
            qpn,
            pkey,
            lifetime,
        }
    })
}

/// Parses a set of one file.
fn read(text: &[u8]) -> Result<Vec<Entry>, Vec<String>> {
    let mut files = FileSet::new();
    files.add("f", text, |_| {});
    files
        .finish(&NoNames, || {})
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// Writes entries as the lines of a file.
fn lines(entries: &[Entry]) -> String {
    let mut text = String::new();
    for each in entries {
        writeln!(text, "{each}").expect("strings take all");
    }
    text
}

proptest! {
    #[test]
    fn entries_are_read_as_they_were_written(entries in proptest::collection::vec(entry(), 0..50)) {
        let by_address: BTreeMap<IpAddr, Entry> =
            entries.into_iter().map(|each| (each.address, each)).collect();
        let entries: Vec<Entry> = by_address.into_values().collect();
        let text = lines(&entries);
        prop_assert_eq!(read(text.as_bytes()), Ok(entries));
    }

    #[test]
    fn a_repeated_line_is_found(
        entries in proptest::collection::vec(entry(), 1..20),
        at in any::<prop::sample::Index>(),
    ) {
        let by_address: BTreeMap<IpAddr, Entry> =
            entries.into_iter().map(|each| (each.address, each)).collect();
        let mut entries: Vec<Entry> = by_address.into_values().collect();
        let number = at.index(entries.len());
        let again = entries[number];
        entries.push(again);
        let text = lines(&entries);
        let (lines, address) = (entries.len(), again.address);
        let wanted = format!("f:{lines}: {address} is there already: f:{}", number + 1);
        prop_assert_eq!(read(text.as_bytes()), Err(vec![wanted]));
    }

    #[test]
    fn no_bytes_make_it_panic(text in proptest::collection::vec(any::<u8>(), 0..500)) {
        let lines = text.split(|byte| *byte == b'\n').count();
        match read(&text) {
            Ok(entries) => prop_assert!(entries.len() <= lines),
            Err(errors) => prop_assert!(errors.len() <= lines),
        }
    }

    #[test]
    fn words_in_any_order_are_read_or_refused(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "10.0.0.1", "fd00::1", "n1", "fec0::1", "ff12::1", "qpn", "pkey", "lifetime", "5",
                "0x8001", "0", "#", "\t",
            ]),
            0..10,
        ),
    ) {
        let line = words.join(" ");
        if let Ok(Some(statement)) = parse(line.as_bytes()) {
            prop_assert!(statement.qpn.is_none_or(|qpn| qpn > 1));
            prop_assert!(statement.pkey.is_none_or(|pkey| pkey & 0x7fff != 0));
        }
    }
}
