// SPDX-License-Identifier: GPL-2.0-only

//! Files of the address cache: entries are the same after they were written and parsed again, and
//! errors are reported with a line that the file has.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_data_file::{
    resolver::{
        LookupResult,
        Resolver, //
    },
    FileSet, //
};
use std::{
    collections::BTreeSet,
    net::Ipv4Addr, //
};

/// A resolver that knows names of up to three letters; those of three have no address.
struct ShortNames;

impl Resolver for ShortNames {
    fn look_up(&self, name: &str) -> LookupResult {
        match *name.as_bytes() {
            [a] => Ok(vec![Ipv4Addr::new(10, 0, 0, a).into()]),
            [a, b] => Ok(vec![
                Ipv4Addr::new(10, 0, 0, a).into(),
                Ipv4Addr::new(10, 0, 1, b).into(),
            ]),
            [_, _, _] => Ok(Vec::new()),
            _ => Err("unknown".to_owned()),
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    // Two files, so that there are locations in either.
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let mut files = FileSet::new();
    let mut read = 0;
    files.add("a", first, |more| read += more);
    files.add("b", second, |more| read += more);
    assert_eq!(read, bytes.len());
    match files.finish(&ShortNames, || {}) {
        Ok(entries) => {
            let addresses: BTreeSet<_> = entries.iter().map(|entry| entry.address).collect();
            assert_eq!(addresses.len(), entries.len());
            let text: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
            let mut again = FileSet::new();
            again.add("c", text.as_bytes(), |_| {});
            assert_eq!(again.finish(&ShortNames, || {}), Ok(entries));
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                let text = if error.file == "a" { first } else { second };
                let lines = text.split(|byte| *byte == b'\n').count();
                assert!((1..=lines).contains(&(error.line.unwrap() as usize)));
                assert!(!error.text.contains('\n'));
            }
        }
    }
});
