// SPDX-License-Identifier: GPL-2.0-only

//! `oxib acm resolve`

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
            entry as attribute,
            operation, //
        },
    },
    output::Output,
    resolution::Resolution,
    words,
};

/// Resolves an address and shows each step. It is an error if it cannot be reached.
pub fn run(address: &str, words: &[String], out: Output) -> Result {
    let address = words::address(address)?;
    let device = interface::parse_device(words)?;
    let mut connection = Connection::open()?;
    let device = match device {
        Some(index) => index,
        None => only_interface(&mut connection)?,
    };
    let request = Request::new()
        .u32(attribute::IFINDEX, device)
        .address(attribute::ADDRESS, address);
    let answer = connection.request(operation::RESOLVE, &request, attribute::NAMES)?;
    let resolution = Resolution::read(Attributes::new(&answer.attributes))?;
    out.one(&resolution)?;
    match resolution.failure() {
        Some(why) => Err(Error::Unresolved(address, why)),
        None => Ok(()),
    }
}

/// The interface, if there is one.
fn only_interface(connection: &mut Connection) -> Result<u32> {
    let interfaces = interface::list(connection)?;
    match interfaces.as_slice() {
        [one] => Ok(one.ifindex),
        [] => Err(Error::Usage(
            "oxib has no interface in this network namespace: `ip link show type ipoib`".to_owned(),
        )),
        several => {
            let names: Vec<&str> = several.iter().map(|each| each.name.as_str()).collect();
            Err(Error::Usage(format!(
                "there are several interfaces: say dev and one of {}",
                names.join(", ")
            )))
        }
    }
}
