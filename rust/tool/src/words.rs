// SPDX-License-Identifier: GPL-2.0-only

//! The words of a command in the manner of ip(8): keywords, most of them with a value.

use crate::error::{
    Error,
    Result, //
};
use oxib_data_file::line;
use oxib_wire::gid::Gid;
use std::net::{
    IpAddr,
    Ipv6Addr, //
};

/// The length of the prefix of IPv4-mapped addresses, in bits (RFC 4291 §2.5.5.2).
const MAPPED_PREFIX_LENGTH: u8 = 96;

/// An iterator over words.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    rest: std::slice::Iter<'a, String>,
}

impl<'a> Words<'a> {
    /// Creates an iterator over the words of a command.
    pub fn new(words: &'a [String]) -> Words<'a> {
        Words { rest: words.iter() }
    }

    /// Returns the next word, if there is one.
    pub fn next_word(&mut self) -> Option<&'a str> {
        self.rest.next().map(String::as_str)
    }

    /// Returns the value of a keyword: the next word.
    pub fn value(&mut self, keyword: &str) -> Result<&'a str> {
        self.next_word()
            .ok_or_else(|| Error::Usage(format!("'{keyword}' needs a value after it")))
    }
}

/// Returns the error for an unknown word. `known` lists the words that the command takes.
pub fn unknown(word: &str, known: &str) -> Error {
    Error::Usage(format!(
        "'{word}' is not known here; the command takes {known}"
    ))
}

/// Stores the value of a keyword; fails if the keyword is repeated.
pub fn set_once<T>(option: &mut Option<T>, keyword: &str, value: T) -> Result {
    match option.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::Usage(format!("'{keyword}' is given twice"))),
    }
}

/// Parses an IP address. An IPv4-mapped one is converted to IPv4.
pub fn address(word: &str) -> Result<IpAddr> {
    word.parse::<IpAddr>()
        .map(|address| address.to_canonical())
        .map_err(|_| Error::Usage(format!("'{word}' is not an IP address")))
}

/// Parses a GID. The kernel checks whether it can be in the cache.
pub fn gid(word: &str) -> Result<Gid> {
    word.parse::<Ipv6Addr>()
        .map(|address| Gid::from_bytes(address.octets()))
        .map_err(|_| {
            Error::Usage(format!(
                "'{word}' is not a GID: write it like an IPv6 address, as in fec0:0:0:1::201:2ff"
            ))
        })
}

/// Parses a number: decimal, or hexadecimal after `0x`. The kernel checks its range.
pub fn number(keyword: &str, word: &str) -> Result<u32> {
    line::parse_number(word).ok_or_else(|| {
        Error::Usage(format!(
            "{keyword} '{word}' is not a number up to 4294967295"
        ))
    })
}

/// Parses a number of 16 bits.
pub fn short_number(keyword: &str, word: &str) -> Result<u16> {
    u16::try_from(number(keyword, word)?).map_err(|_| {
        Error::Usage(format!(
            "{keyword} '{word}' is too large: give at most 0xffff"
        ))
    })
}

/// Parses a prefix, `ADDRESS[/LENGTH]`; without a length it is the whole address. The bits behind
/// the prefix have to be zero, as in routes of ip(8), so that no user flushes more entries than
/// intended. An IPv4-mapped prefix is converted to IPv4: the kernel stores such addresses as IPv4.
pub fn prefix(word: &str) -> Result<(IpAddr, u8)> {
    let wrong = || Error::Usage(format!("'{word}' is neither an address nor ADDRESS/LENGTH"));
    let (text, length) = match word.split_once('/') {
        Some((text, length)) => (text, Some(length)),
        None => (word, None),
    };
    let address: IpAddr = text.parse().map_err(|_| wrong())?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let length: u8 = match length {
        None => bits,
        Some(length) => length
            .parse()
            .ok()
            .filter(|length| *length <= bits)
            .ok_or_else(wrong)?,
    };
    let (address, length) = unmapped(address, length);
    let value = match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    if value.checked_shl(length.into()).unwrap_or(0) != 0 {
        return Err(Error::Usage(format!(
            "'{word}' has bits behind the prefix: give {}",
            masked(address, length)
        )));
    }
    Ok((address, length))
}

/// Converts a prefix that has only IPv4-mapped addresses to IPv4; returns others unchanged.
fn unmapped(address: IpAddr, length: u8) -> (IpAddr, u8) {
    match (
        address,
        address.to_canonical(),
        length.checked_sub(MAPPED_PREFIX_LENGTH),
    ) {
        (IpAddr::V6(_), ipv4 @ IpAddr::V4(_), Some(length)) => (ipv4, length),
        _ => (address, length),
    }
}

/// Returns `ADDRESS/LENGTH` with the bits behind the prefix cleared.
fn masked(address: IpAddr, length: u8) -> String {
    let keep = |bits: u32| u128::MAX.checked_shl(bits - u32::from(length)).unwrap_or(0);
    match address {
        IpAddr::V4(address) => {
            let kept = address.to_bits() & keep(32) as u32;
            format!("{}/{length}", std::net::Ipv4Addr::from_bits(kept))
        }
        IpAddr::V6(address) => format!(
            "{}/{length}",
            Ipv6Addr::from_bits(address.to_bits() & keep(128))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        let right = [
            ("10.0.0.1", "10.0.0.1", 32),
            ("10.0.0.0/8", "10.0.0.0", 8),
            ("0.0.0.0/0", "0.0.0.0", 0),
            ("10.0.0.1/32", "10.0.0.1", 32),
            ("fd00::/8", "fd00::", 8),
            ("::/0", "::", 0),
            ("fd00::1", "fd00::1", 128),
            ("::ffff:10.0.0.1", "10.0.0.1", 32),
            ("::ffff:10.0.0.1/128", "10.0.0.1", 32),
            ("::ffff:10.0.0.0/104", "10.0.0.0", 8),
            ("::ffff:0:0/96", "0.0.0.0", 0),
            ("::fffe:0:0/95", "::fffe:0:0", 95),
        ];
        for (word, address, length) in right {
            assert_eq!(
                prefix(word).unwrap(),
                (address.parse().unwrap(), length),
                "{word}"
            );
        }
        let wrong = [
            ("10.0.0.0/33", "neither"),
            ("fd00::/129", "neither"),
            ("10.0.0.0/", "neither"),
            ("10.0.0/8", "neither"),
            ("10.0.0.1/8", "give 10.0.0.0/8"),
            ("10.0.0.1/0", "give 0.0.0.0/0"),
            ("fd00::1:2/112", "give fd00::1:0/112"),
            ("::1/0", "give ::/0"),
            ("::ffff:10.0.0.1/104", "give 10.0.0.0/8"),
            ("::ffff:10.0.0.0/129", "neither"),
            ("::ffff:0:0/95", "give ::fffe:0:0/95"),
        ];
        for (word, text) in wrong {
            let error = prefix(word).unwrap_err().to_string();
            assert!(error.contains(text), "{word}: {error}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(number("qpn", "0x48").unwrap(), 72);
        assert_eq!(short_number("pkey", "0x8001").unwrap(), 0x8001);
        assert!(short_number("pkey", "0x18001").is_err());
        assert!(number("qpn", "-1").is_err());
    }
}
