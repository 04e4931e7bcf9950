// SPDX-License-Identifier: GPL-2.0-only

//! The command `oxib acm interface`, and the choice of an interface for other commands.

use crate::{
    cli,
    command::report_note,
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
            interface as attribute,
            operation, //
        },
    },
    output::Output,
    words::{
        self,
        set_once,
        Words, //
    },
};
use rustix::net::{
    netdevice::{
        index_to_name,
        name_to_index, //
    },
    socket,
    AddressFamily,
    SocketType, //
};
use serde::Serialize;
use std::fmt;

/// The names of the modes, by their numbers.
const MODES: [&str; 3] = ["off", "prefer", "only"];

/// An interface of oxib.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// The index of the interface.
    pub ifindex: u32,
    /// The name of the interface.
    #[serde(rename = "ifname")]
    pub name: String,
    /// The mode in which the interface uses the cache.
    pub acm: &'static str,
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} acm {}", self.ifindex, self.name, self.acm)
    }
}

/// Returns the index of an interface.
pub fn index_of(name: &str) -> Result<u32> {
    let failed =
        |error: rustix::io::Errno| Error::system(format!("the interface {name}"))(error.into());
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(failed)?;
    name_to_index(&socket, name).map_err(failed)
}

/// Returns the name of an interface, or its index if it has been removed meanwhile.
fn name_of(index: u32) -> String {
    socket(AddressFamily::INET, SocketType::DGRAM, None)
        .and_then(|socket| index_to_name(&socket, index))
        .unwrap_or_else(|_| index.to_string())
}

/// Lists the interfaces of oxib in the namespace.
pub fn list(connection: &mut Connection) -> Result<Vec<Interface>> {
    let mut interfaces = Vec::new();
    connection.dump(
        operation::INTERFACE_GET,
        &Request::new(),
        family::INTERFACE_NAMES,
        |attributes| {
            interfaces.push(read(attributes)?);
            Ok(())
        },
    )?;
    Ok(interfaces)
}

/// Returns the index of the interface that was named, or else of the only one.
pub fn choose(connection: &mut Connection, named: Option<u32>) -> Result<u32> {
    if let Some(index) = named {
        return Ok(index);
    }
    let interfaces = list(connection)?;
    match interfaces.as_slice() {
        [one] => Ok(one.ifindex),
        [] => Err(Error::NoInterface),
        several => {
            let names: Vec<&str> = several.iter().map(|each| each.name.as_str()).collect();
            Err(Error::Usage(format!(
                "there are several interfaces: give dev and one of {}",
                names.join(", ")
            )))
        }
    }
}

/// Reads the attributes of an interface.
fn read(attributes: Attributes<'_>) -> Result<Interface> {
    let missing = || Error::Answer("an interface without its index".to_owned());
    let ifindex = attributes.u32(attribute::IFINDEX)?.ok_or_else(missing)?;
    let mode = usize::from(attributes.u8(attribute::ACM)?.unwrap_or(u8::MAX));
    Ok(Interface {
        ifindex,
        name: name_of(ifindex),
        acm: MODES.get(mode).copied().unwrap_or("unknown"),
    })
}

/// Runs `oxib acm interface show` or `set`.
pub fn run(command: &cli::Interface, out: Output) -> Result {
    match command {
        cli::Interface::Show { words } => match parse_device(words)? {
            None => out.print_list(&list(&mut Connection::open()?)?),
            Some(index) => {
                let request = Request::new().u32(attribute::IFINDEX, index);
                let answer = Connection::open()?.request(
                    operation::INTERFACE_GET,
                    &request,
                    family::INTERFACE_NAMES,
                )?;
                out.print_list(&[read(Attributes::new(&answer.attributes))?])
            }
        },
        cli::Interface::Set { words } => set(words),
    }
}

/// Parses `[dev INTERFACE]` and returns the interface's index.
pub fn parse_device(words: &[String]) -> Result<Option<u32>> {
    let mut index = None;
    let mut words = Words::new(words);
    while let Some(word) = words.next_word() {
        match word {
            "dev" => set_once(&mut index, word, index_of(words.value(word)?)?)?,
            _ => return Err(words::unknown(word, "dev INTERFACE")),
        }
    }
    Ok(index)
}

/// Parses `dev INTERFACE acm MODE` and sets the mode.
fn set(words: &[String]) -> Result {
    let (mut index, mut mode) = (None, None);
    let mut words = Words::new(words);
    while let Some(word) = words.next_word() {
        match word {
            "dev" => set_once(&mut index, word, index_of(words.value(word)?)?)?,
            "acm" => set_once(&mut mode, word, parse_mode(words.value(word)?)?)?,
            _ => return Err(words::unknown(word, "dev INTERFACE and acm MODE")),
        }
    }
    let (Some(index), Some(mode)) = (index, mode) else {
        return Err(Error::Usage(
            "both are needed: dev INTERFACE acm off|prefer|only".to_owned(),
        ));
    };
    let request = Request::new()
        .u32(attribute::IFINDEX, index)
        .u8(attribute::ACM, mode);
    let answer =
        Connection::open()?.request(operation::INTERFACE_SET, &request, family::INTERFACE_NAMES)?;
    report_note(&answer);
    Ok(())
}

/// Returns the number of the mode of that name.
fn parse_mode(word: &str) -> Result<u8> {
    (0..)
        .zip(MODES)
        .find(|(_, name)| *name == word)
        .map(|(number, _)| number)
        .ok_or_else(|| Error::Usage(format!("'{word}' is not a mode: give off, prefer or only")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_by_name() {
        assert_eq!(parse_mode("off").unwrap(), 0);
        assert_eq!(parse_mode("only").unwrap(), 2);
        assert!(parse_mode("on").is_err());
    }

    #[test]
    fn an_interface_is_shown() {
        // The loopback interface is there in every namespace, and has this index.
        let bytes = Request::new()
            .u32(attribute::IFINDEX, 1)
            .u8(attribute::ACM, 1)
            .emitted();
        let shown = read(Attributes::new(&bytes)).unwrap();
        assert_eq!(shown.to_string(), "1: lo acm prefer");
        assert_eq!(
            serde_json::to_string(&shown).unwrap(),
            r#"{"ifindex":1,"ifname":"lo","acm":"prefer"}"#
        );
        assert_eq!(index_of("lo").unwrap(), 1);
        assert!(index_of("no-such-one").is_err());
    }
}
