// SPDX-License-Identifier: GPL-2.0-only

//! Netlink attributes: encoding for requests, parsing of answers.

use crate::error::{
    Error,
    Result, //
};
use netlink_packet_core::{
    parse_u16,
    parse_u32,
    parse_u64,
    parse_u8,
    DefaultNla,
    Emitable,
    NlasIterator, //
};
use oxib_wire::gid::Gid;
use std::net::IpAddr;

/// The length of an attribute's header in bytes.
const HEADER_LEN: usize = 4;

/// The attributes of a request.
#[derive(Clone, Debug, Default)]
pub struct Request(Vec<DefaultNla>);

impl Request {
    /// Creates a request without attributes.
    pub fn new() -> Request {
        Request::default()
    }

    /// Adds an attribute with these bytes as its value.
    pub fn bytes(mut self, kind: u16, value: Vec<u8>) -> Request {
        self.0.push(DefaultNla::new(kind, value));
        self
    }

    /// Adds an integer of one byte.
    pub fn u8(self, kind: u16, value: u8) -> Request {
        self.bytes(kind, vec![value])
    }

    /// Adds an integer of two bytes.
    pub fn u16(self, kind: u16, value: u16) -> Request {
        self.bytes(kind, value.to_ne_bytes().to_vec())
    }

    /// Adds an integer of four bytes.
    pub fn u32(self, kind: u16, value: u32) -> Request {
        self.bytes(kind, value.to_ne_bytes().to_vec())
    }

    /// Adds an IP address.
    pub fn address(self, kind: u16, value: IpAddr) -> Request {
        let bytes = match value {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        self.bytes(kind, bytes)
    }

    /// Adds a GID, of 16 bytes.
    pub fn gid(self, kind: u16, value: Gid) -> Request {
        self.bytes(kind, value.bytes().to_vec())
    }

    /// Returns the attributes as they are encoded in a message.
    pub fn emitted(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.0.as_slice().buffer_len()];
        self.0.as_slice().emit(&mut bytes);
        bytes
    }
}

/// The attributes of an answer, or nested in one of its attributes. Unknown ones are ignored: the
/// kernel may be newer.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// Wraps encoded attributes.
    pub fn new(bytes: &'a [u8]) -> Attributes<'a> {
        Attributes(bytes)
    }

    /// Iterates over the attributes as pairs of type and value.
    pub fn iter(self) -> impl Iterator<Item = Result<(u16, &'a [u8])>> {
        NlasIterator::new(self.0).map(|found| {
            let attribute = found?;
            let (kind, length) = (attribute.kind(), usize::from(attribute.length()));
            let value = attribute.into_inner().get(HEADER_LEN..length);
            Ok((
                kind,
                value.ok_or_else(|| Error::Answer(format!("attribute {kind} is cut off")))?,
            ))
        })
    }

    /// Returns the value of the first attribute of a type, if there is one.
    pub fn find(self, wanted: u16) -> Result<Option<&'a [u8]>> {
        for found in self.iter() {
            let (kind, value) = found?;
            if kind == wanted {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Returns the value of a mandatory attribute; fails if it is missing.
    pub fn require(self, wanted: u16) -> Result<&'a [u8]> {
        self.find(wanted)?
            .ok_or_else(|| Error::Answer(format!("attribute {wanted} is missing")))
    }

    /// Returns whether there is an attribute of that type.
    pub fn has(self, wanted: u16) -> Result<bool> {
        Ok(self.find(wanted)?.is_some())
    }

    /// Returns an attribute of one byte, an integer.
    pub fn u8(self, wanted: u16) -> Result<Option<u8>> {
        Ok(self.find(wanted)?.map(parse_u8).transpose()?)
    }

    /// Returns an attribute of two bytes, an integer.
    pub fn u16(self, wanted: u16) -> Result<Option<u16>> {
        Ok(self.find(wanted)?.map(parse_u16).transpose()?)
    }

    /// Returns an attribute of four bytes, an integer.
    pub fn u32(self, wanted: u16) -> Result<Option<u32>> {
        Ok(self.find(wanted)?.map(parse_u32).transpose()?)
    }

    /// Returns an attribute of eight bytes, an integer.
    pub fn u64(self, wanted: u16) -> Result<Option<u64>> {
        Ok(self.find(wanted)?.map(parse_u64).transpose()?)
    }

    /// Returns a string attribute, which may end with a zero byte.
    pub fn text(self, wanted: u16) -> Result<Option<String>> {
        let Some(value) = self.find(wanted)? else {
            return Ok(None);
        };
        let end = value
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(value.len());
        let text = value.get(..end).unwrap_or(value);
        Ok(Some(String::from_utf8_lossy(text).into_owned()))
    }

    /// Returns a mandatory IP address.
    pub fn address(self, wanted: u16) -> Result<IpAddr> {
        parse_address(self.require(wanted)?)
    }

    /// Returns a mandatory GID.
    pub fn gid(self, wanted: u16) -> Result<Gid> {
        parse_gid(self.require(wanted)?)
    }

    /// Returns the attributes nested in an attribute.
    pub fn nest(self, wanted: u16) -> Result<Option<Attributes<'a>>> {
        Ok(self.find(wanted)?.map(Attributes::new))
    }
}

/// Reads an IP address, of 4 or 16 bytes.
pub fn parse_address(value: &[u8]) -> Result<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(value) {
        Ok(bytes.into())
    } else if let Ok(bytes) = <[u8; 16]>::try_from(value) {
        Ok(bytes.into())
    } else {
        Err(Error::Answer(format!(
            "an address of {} bytes",
            value.len()
        )))
    }
}

/// Reads a GID, of 16 bytes.
pub fn parse_gid(value: &[u8]) -> Result<Gid> {
    <[u8; 16]>::try_from(value)
        .map(Gid::from_bytes)
        .map_err(|_| Error::Answer(format!("a GID of {} bytes", value.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let gid = Gid::from_bytes([0xfe, 0xc0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 3]);
        let bytes = Request::new()
            .address(1, "10.0.0.1".parse().unwrap())
            .gid(2, gid)
            .u8(3, 5)
            .u16(4, 0x8001)
            .u32(5, 72)
            .bytes(6, b"text\0".to_vec())
            .bytes(7, Vec::new())
            .emitted();
        assert_eq!(bytes.len() % 4, 0);
        let read = Attributes::new(&bytes);
        assert_eq!(read.address(1).unwrap().to_string(), "10.0.0.1");
        assert_eq!(read.gid(2).unwrap(), gid);
        assert_eq!(read.u8(3).unwrap(), Some(5));
        assert_eq!(read.u16(4).unwrap(), Some(0x8001));
        assert_eq!(read.u32(5).unwrap(), Some(72));
        assert_eq!(read.text(6).unwrap().as_deref(), Some("text"));
        assert!(read.has(7).unwrap() && !read.has(8).unwrap());
        assert_eq!(read.u64(8).unwrap(), None);
        assert!(read.require(8).is_err());
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let bytes = Request::new().u32(1, 1).emitted();
        for length in 1..bytes.len() {
            assert!(
                Attributes::new(&bytes[..length]).find(1).is_err(),
                "{length}"
            );
        }
        // A length below that of the header.
        assert!(Attributes::new(&[3, 0, 1, 0]).find(1).is_err());
        // Values of a wrong length.
        let bytes = Request::new().u16(1, 1).emitted();
        assert!(Attributes::new(&bytes).u32(1).is_err());
        assert!(Attributes::new(&bytes).address(1).is_err());
        assert!(Attributes::new(&bytes).gid(1).is_err());
    }
}
