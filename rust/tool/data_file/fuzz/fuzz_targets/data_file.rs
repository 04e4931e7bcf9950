// SPDX-License-Identifier: GPL-2.0-only

//! Files of the address cache: what is taken is read again as it was written, and what is wrong is
//! told with a line that the file has.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_data_file::{
    resolve::{
        Answer,
        Resolver, //
    },
    Reading, //
};
use std::{
    collections::BTreeSet,
    net::Ipv4Addr, //
};

/// Knows names of up to three letters.
struct Few;

impl Resolver for Few {
    fn look_up(&self, name: &str) -> Answer {
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
    // Two files, so that places are in either.
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let mut reading = Reading::new();
    let mut read = 0;
    reading.add("a", first, |more| read += more);
    reading.add("b", second, |more| read += more);
    assert_eq!(read, bytes.len());
    match reading.finish(&Few, || {}) {
        Ok(entries) => {
            let addresses: BTreeSet<_> = entries.iter().map(|entry| entry.address).collect();
            assert_eq!(addresses.len(), entries.len());
            let text: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
            let mut again = Reading::new();
            again.add("c", text.as_bytes(), |_| {});
            assert_eq!(again.finish(&Few, || {}), Ok(entries));
        }
        Err(complaints) => {
            assert!(!complaints.is_empty());
            for complaint in complaints {
                let text = if complaint.file == "a" { first } else { second };
                let lines = text.split(|byte| *byte == b'\n').count();
                assert!((1..=lines).contains(&(complaint.line.unwrap() as usize)));
                assert!(!complaint.text.contains('\n'));
            }
        }
    }
});
