// SPDX-License-Identifier: GPL-2.0-only

//! The filter of commands on entries: `[to ADDRESS[/LENGTH]] [gid GID] [source SOURCE]`.

use crate::{
    entry::Source,
    error::Result,
    netlink::{
        attribute::Request,
        family::entry as attribute, //
    },
    words::{
        self,
        set_once,
        Words, //
    },
};
use oxib_wire::gid::Gid;
use std::net::IpAddr;

/// Conditions on entries. An entry has to fulfil all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The prefix of the entries' addresses, and its length in bits.
    pub to: Option<(IpAddr, u8)>,
    /// The GID of the entries.
    pub gid: Option<Gid>,
    /// The source of the entries.
    pub source: Option<Source>,
}

impl Filter {
    /// Parses the words of a command.
    pub fn parse(words: &[String]) -> Result<Filter> {
        let mut filter = Filter::default();
        let mut words = Words::new(words);
        while let Some(word) = words.next_word() {
            match word {
                "to" => set_once(&mut filter.to, word, words::prefix(words.value(word)?)?)?,
                "gid" => set_once(&mut filter.gid, word, words::gid(words.value(word)?)?)?,
                "source" => set_once(&mut filter.source, word, words.value(word)?.parse()?)?,
                // As with `ip route show`, the keyword may be left out.
                address if address.contains(['.', ':']) => {
                    set_once(&mut filter.to, "to", words::prefix(address)?)?
                }
                _ => {
                    return Err(words::unknown(
                        word,
                        "to ADDRESS[/LENGTH], gid GID and source SOURCE",
                    ))
                }
            }
        }
        Ok(filter)
    }

    /// Returns the address if the filter is a single address and nothing else.
    pub fn single_address(&self) -> Option<IpAddr> {
        match (self.to, self.gid, self.source) {
            (Some((address @ IpAddr::V4(_), 32) | (address @ IpAddr::V6(_), 128)), None, None) => {
                Some(address)
            }
            _ => None,
        }
    }

    /// Returns the filter as attributes of a request.
    pub fn request(&self) -> Request {
        let mut request = Request::new();
        if let Some((address, length)) = self.to {
            request = request
                .address(attribute::ADDRESS, address)
                .u8(attribute::PREFIX_LENGTH, length);
        }
        if let Some(gid) = self.gid {
            request = request.gid(attribute::GID, gid);
        }
        if let Some(source) = self.source {
            request = request.u8(attribute::SOURCE, source as u8);
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute::Attributes;

    /// Splits a text into words.
    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn words_make_a_filter() {
        let filter = Filter::parse(&words("to 10.0.0.0/8 source file gid fec0::1")).unwrap();
        let bytes = filter.request().emitted();
        let read = Attributes::new(&bytes);
        assert_eq!(
            read.address(attribute::ADDRESS).unwrap().to_string(),
            "10.0.0.0"
        );
        assert_eq!(read.u8(attribute::PREFIX_LENGTH).unwrap(), Some(8));
        assert_eq!(read.u8(attribute::SOURCE).unwrap(), Some(1));
        assert!(read.has(attribute::GID).unwrap());
        assert_eq!(filter.single_address(), None);
        assert_eq!(
            Filter::parse(&[]).unwrap().request().emitted(),
            Vec::<u8>::new()
        );
    }

    #[test]
    fn a_prefix_of_mapped_addresses_is_one_of_ipv4() {
        for (mapped, ipv4) in [
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("to ::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ] {
            let (mapped, ipv4) = (words(mapped), words(ipv4));
            assert_eq!(
                Filter::parse(&mapped).unwrap(),
                Filter::parse(&ipv4).unwrap()
            );
        }
    }

    #[test]
    fn one_address() {
        for (text, single) in [
            ("10.0.0.1", true),
            ("to 10.0.0.1/32", true),
            ("to fd00::1", true),
            ("::ffff:10.0.0.1", true),
            ("::ffff:10.0.0.0/127", false),
            ("10.0.0.0/31", false),
            ("10.0.0.1 source file", false),
            ("", false),
        ] {
            assert_eq!(
                Filter::parse(&words(text))
                    .unwrap()
                    .single_address()
                    .is_some(),
                single,
                "{text}"
            );
        }
    }

    #[test]
    fn wrong_words_are_reported() {
        for (text, wanted) in [
            ("to", "'to' needs a value"),
            ("to x", "'x' is neither an address"),
            ("10.0.0.1 to 10.0.0.2", "'to' is given twice"),
            ("source disk", "'disk' is not a source"),
            ("from 10.0.0.1", "'from' is not known here"),
        ] {
            let error = Filter::parse(&words(text)).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
