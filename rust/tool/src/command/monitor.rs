// SPDX-License-Identifier: GPL-2.0-only

//! The command `oxib acm monitor`.

use crate::{
    entry::Entry,
    error::Result,
    netlink::connection::{
        Connection,
        Event, //
    },
    output::Output,
};
use serde::Serialize;

/// An event in JSON.
#[derive(Serialize)]
struct JsonEvent<'a> {
    /// new, del or lost.
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<&'a Entry>,
}

/// Prints changes until it is interrupted or oxib is unloaded. As JSON, each line is one value.
pub fn run(mut out: Output) -> Result {
    let mut connection = Connection::open()?;
    connection.listen()?;
    loop {
        connection.next_events(|event, attributes| {
            let (name, before) = match event {
                Event::New => ("new", ""),
                Event::Del => ("del", "Deleted "),
                Event::Lost => {
                    let lost = JsonEvent {
                        event: "lost",
                        entry: None,
                    };
                    return out.print_value(
                        &lost,
                        "Lost: changes were missed; `oxib acm show` lists the entries",
                    );
                }
            };
            let entry = Entry::read(attributes)?;
            let json = JsonEvent {
                event: name,
                entry: Some(&entry),
            };
            out.print_value(&json, &format!("{before}{entry}"))
        })?;
    }
}
