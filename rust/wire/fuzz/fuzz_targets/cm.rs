// SPDX-License-Identifier: GPL-2.0-only

//! Messages of connection management: one that is taken can be read in full and built again, and
//! what is built is read the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::cm::{
    Message,
    ParseError,
    INFORMATION_LEN, //
};
use oxib_wire::mad;

// The tests of the crate have the same module.
#[path = "../../tests/cm_fields/mod.rs"]
mod cm_fields;

fn check(message: Message<'_>) {
    let parameters = cm_fields::read(message);
    let mut built = [0xee; mad::LEN];
    assert_eq!(parameters.build(message.header().tid(), &mut built), Ok(()));
    let again = Message::parse(&built).unwrap();
    assert_eq!(again.kind(), message.kind());
    assert_eq!(again.header().tid(), message.header().tid());
    assert_eq!(again.private_data(), message.private_data());
    assert_eq!(cm_fields::read(again), parameters);
}

fuzz_target!(|bytes: &[u8]| match Message::parse(bytes) {
    Ok(message) => {
        assert_eq!(bytes[..4], [1, 7, 2, 3]);
        assert_eq!(bytes[16..18], message.kind().get().to_be_bytes());
        assert!(bytes[..mad::LEN].ends_with(message.private_data()));
        check(message);
    }
    Err(ParseError::Mad(_)) => assert!(bytes.len() < mad::LEN || bytes[0] != 1),
    Err(ParseError::Class(class)) => assert!(class == bytes[1] && class != 7),
    Err(ParseError::ClassVersion(version)) => assert!(version == bytes[2] && version != 2),
    Err(ParseError::Method(method)) => assert!(method == bytes[3] && method != 3),
    Err(ParseError::Attribute(number)) => assert_eq!(number.to_be_bytes(), bytes[16..18]),
    Err(ParseError::Information { length, .. }) => assert!(usize::from(length) > INFORMATION_LEN),
});
