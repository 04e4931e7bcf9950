// SPDX-License-Identifier: GPL-2.0-only

//! Requests of the netlink family: attributes of any form. What is taken is within its bounds,
//! and an entry that was taken makes a record that is taken as the same entry; what is refused
//! names an attribute of the message, or one that it lacks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::acm::{
    entry::{
        from_key,
        to_key, //
    },
    family::load,
    record::Record,
    request::{
        self,
        At,
        Refusal, //
    }, //
};
use oxib_wire::netlink::Attributes;

fn check(bytes: &[u8], refusal: Refusal) {
    assert!(!refusal.why.to_string().is_empty());
    match refusal.at {
        At::Offset(offset) => assert!(Attributes::new(bytes).any(|one| one.offset == offset)),
        At::Missing(number) => assert!(Attributes::new(bytes).get(number).is_none()),
    }
}

fn check_record(record: &Record) {
    let Ok(entry) = record.entry() else {
        return;
    };
    assert_eq!(from_key(to_key(entry.address)), entry.address);
    assert_eq!(Record::new(&entry).entry(), Ok(entry));
}

fuzz_target!(|bytes: &[u8]| {
    let attributes = Attributes::new(bytes);
    for one in attributes.clone() {
        let end = one.offset + 4 + one.value.len();
        assert_eq!(&bytes[one.offset + 4..end], one.value);
    }
    match request::parse_entry(&attributes) {
        Ok(entry) => {
            assert!(!entry.gid.is_multicast() && !entry.gid.is_zero());
            assert!(entry.qpn.is_none_or(|qpn| qpn.get() > 1));
            assert_eq!(Record::new(&entry).entry(), Ok(entry));
            assert_eq!(request::parse_subject(&attributes), Ok(entry.address));
        }
        Err(refusal) => check(bytes, refusal),
    }
    match request::parse_filter(&attributes) {
        Ok(filter) => {
            if let Ok(address) = request::parse_subject(&attributes) {
                assert!(filter
                    .network
                    .is_some_and(|network| network.contains(address)));
            }
        }
        Err(refusal) => check(bytes, refusal),
    }
    if let Err(refusal) = request::parse_resolution(&attributes) {
        check(bytes, refusal);
    }
    match request::parse_destination(&attributes) {
        Ok((_, gid)) => assert!(!gid.is_zero() && !gid.is_multicast()),
        Err(refusal) => check(bytes, refusal),
    }
    match request::parse_part(&attributes) {
        Ok(part) => {
            assert!(part.records.len() <= load::MOST);
            part.records.iter().for_each(check_record);
        }
        Err(refusal) => check(bytes, refusal),
    }
    if let Some(records) = Record::all(bytes) {
        assert_eq!(records.len() * Record::LEN, bytes.len());
        records.iter().for_each(check_record);
    }
});
