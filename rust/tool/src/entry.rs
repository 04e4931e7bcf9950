// SPDX-License-Identifier: GPL-2.0-only

//! An entry of the address cache, as the kernel reports it.

use crate::{
    error::{
        Error,
        Result, //
    },
    netlink::{
        attribute::Attributes,
        family::entry as attribute, //
    },
};
use oxib_data_file::entry::ShortGid;
use oxib_wire::gid::Gid;
use serde::{
    Serialize,
    Serializer, //
};
use std::{
    fmt,
    net::IpAddr,
    str::FromStr, //
};

/// The source of an entry. A source of a higher number never overwrites an entry of a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Source {
    /// A file that was loaded.
    File = 1,
    /// A netlink request: `oxib acm add`, or another program.
    Netlink = 2,
    /// A SIDR exchange with the node that has the address.
    Sidr = 3,
    /// A request of the node that has the address.
    Learned = 4,
}

impl Source {
    /// All sources with their names.
    pub const NAMES: [(Source, &str); 4] = [
        (Source::File, "file"),
        (Source::Netlink, "netlink"),
        (Source::Sidr, "sidr"),
        (Source::Learned, "learned"),
    ];

    /// Converts the kernel's number of a source.
    fn from_number(number: u8) -> Option<Source> {
        Source::NAMES
            .iter()
            .map(|(source, _)| *source)
            .find(|source| *source as u8 == number)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Source::NAMES.iter().find(|(source, _)| source == self);
        f.write_str(name.map_or("unknown", |(_, name)| name))
    }
}

impl FromStr for Source {
    type Err = Error;

    fn from_str(word: &str) -> Result<Source> {
        Source::NAMES
            .iter()
            .find(|(_, name)| *name == word)
            .map(|(source, _)| *source)
            .ok_or_else(|| {
                Error::Usage(format!(
                    "'{word}' is not a source of entries: give file, netlink, sidr or learned"
                ))
            })
    }
}

/// An entry of the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The IPv4 or IPv6 address.
    pub address: IpAddr,
    /// The GID of the port that has it.
    #[serde(serialize_with = "serialize_gid")]
    pub gid: Gid,
    /// The number of the queue pair that receives for the address, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qpn: Option<u32>,
    /// Whether `qpn` was found by SIDR, although the entry has another source.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub learned_qpn: bool,
    /// The P_Key of the only partition for which the entry is valid; `None` for all partitions.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_pkey"
    )]
    pub pkey: Option<u16>,
    /// The source of the entry.
    pub source: Option<Source>,
    /// The remaining lifetime in seconds; 0 for an entry that does not expire.
    #[serde(skip_serializing_if = "is_zero")]
    pub lifetime: u32,
}

impl Entry {
    /// Reads the attributes of an entry.
    pub fn read(attributes: Attributes<'_>) -> Result<Entry> {
        Ok(Entry {
            address: attributes.address(attribute::ADDRESS)?,
            gid: attributes.gid(attribute::GID)?,
            qpn: attributes.u32(attribute::QPN)?,
            learned_qpn: attributes.has(attribute::LEARNED_QPN)?,
            pkey: attributes.u16(attribute::PKEY)?,
            source: attributes
                .u8(attribute::SOURCE)?
                .and_then(Source::from_number),
            lifetime: attributes.u32(attribute::LIFETIME)?.unwrap_or(0),
        })
    }

    /// Converts the entry to one of a file. A queue pair number that SIDR found is omitted: it
    /// changes when the peer reloads its driver.
    pub fn to_file_entry(&self) -> oxib_data_file::Entry {
        oxib_data_file::Entry {
            address: self.address,
            gid: self.gid,
            qpn: self.qpn.filter(|_| !self.learned_qpn),
            pkey: self.pkey,
            lifetime: self.lifetime,
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} gid {}", self.address, ShortGid(self.gid))?;
        if let Some(qpn) = self.qpn {
            write!(f, " qpn {qpn}")?;
        }
        if self.learned_qpn {
            f.write_str(" (sidr)")?;
        }
        if let Some(pkey) = self.pkey {
            write!(f, " pkey {pkey:#06x}")?;
        }
        if let Some(source) = self.source {
            write!(f, " source {source}")?;
        }
        if self.lifetime != 0 {
            write!(f, " lifetime {}", self.lifetime)?;
        }
        Ok(())
    }
}

/// Serializes a GID in the notation of an IPv6 address.
pub fn serialize_gid<S: Serializer>(
    gid: &Gid,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(&ShortGid(*gid))
}

/// Serializes a P_Key as a hexadecimal string.
pub fn serialize_pkey<S: Serializer>(
    pkey: &Option<u16>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    match pkey {
        Some(pkey) => serializer.collect_str(&format_args!("{pkey:#06x}")),
        None => serializer.serialize_none(),
    }
}

/// Returns whether a lifetime stands for an entry that does not expire.
fn is_zero(seconds: &u32) -> bool {
    *seconds == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute::Request;

    /// Returns the attributes that every entry has.
    fn answer() -> Request {
        Request::new()
            .address(attribute::ADDRESS, "10.0.0.1".parse().unwrap())
            .bytes(attribute::GID, [&[0xfe, 0xc0][..], &[0; 13], &[1]].concat())
            .u8(attribute::SOURCE, 1)
    }

    #[test]
    fn all_attributes_are_shown() {
        let full = answer()
            .u32(attribute::QPN, 72)
            .bytes(attribute::LEARNED_QPN, Vec::new())
            .u16(attribute::PKEY, 0x8001)
            .u32(attribute::LIFETIME, 60);
        let table = [
            (
                answer(),
                "10.0.0.1 gid fec0::1 source file",
                r#"{"address":"10.0.0.1","gid":"fec0::1","source":"file"}"#,
                "10.0.0.1 fec0::1",
            ),
            (
                full,
                "10.0.0.1 gid fec0::1 qpn 72 (sidr) pkey 0x8001 source file lifetime 60",
                r#"{"address":"10.0.0.1","gid":"fec0::1","qpn":72,"learned_qpn":true,"pkey":"0x8001","source":"file","lifetime":60}"#,
                "10.0.0.1 fec0::1 pkey 0x8001 lifetime 60",
            ),
        ];
        for (request, text, json, line) in table {
            let bytes = request.emitted();
            let entry = Entry::read(Attributes::new(&bytes)).unwrap();
            assert_eq!(entry.to_string(), text);
            assert_eq!(serde_json::to_string(&entry).unwrap(), json);
            assert_eq!(entry.to_file_entry().to_string(), line);
        }
    }

    #[test]
    fn an_answer_without_mandatory_attributes_is_refused() {
        let bytes = Request::new().u8(attribute::SOURCE, 1).emitted();
        assert!(Entry::read(Attributes::new(&bytes)).is_err());
    }

    #[test]
    fn sources_and_their_names() {
        for (source, name) in Source::NAMES {
            assert_eq!(name.parse::<Source>().unwrap(), source);
            assert_eq!(source.to_string(), name);
            assert_eq!(Source::from_number(source as u8), Some(source));
        }
        assert_eq!(Source::from_number(0), None);
        assert!("files".parse::<Source>().is_err());
    }
}
