// SPDX-License-Identifier: GPL-2.0-only

//! The commands `oxib acm paths show` and `flush`.

use crate::{
    command::report_note,
    error::Result,
    netlink::{
        attribute::Request,
        connection::Connection,
        family::operation, //
    },
    output::Output,
    path::Path,
};

/// Lists the paths of the path cache.
pub fn show(out: Output) -> Result {
    let mut paths = Vec::new();
    Connection::open()?.dump(operation::PATH_GET, &Request::new(), &[], |attributes| {
        paths.push(Path::read(attributes)?);
        Ok(())
    })?;
    out.print_list(&paths)
}

/// Empties the path cache.
pub fn flush() -> Result {
    let answer = Connection::open()?.request(operation::PATH_FLUSH, &Request::new(), &[])?;
    report_note(&answer);
    Ok(())
}
