// SPDX-License-Identifier: GPL-2.0-only

//! Hardware addresses: 20 bytes of any value are one, and it keeps them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::hwaddr::HwAddr;

fuzz_target!(|bytes: &[u8]| match HwAddr::from_slice(bytes) {
    Ok(address) => {
        assert_eq!(address.as_bytes(), bytes);
        let rebuilt = HwAddr::new(address.qpn(), address.gid()).with_flags(address.flags());
        assert_eq!(rebuilt, address);
        assert_eq!(address.to_string().len(), 20 * 3 - 1);
    }
    Err(error) => assert!(error.length == bytes.len() && error.length != HwAddr::LEN),
});
