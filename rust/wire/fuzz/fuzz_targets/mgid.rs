// SPDX-License-Identifier: GPL-2.0-only

//! Multicast groups: one that is taken apart goes together again, and any GID has a group on
//! Ethernet that switches do not flood.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::gid::Gid;
use oxib_wire::mgid::Mgid;
use oxib_wire::roce;

fuzz_target!(|bytes: [u8; 16]| {
    let gid = Gid::from_bytes(bytes);
    if let Some(mgid) = Mgid::parse(&gid) {
        assert_eq!(mgid.gid(), gid);
        assert!(gid.is_multicast() && mgid.pkey.is_full_member() && mgid.pkey.is_valid());
    }
    let [a, b, c, _] = roce::group_for(&gid);
    assert!(a == 239 && (b & 0x7f, c) != (0, 0));
});
