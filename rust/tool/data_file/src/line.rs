// SPDX-License-Identifier: GPL-2.0-only

//! The syntax of a line.

use oxib_wire::{
    acm::entry::{
        self,
        check_address,
        Fault, //
    },
    gid::Gid, //
};
use std::{
    fmt,
    net::{
        IpAddr,
        Ipv6Addr, //
    }, //
};
use thiserror::Error;

/// The first word of a line: the host that has the GID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host<'a> {
    /// An IP address, never an IPv4-mapped IPv6 address.
    Address(IpAddr),
    /// A name, to be resolved.
    Name(&'a str),
}

/// The content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// The host that has the GID.
    pub host: Host<'a>,
    /// The GID of the host's port.
    pub gid: Gid,
    /// `qpn`, if the line has it.
    pub qpn: Option<u32>,
    /// `pkey`, if the line has it.
    pub pkey: Option<u16>,
    /// `lifetime` in seconds; 0 if the line does not have it.
    pub lifetime: u32,
}

/// A syntax error in a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    /// The line is not UTF-8; the first invalid byte.
    #[error("it is not text (a byte {0:#04x} where there should be UTF-8)")]
    NotText(u8),
    /// The first word is neither an address nor a name.
    #[error("'{0}' is neither an IP address nor a host's name")]
    Host(Quoted),
    /// The address cannot be in the cache.
    #[error("{0}: {1}")]
    Address(IpAddr, Fault),
    /// There is no second word.
    #[error("the GID is missing: a line is ADDRESS GID [qpn N] [pkey P] [lifetime SECONDS]")]
    NoGid,
    /// The second word is not a GID.
    #[error("'{0}' is not a GID: write it like an IPv6 address, as in fec0:0:0:1::201:2ff")]
    Gid(Quoted),
    /// No port can have the GID.
    #[error("'{0}': {1}")]
    InvalidGid(Quoted, Fault),
    /// A word is not a keyword.
    #[error("'{0}' is not known here: after the GID a line takes qpn, pkey and lifetime")]
    Keyword(Quoted),
    /// A keyword is repeated.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// A keyword has no value.
    #[error("{0} needs a number after it")]
    NoValue(&'static str),
    /// A value is not a number, or out of range.
    #[error("{keyword} '{value}': {wanted}")]
    Value {
        /// The keyword that the value follows.
        keyword: &'static str,
        /// The value that was found.
        value: Quoted,
        /// A description of the values that are valid.
        wanted: &'static str,
    },
}

/// A word of a file for an error message: shortened, without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quoted(String);

impl Quoted {
    /// The maximum number of characters that are shown.
    const LENGTH: usize = 60;

    /// Shortens a word of a file, and replaces its control characters.
    pub fn new(word: &str) -> Quoted {
        let mut shown: String = word
            .chars()
            .take(Self::LENGTH)
            .map(|c| if c.is_control() { '?' } else { c })
            .collect();
        if word.chars().nth(Self::LENGTH).is_some() {
            shown.push('…');
        }
        Quoted(shown)
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Parses a line without its newline. Returns `None` if it is blank or a comment.
pub fn parse(line: &[u8]) -> Result<Option<Statement<'_>>, LineError> {
    let content = line.split(|byte| *byte == b'#').next().unwrap_or(line);
    let text = std::str::from_utf8(content).map_err(|error| {
        let byte = content
            .get(error.valid_up_to())
            .copied()
            .unwrap_or_default();
        LineError::NotText(byte)
    })?;
    let mut words = text.split_ascii_whitespace();
    let Some(first) = words.next() else {
        return Ok(None);
    };
    let host = parse_host(first)?;
    let gid = parse_gid(words.next().ok_or(LineError::NoGid)?)?;
    let mut statement = Statement {
        host,
        gid,
        qpn: None,
        pkey: None,
        lifetime: 0,
    };
    parse_options(words, &mut statement)?;
    Ok(Some(statement))
}

/// Parses the options, which follow the GID.
fn parse_options<'a>(
    mut words: impl Iterator<Item = &'a str>,
    statement: &mut Statement<'_>,
) -> Result<(), LineError> {
    let mut lifetime = None;
    while let Some(word) = words.next() {
        match word {
            "qpn" => parse_once("qpn", &mut statement.qpn, &mut words, parse_qpn)?,
            "pkey" => parse_once("pkey", &mut statement.pkey, &mut words, parse_pkey)?,
            "lifetime" => parse_once("lifetime", &mut lifetime, &mut words, parse_lifetime)?,
            _ => return Err(LineError::Keyword(Quoted::new(word))),
        }
    }
    statement.lifetime = lifetime.unwrap_or(0);
    Ok(())
}

/// Parses the value of a keyword; fails if it is repeated.
fn parse_once<'a, T>(
    keyword: &'static str,
    option: &mut Option<T>,
    words: &mut impl Iterator<Item = &'a str>,
    parse: fn(&str) -> Result<T, LineError>,
) -> Result<(), LineError> {
    if option.is_some() {
        return Err(LineError::Twice(keyword));
    }
    *option = Some(parse(words.next().ok_or(LineError::NoValue(keyword))?)?);
    Ok(())
}

/// Parses the first word: an address, or a name.
fn parse_host(word: &str) -> Result<Host<'_>, LineError> {
    if let Ok(address) = word.parse::<IpAddr>() {
        let address = address.to_canonical();
        check_address(address)
            .map(Host::Address)
            .map_err(|fault| LineError::Address(address, fault))
    } else if is_name(word) {
        Ok(Host::Name(word))
    } else {
        Err(LineError::Host(Quoted::new(word)))
    }
}

/// Returns whether a word can be the name of a host. A word of numbers and dots alone, like `10.1`
/// or `0x0a000001`, is not: the resolver would take it for an address (inet_aton(3)).
fn is_name(word: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    word.len() <= 253
        && word.bytes().all(is_allowed)
        && !word.starts_with(['.', '-'])
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !word.split('.').all(is_number)
}

/// Returns whether a part between dots is a number of any length: decimal, octal, or hexadecimal
/// after `0x`.
fn is_number(part: &str) -> bool {
    match part.strip_prefix("0x").or_else(|| part.strip_prefix("0X")) {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => part.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// Parses the GID of a port.
pub fn parse_gid(word: &str) -> Result<Gid, LineError> {
    let address: Ipv6Addr = word
        .parse()
        .map_err(|_| LineError::Gid(Quoted::new(word)))?;
    entry::parse_gid(&address.octets())
        .map_err(|fault| LineError::InvalidGid(Quoted::new(word), fault))
}

/// Parses a number: decimal, or hexadecimal after `0x`.
pub fn parse_number(word: &str) -> Option<u32> {
    // from_str_radix and parse accept a plus sign.
    let is_unsigned = |text: &str| !text.starts_with('+');
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(rest) if is_unsigned(rest) => u32::from_str_radix(rest, 16).ok(),
        None if is_unsigned(word) => word.parse().ok(),
        _ => None,
    }
}

/// Parses a queue pair number of 24 bits. 0 and 1 are reserved for management.
pub fn parse_qpn(word: &str) -> Result<u32, LineError> {
    parse_number(word)
        .filter(|number| entry::parse_qpn(*number).is_ok())
        .ok_or_else(|| LineError::Value {
            keyword: "qpn",
            value: Quoted::new(word),
            wanted: "a queue pair number is from 2 to 0xffffff",
        })
}

/// Parses a P_Key, of full or limited membership.
pub fn parse_pkey(word: &str) -> Result<u16, LineError> {
    parse_number(word)
        .and_then(|number| u16::try_from(number).ok())
        .filter(|number| entry::parse_pkey(*number).is_ok())
        .ok_or_else(|| LineError::Value {
            keyword: "pkey",
            value: Quoted::new(word),
            wanted: "a P_Key is from 1 to 0xffff, and not 0x8000",
        })
}

/// Parses a lifetime in seconds.
pub fn parse_lifetime(word: &str) -> Result<u32, LineError> {
    parse_number(word).ok_or_else(|| LineError::Value {
        keyword: "lifetime",
        value: Quoted::new(word),
        wanted: "a lifetime is a number of seconds up to 4294967295, 0 for ever",
    })
}
