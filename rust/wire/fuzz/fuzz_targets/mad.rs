// SPDX-License-Identifier: GPL-2.0-only

//! Management datagrams: one that is taken is its header and its data, and the header is built
//! again but for what a request leaves zero.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::mad::{
    Header,
    Mad,
    MadError,
    Subject,
    HEADER_LEN,
    LEN, //
};

fuzz_target!(|bytes: &[u8]| match Mad::parse(bytes) {
    Ok(mad) => {
        assert_eq!(bytes[0], 1);
        assert_eq!(bytes[HEADER_LEN..LEN], mad.data()[..]);
        let header = mad.header();
        let status = [header.status(), header.class_specific()].map(u16::to_be_bytes);
        assert_eq!(bytes[4..8], status.concat());
        let mut built = *mad;
        *built.header_mut() = Header::new(Subject {
            class: header.class(),
            class_version: header.class_version(),
            method: header.method(),
            tid: header.tid(),
            attribute: header.attribute(),
            modifier: header.modifier(),
        });
        let built: [u8; LEN] = built.bytes();
        assert_eq!(built[..4], bytes[..4]);
        assert_eq!(built[4..8], [0; 4]);
        assert_eq!(built[8..18], bytes[8..18]);
        assert_eq!(built[18..20], [0; 2]);
        assert_eq!(built[20..], bytes[20..LEN]);
    }
    Err(MadError::Short(length)) => assert!(length == bytes.len() && length < LEN),
    Err(MadError::BaseVersion(version)) => assert!(version == bytes[0] && version != 1),
});
