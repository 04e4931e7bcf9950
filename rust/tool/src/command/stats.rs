// SPDX-License-Identifier: GPL-2.0-only

//! The command `oxib acm stats`.

use crate::{
    error::Result,
    netlink::{
        attribute::{
            Attributes,
            Request, //
        },
        connection::Connection,
        family::{
            operation,
            STATISTICS, //
        },
    },
    output::Output,
};
use serde_json::{
    Map,
    Value, //
};
use std::fmt::Write;

/// Shows the kernel's counters.
pub fn run(mut out: Output) -> Result {
    let answer = Connection::open()?.request(operation::STATS_GET, &Request::new(), &[])?;
    let (values, text) = format_counters(Attributes::new(&answer.attributes))?;
    out.print_value(&Value::Object(values), &text)
}

/// Formats the counters that the kernel has, as JSON and as text.
fn format_counters(attributes: Attributes<'_>) -> Result<(Map<String, Value>, String)> {
    let mut values = Map::new();
    let mut text = String::new();
    for (number, name) in STATISTICS {
        if let Some(value) = attributes.u64(*number)? {
            values.insert(name.replace('-', "_"), value.into());
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name:<18} {value}");
        }
    }
    Ok((values, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_counters_are_shown() {
        let bytes = Request::new()
            .bytes(1, 5_u64.to_ne_bytes().to_vec())
            .bytes(27, Vec::new())
            .bytes(16, u64::MAX.to_ne_bytes().to_vec())
            .bytes(99, 1_u64.to_ne_bytes().to_vec())
            .emitted();
        let (values, text) = format_counters(Attributes::new(&bytes)).unwrap();
        assert_eq!(
            text,
            "entries            5\nsidr-timeouts      18446744073709551615\n"
        );
        assert_eq!(values.len(), 2);
        assert_eq!(values["sidr_timeouts"], u64::MAX);
    }
}
