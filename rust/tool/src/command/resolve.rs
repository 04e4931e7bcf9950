// SPDX-License-Identifier: GPL-2.0-only

//! The command `oxib acm resolve`.

use crate::{
    command::interface,
    error::{
        Error,
        Result, //
    },
    netlink::{
        attribute::{
            Attributes,
            Request, //
        },
        connection::Connection,
        family::{
            self,
            operation,
            resolution as attribute, //
        },
    },
    output::{
        self,
        Output, //
    },
    resolution::Resolution,
    words,
};

/// Resolves an address and shows each step. Fails if a step failed.
pub fn run(address: &str, words: &[String], out: Output) -> Result {
    let address = words::address(address)?;
    let device = interface::parse_device(words)?;
    let mut connection = Connection::open()?;
    let device = interface::choose(&mut connection, device)?;
    let request = Request::new()
        .u32(attribute::IFINDEX, device)
        .address(attribute::ADDRESS, address);
    let mut found = None;
    let each = |attributes: Attributes<'_>| {
        // The first message repeats the request.
        if attributes.has(attribute::STEP)? {
            found = Some(Resolution::read(attributes)?);
        }
        Ok(())
    };
    connection.dump(operation::RESOLVE, &request, family::RESOLUTION_NAMES, each)?;
    let resolution = found.ok_or_else(|| Error::Answer("no step of the resolution".to_owned()))?;
    // A closed pipe must not turn the failure into a success.
    let printed = out.print_item(&resolution);
    match resolution.failure() {
        Some(why) => {
            output::report_print_error(printed);
            Err(Error::Unresolved(address, why))
        }
        None => printed,
    }
}
