// SPDX-License-Identifier: GPL-2.0-only

//! Options of neighbour discovery: an address that is found stands in the input as an option of
//! its kind, and putting that option first finds it whatever follows.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::nd;
use oxib_wire::nd::{
    Kind,
    LinkLayerOption,
    NdError, //
};

fn check(options: &[u8], kind: Kind) {
    match nd::find(options, kind) {
        Ok(Some(address)) => {
            let built = LinkLayerOption::new(kind, address).bytes();
            let stands = |option: &[u8]| option[..2] == built[..2] && option[4..] == built[4..];
            assert!(options.windows(nd::LEN).step_by(8).any(stands));
            let first = [&built[..], options].concat();
            assert_eq!(nd::find(&first, kind), Ok(Some(address)));
        }
        Ok(None) => assert_eq!(options.len() % 8, 0),
        Err(NdError::Short(number) | NdError::ZeroLength(number)) => {
            assert!(options.iter().step_by(8).any(|byte| *byte == number));
        }
        Err(NdError::AddressLength(units)) => assert_ne!(units, 3),
    }
}

fuzz_target!(|options: &[u8]| {
    check(options, Kind::Source);
    check(options, Kind::Target);
});
