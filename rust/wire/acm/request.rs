// SPDX-License-Identifier: GPL-2.0-only

//! Requests of the generic netlink family `oxib`: what their attributes say.

use core::fmt;
use core::net::IpAddr;

use super::super::gid::Gid;
use super::super::netlink::{
    Attribute,
    Attributes, //
};
use super::entry::{
    check_address,
    parse_address,
    parse_gid,
    parse_pkey,
    parse_qpn,
    Entry,
    Fault, //
};
use super::family::{
    entry,
    interface,
    load,
    path,
    resolution, //
};
use super::filter::{
    Filter,
    Network, //
};
use super::record::Record;
use super::source::Source;

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The reason, as text for the user.
    pub why: Why,
    /// The attribute at fault.
    pub at: At,
}

/// The attribute at fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// The one that begins there, counted from the first.
    Offset(usize),
    /// One of this number is missing.
    Missing(u16),
}

/// Why a request is refused, in words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// A value that cannot stand in an entry.
    Entry(Fault),
    /// An attribute that must be there.
    Missing(&'static str),
    /// An attribute has not the length that it must have.
    Length(usize),
    /// There is no such source.
    Source(u8),
    /// This attribute is for answers.
    AnswersOnly(&'static str),
    /// The address does not have so many bits.
    PrefixLength(u8, u8),
    /// Records do not end with one, or are too many.
    Records(usize),
    /// Flags that are unknown, or contradict each other.
    Flags(u32),
    /// There is no such way to use the cache.
    Mode(u8),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Entry(fault) => fmt::Display::fmt(fault, f),
            Why::Missing(name) => write!(f, "the attribute {name} is missing"),
            Why::Length(length) => write!(f, "the attribute does not have {length} bytes"),
            Why::Source(number) => write!(f, "source {number} is unknown: give 1 to 4"),
            Why::AnswersOnly(name) => {
                write!(f, "the attribute {name} is for answers and filters alone")
            }
            Why::PrefixLength(length, longest) => {
                write!(
                    f,
                    "prefix length {length} is longer than the address, {longest}"
                )
            }
            Why::Records(length) => write!(
                f,
                "{length} bytes are not 1 to {} records of {} bytes",
                load::MOST,
                Record::LEN
            ),
            Why::Mode(number) => write!(
                f,
                "mode {number} is unknown: give 0 (off), 1 (prefer) or 2 (only)"
            ),
            Why::Flags(flags) => write!(f, "flags {flags:#x} are unknown, or exclude each other"),
        }
    }
}

/// A refusal for what an attribute says.
fn refuse(attribute: Attribute<'_>, why: Why) -> Refusal {
    Refusal {
        why,
        at: At::Offset(attribute.offset),
    }
}

/// A refusal for an attribute that is not there.
fn missing(number: u16, name: &'static str) -> Refusal {
    Refusal {
        why: Why::Missing(name),
        at: At::Missing(number),
    }
}

/// Reads an attribute, if it is there, and names it if that fails.
fn read<'a, T>(
    attributes: &Attributes<'a>,
    number: u16,
    parse: impl FnOnce(Attribute<'a>) -> Result<T, Why>,
) -> Result<Option<T>, Refusal> {
    attributes
        .get(number)
        .map(|attribute| parse(attribute).map_err(|why| refuse(attribute, why)))
        .transpose()
}

/// The parser of a number.
fn u32_of(attribute: Attribute<'_>) -> Result<u32, Why> {
    attribute.u32().ok_or(Why::Length(4))
}

/// The address that a request is about.
///
/// # Errors
///
/// It is missing, or none that an interface can have.
pub fn parse_subject(attributes: &Attributes<'_>) -> Result<IpAddr, Refusal> {
    parse_ip(attributes, entry::ADDRESS)
}

/// The attribute `number` as an address that an interface can have.
fn parse_ip(attributes: &Attributes<'_>, number: u16) -> Result<IpAddr, Refusal> {
    read(attributes, number, |attribute| {
        parse_address(attribute.value)
            .and_then(check_address)
            .map_err(Why::Entry)
    })?
    .ok_or(missing(number, "address"))
}

/// The interface from which an address is to be resolved, and the address.
///
/// # Errors
///
/// One of both is missing or wrong.
pub fn parse_resolution(attributes: &Attributes<'_>) -> Result<(u32, IpAddr), Refusal> {
    let index = parse_ifindex(attributes, resolution::IFINDEX)?;
    Ok((index, parse_ip(attributes, resolution::ADDRESS)?))
}

/// The interface that a request is about.
///
/// # Errors
///
/// It is missing, or has a wrong length.
pub fn parse_ifindex(attributes: &Attributes<'_>, number: u16) -> Result<u32, Refusal> {
    read(attributes, number, u32_of)?.ok_or(missing(number, "ifindex"))
}

/// The interface from which a path is wanted, and the GID where it is to end.
///
/// # Errors
///
/// One of both is missing or wrong.
pub fn parse_destination(attributes: &Attributes<'_>) -> Result<(u32, Gid), Refusal> {
    let index = parse_ifindex(attributes, path::IFINDEX)?;
    let gid = read_gid(attributes, path::DGID)?.ok_or(missing(path::DGID, "dgid"))?;
    Ok((index, gid))
}

/// The interface that a request is about, and how it is to use the cache.
///
/// # Errors
///
/// One of both is missing or wrong.
pub fn parse_interface(attributes: &Attributes<'_>) -> Result<(u32, u8), Refusal> {
    let index = parse_ifindex(attributes, interface::IFINDEX)?;
    let mode = read(attributes, interface::ACM, |attribute| {
        let number = attribute.u8().ok_or(Why::Length(1))?;
        if number <= interface::LAST_MODE {
            Ok(number)
        } else {
            Err(Why::Mode(number))
        }
    })?;
    Ok((index, mode.ok_or(missing(interface::ACM, "acm"))?))
}

/// The entry that a request wants to have entered.
///
/// # Errors
///
/// The first attribute that is missing or wrong, in the order of their numbers.
pub fn parse_entry(attributes: &Attributes<'_>) -> Result<Entry, Refusal> {
    let address = parse_subject(attributes)?;
    let gid = read_gid(attributes, entry::GID)?.ok_or(missing(entry::GID, "gid"))?;
    let qpn = read(attributes, entry::QPN, |attribute| {
        parse_qpn(u32_of(attribute)?).map_err(Why::Entry)
    })?;
    let pkey = read(attributes, entry::PKEY, |attribute| {
        parse_pkey(attribute.u16().ok_or(Why::Length(2))?).map_err(Why::Entry)
    })?;
    let lifetime = read(attributes, entry::LIFETIME, u32_of)?.unwrap_or(0);
    for (number, name) in [
        (entry::SOURCE, "source"),
        (entry::LEARNED_QPN, "learned-qpn"),
        (entry::PREFIX_LENGTH, "prefix-length"),
    ] {
        read(attributes, number, |_| Err::<(), _>(Why::AnswersOnly(name)))?;
    }
    Ok(Entry {
        address,
        gid,
        qpn,
        pkey,
        lifetime,
    })
}

/// The GID of a port, if it is there.
fn read_gid(attributes: &Attributes<'_>, number: u16) -> Result<Option<Gid>, Refusal> {
    read(attributes, number, |attribute| {
        parse_gid(attribute.value).map_err(Why::Entry)
    })
}

/// Reads which entries a dump or a flush is about.
///
/// # Errors
///
/// The first attribute that is wrong; an address that is missing beside a prefix length.
pub fn parse_filter(attributes: &Attributes<'_>) -> Result<Filter, Refusal> {
    let address = read(attributes, entry::ADDRESS, |attribute| {
        parse_address(attribute.value).map_err(Why::Entry)
    })?;
    let length = read(attributes, entry::PREFIX_LENGTH, |attribute| {
        let length = attribute.u8().ok_or(Why::Length(1))?;
        match address.map(Network::longest) {
            Some(longest) if length > longest => Err(Why::PrefixLength(length, longest)),
            _ => Ok(length),
        }
    })?;
    let network = match (address, length) {
        (None, Some(_)) => return Err(missing(entry::ADDRESS, "address")),
        (None, None) => None,
        (Some(address), length) => {
            Network::new(address, length.unwrap_or_else(|| Network::longest(address)))
        }
    };
    Ok(Filter {
        network,
        source: read(attributes, entry::SOURCE, |attribute| {
            let number = attribute.u8().ok_or(Why::Length(1))?;
            Source::new(number).ok_or(Why::Source(number))
        })?,
        gid: read_gid(attributes, entry::GID)?,
    })
}

/// The action on a bulk load that follows one of its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// Waits for more parts.
    More,
    /// Enters all entries of the load.
    Commit {
        /// Entries of files that are not in it go.
        replace_all: bool,
    },
    /// Discards the load with all its parts.
    Abort,
}

/// A part of a bulk load.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The records of the part, none perhaps.
    pub records: &'a [Record],
    /// The place of the attribute that holds the records, for a refusal.
    pub at: At,
    /// The action that follows this part.
    pub then: Then,
}

/// Reads a part of a bulk load. The records are not looked into.
///
/// # Errors
///
/// The first attribute that is wrong; no records in a part that says nothing else.
pub fn parse_part<'a>(attributes: &Attributes<'a>) -> Result<Part<'a>, Refusal> {
    let then = read(attributes, load::FLAGS, |attribute| {
        let flags = u32_of(attribute)?;
        match flags {
            0 => Ok(Then::More),
            load::ABORT => Ok(Then::Abort),
            load::COMMIT => Ok(Then::Commit { replace_all: false }),
            _ if flags == load::COMMIT | load::REPLACE_ALL => {
                Ok(Then::Commit { replace_all: true })
            }
            _ => Err(Why::Flags(flags)),
        }
    })?
    .unwrap_or(Then::More);
    let records = read(attributes, load::ENTRIES, |attribute| {
        Record::all(attribute.value)
            .filter(|records| (1..=load::MOST).contains(&records.len()))
            .ok_or(Why::Records(attribute.value.len()))
    })?;
    let at = attributes
        .get(load::ENTRIES)
        .map_or(At::Missing(load::ENTRIES), |attribute| {
            At::Offset(attribute.offset)
        });
    match (records, then) {
        (None, Then::More) => Err(missing(load::ENTRIES, "entries")),
        (records, then) => Ok(Part {
            records: records.unwrap_or_default(),
            at,
            then,
        }),
    }
}
