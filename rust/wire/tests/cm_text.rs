// SPDX-License-Identifier: GPL-2.0-only

//! The text of the messages of connection management, of their reasons and of their errors.

use oxib_wire::cm::build::BuildError;
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::kind::Kind;
use oxib_wire::cm::reason::Reason;
use oxib_wire::cm::service_id::ServiceId;
use oxib_wire::cm::timeout::Timeout;
use oxib_wire::cm::{
    apr,
    sidr_rep,
    ParseError, //
};
use oxib_wire::lid::Lid;
use oxib_wire::mad::MadError;
use oxib_wire::psn::Psn;
use std::collections::HashSet;
use std::error::Error;

#[test]
fn kinds_read_as_in_the_specification() {
    let names: Vec<String> = Kind::ALL.iter().map(Kind::to_string).collect();
    let wanted = [
        "REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR",
    ];
    assert_eq!(names, wanted);
}

#[test]
fn numbers() {
    assert_eq!(CommId::new(0x0a1b).to_string(), "0x00000a1b");
    assert_eq!(
        ServiceId::RDMA_IP_CM.to_string(),
        format!("{:?}", ServiceId::RDMA_IP_CM)
    );
    assert_eq!(ServiceId::RDMA_IP_CM.to_string(), "0x0000000001000000");
    assert_eq!(Timeout::saturating(20).to_string(), "4295 ms");
    assert_eq!(format!("{:?}", Timeout::saturating(20)), "4.096 µs × 2^20");
    assert_eq!(Lid::new(17).to_string(), "17");
    assert_eq!(format!("{:?}", Lid::PERMISSIVE), "0xffff");
    assert_eq!(format!("{:?}", Psn::wrapping(0x123)), "0x000123");
}

#[test]
fn every_reason_has_its_own_words() {
    let named = |number: &u16| Reason::new(*number).text().is_some();
    let numbers: Vec<u16> = (0..=u16::MAX).filter(named).collect();
    assert_eq!(numbers, [&(1..=33).collect::<Vec<_>>()[..], &[35]].concat());
    let texts: HashSet<String> = numbers
        .iter()
        .map(|number| Reason::new(*number).to_string())
        .collect();
    assert_eq!(texts.len(), numbers.len());
    assert_eq!(Reason::STALE_CONNECTION.to_string(), "stale connection");
    assert_eq!(
        format!("{:?}", Reason::STALE_CONNECTION),
        "10 (stale connection)"
    );
    assert_eq!(Reason::new(34).to_string(), "reason 34");
    assert_eq!(Reason::new(0xffff).to_string(), "reason 65535");
}

#[test]
fn every_status_has_its_own_words() {
    let texts = |named: u8, text: fn(u8) -> String| {
        let texts: HashSet<String> = (0..named).map(text).collect();
        assert_eq!(texts.len(), usize::from(named));
        assert!(texts.iter().all(|text| !text.starts_with("status ")));
        assert_eq!(text(named), format!("status {named}"));
    };
    texts(14, |number| apr::Status::new(number).to_string());
    texts(6, |number| sidr_rep::Status::new(number).to_string());
}

#[test]
fn errors() {
    let table: [(&dyn Error, &str); 9] = [
        (
            &MadError::Short(24),
            "management datagram of 24 bytes, not 256",
        ),
        (
            &ParseError::Mad(MadError::BaseVersion(0x80)),
            "management datagram of base version 128, not 1",
        ),
        (
            &ParseError::Class(0x03),
            "management class 0x03 is not communication management",
        ),
        (
            &ParseError::ClassVersion(1),
            "communication management of version 1, not 2",
        ),
        (
            &ParseError::Method(0x83),
            "communication management has no method 0x83",
        ),
        (
            &ParseError::Attribute(0x1b),
            "communication management has no message 0x001b",
        ),
        (
            &ParseError::Information {
                kind: Kind::Rej,
                length: 73,
            },
            "REJ with 73 bytes of additional information, where it has 72",
        ),
        (
            &BuildError::PrivateData {
                kind: Kind::Req,
                length: 93,
            },
            "93 bytes of private data, where a REQ has room for 92",
        ),
        (
            &BuildError::Information {
                kind: Kind::SidrRep,
                length: 300,
            },
            "300 bytes of additional information, where a SIDR_REP has room for 72",
        ),
    ];
    for (error, text) in table {
        assert_eq!(error.to_string(), text);
    }
}
