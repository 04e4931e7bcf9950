// SPDX-License-Identifier: GPL-2.0-only

//! The command `oxib acm show`.

use crate::{
    entry::Entry,
    error::{
        Error,
        Result, //
    },
    filter::Filter,
    netlink::{
        attribute::{
            Attributes,
            Request, //
        },
        connection::Connection,
        family::{
            self,
            entry as attribute,
            operation, //
        },
    },
    output::{
        self,
        Output, //
    },
};
use rustix::io::Errno;
use std::net::IpAddr;

/// Lists entries in the order of their addresses.
pub fn run(words: &[String], out: Output) -> Result {
    let filter = Filter::parse(words)?;
    let mut connection = Connection::open()?;
    let entries = match filter.single_address() {
        Some(address) => find(&mut connection, address)?.into_iter().collect(),
        None => {
            let (entries, consistent) = dump(&mut connection, &filter)?;
            if !consistent {
                output::report(
                    "note: the cache was changed meanwhile: some of the changes are in the list",
                );
            }
            entries
        }
    };
    out.print_list(&entries)
}

/// Looks an entry up as packets do.
fn find(connection: &mut Connection, address: IpAddr) -> Result<Option<Entry>> {
    let request = Request::new().address(attribute::ADDRESS, address);
    match connection.request(operation::ENTRY_GET, &request, family::ENTRY_NAMES) {
        Ok(answer) => Entry::read(Attributes::new(&answer.attributes)).map(Some),
        Err(Error::Refused(refusal)) if refusal.has_errno(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the entries that a filter matches, in the order of their addresses, and whether the dump
/// is consistent (see [`Connection::dump`]).
pub fn dump(connection: &mut Connection, filter: &Filter) -> Result<(Vec<Entry>, bool)> {
    let mut entries = Vec::new();
    let consistent = connection.dump(
        operation::ENTRY_GET,
        &filter.request(),
        family::ENTRY_NAMES,
        |attributes| {
            entries.push(Entry::read(attributes)?);
            Ok(())
        },
    )?;
    entries.sort_unstable_by_key(|entry| entry.address);
    entries.dedup_by_key(|entry| entry.address);
    Ok((entries, consistent))
}
