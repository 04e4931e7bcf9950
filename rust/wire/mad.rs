// SPDX-License-Identifier: GPL-2.0-only

//! Management datagrams (IBTA 13.4): the header that those of all classes begin with.

use core::fmt;
use zerocopy::byteorder::big_endian::{
    U16,
    U32,
    U64, //
};
use zerocopy::FromBytes as _;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

/// Length in bytes of a management datagram.
pub const LEN: usize = 256;

/// Length in bytes of the header.
pub const HEADER_LEN: usize = 24;

/// Length in bytes of what follows the header.
pub const DATA_LEN: usize = LEN - HEADER_LEN;

/// The only base version of a header of this form (IBTA 13.4.2).
pub const BASE_VERSION: u8 = 1;

/// The class of subnet management, routed by local identifiers (IBTA 13.4.4).
pub const CLASS_SUBNET_LID: u8 = 0x01;

/// The class of subnet management, routed by the ports on the way (IBTA 13.4.4).
pub const CLASS_SUBNET_DIRECTED: u8 = 0x81;

/// The class of performance management (IBTA 13.4.4).
pub const CLASS_PERFORMANCE: u8 = 0x04;

/// The class of communication management (IBTA 13.4.4).
pub const CLASS_CM: u8 = 0x07;

/// The method `Get()` (IBTA 13.4.5).
pub const METHOD_GET: u8 = 0x01;

/// The method `Set()` (IBTA 13.4.5).
pub const METHOD_SET: u8 = 0x02;

/// The method `Send()` (IBTA 13.4.5): nothing is asked for, and nothing answered.
pub const METHOD_SEND: u8 = 0x03;

/// The method `Trap()` (IBTA 13.4.5).
pub const METHOD_TRAP: u8 = 0x05;

/// The method `TrapRepress()` (IBTA 13.4.5).
pub const METHOD_TRAP_REPRESS: u8 = 0x07;

/// The method `GetResp()` (IBTA 13.4.5), which answers both `Get()` and `Set()`.
pub const METHOD_GET_RESP: u8 = 0x81;

/// The bit of a method that answers (IBTA 13.4.5).
pub const METHOD_RESPONSE: u8 = 0x80;

/// Statuses that every class has (IBTA 13.4.7).
pub mod status {
    /// Success: the request was carried out.
    pub const OK: u16 = 0;
    /// The base or the class version is not known.
    pub const BAD_VERSION: u16 = 1 << 2;
    /// The method is not known.
    pub const BAD_METHOD: u16 = 2 << 2;
    /// The attribute does not go with this method, or is not known.
    pub const BAD_ATTRIBUTE: u16 = 3 << 2;
    /// A field of the attribute, or its modifier, has a value that it cannot have.
    pub const BAD_FIELD: u16 = 7 << 2;
}

/// The memory of a datagram, all zeros, for a message to be built in.
#[derive(Debug)]
pub struct Blank<'a>(&'a mut [u8; LEN]);

impl<'a> Blank<'a> {
    /// Takes memory that is all zeros already, as fresh memory is. What is not zero there would be
    /// sent.
    pub fn zeroed(bytes: &'a mut [u8; LEN]) -> Self {
        debug_assert!(bytes.iter().all(|byte| *byte == 0));
        Self(bytes)
    }

    /// Returns the memory, which is zero.
    pub fn into_bytes(self) -> &'a mut [u8; LEN] {
        self.0
    }
}

impl<'a> From<&'a mut [u8; LEN]> for Blank<'a> {
    /// Clears memory that may have anything in it.
    fn from(bytes: &'a mut [u8; LEN]) -> Self {
        bytes.fill(0);
        Self(bytes)
    }
}

const _: () = assert!(size_of::<Header>() == HEADER_LEN);
const _: () = assert!(size_of::<Mad>() == LEN);

/// The fields of the header of a message of some class, besides the fixed base version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subject {
    /// Management class, [`CLASS_CM`] for example.
    pub class: u8,
    /// Version of the class.
    pub class_version: u8,
    /// Method, with [`METHOD_RESPONSE`] in an answer.
    pub method: u8,
    /// Transaction identifier, which an answer repeats.
    pub tid: u64,
    /// Attribute identifier, of the class's numbers.
    pub attribute: u16,
    /// Attribute modifier, as the attribute defines it.
    pub modifier: u32,
}

/// The header of a management datagram (IBTA 13.4.3).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Header {
    base_version: u8,
    class: u8,
    class_version: u8,
    method: u8,
    status: U16,
    class_specific: U16,
    tid: U64,
    attribute: U16,
    reserved: U16,
    modifier: U32,
}

impl Header {
    /// A header with status zero.
    pub const fn new(subject: Subject) -> Header {
        Header {
            base_version: BASE_VERSION,
            class: subject.class,
            class_version: subject.class_version,
            method: subject.method,
            status: U16::ZERO,
            class_specific: U16::ZERO,
            tid: U64::new(subject.tid),
            attribute: U16::new(subject.attribute),
            reserved: U16::ZERO,
            modifier: U32::new(subject.modifier),
        }
    }

    /// The base version, which should be [`BASE_VERSION`].
    pub const fn base_version(&self) -> u8 {
        self.base_version
    }

    /// The management class, [`CLASS_CM`] for example.
    pub const fn class(&self) -> u8 {
        self.class
    }

    /// The version of the class.
    pub const fn class_version(&self) -> u8 {
        self.class_version
    }

    /// The method, response bit included.
    pub const fn method(&self) -> u8 {
        self.method
    }

    /// The status of a response.
    pub const fn status(&self) -> u16 {
        self.status.get()
    }

    /// The field that each class defines for itself.
    pub const fn class_specific(&self) -> u16 {
        self.class_specific.get()
    }

    /// Writes the method, with [`METHOD_RESPONSE`] in an answer.
    pub fn set_method(&mut self, method: u8) {
        self.method = method;
    }

    /// Writes the status, [`status::OK`] or an error.
    pub fn set_status(&mut self, status: u16) {
        self.status.set(status);
    }

    /// Writes the field that each class defines for itself.
    pub fn set_class_specific(&mut self, value: u16) {
        self.class_specific.set(value);
    }

    /// The transaction identifier, by which a response is told from others.
    pub const fn tid(&self) -> u64 {
        self.tid.get()
    }

    /// The attribute identifier: of what kind the data after the header is.
    pub const fn attribute(&self) -> u16 {
        self.attribute.get()
    }

    /// The attribute modifier, as the attribute defines it.
    pub const fn modifier(&self) -> u32 {
        self.modifier.get()
    }
}

/// A management datagram of any class.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Mad {
    header: Header,
    data: [u8; DATA_LEN],
}

impl Mad {
    /// A view of a management datagram, of which only the base version is judged. Bytes after its
    /// end are ignored.
    ///
    /// # Errors
    ///
    /// [`MadError`] if the datagram is not all there or of another base version.
    pub fn parse(bytes: &[u8]) -> Result<&Mad, MadError> {
        let (mad, _rest) = Mad::ref_from_prefix(bytes).map_err(|_| MadError::Short(bytes.len()))?;
        if mad.header.base_version != BASE_VERSION {
            return Err(MadError::BaseVersion(mad.header.base_version));
        }
        Ok(mad)
    }

    /// The header of the datagram.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The header, to be written.
    pub fn header_mut(&mut self) -> &mut Header {
        &mut self.header
    }

    /// The bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// The data that follows the header.
    pub const fn data(&self) -> &[u8; DATA_LEN] {
        &self.data
    }
}

/// Why bytes are not a management datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MadError {
    /// A datagram that ends early; its length in bytes.
    Short(usize),
    /// A datagram with a header of another form; the base version.
    BaseVersion(u8),
}

impl fmt::Display for MadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MadError::Short(length) => {
                write!(f, "management datagram of {length} bytes, not {LEN}")
            }
            MadError::BaseVersion(version) => write!(
                f,
                "management datagram of base version {version}, not {BASE_VERSION}"
            ),
        }
    }
}

impl core::error::Error for MadError {}

/// Reads an attribute of that form at the beginning of its place in a datagram; what does not fit
/// there is zero.
pub(super) fn read_attribute<A>(place: &[u8]) -> A
where
    A: zerocopy::FromBytes,
{
    A::read_from_prefix(place).map_or_else(|_| A::new_zeroed(), |(attribute, _)| attribute)
}

/// Writes an attribute there, and zeros after it.
pub(super) fn write_attribute<A>(place: &mut [u8], attribute: &A)
where
    A: zerocopy::IntoBytes + zerocopy::Immutable,
{
    place.fill(0);
    for (byte, value) in place.iter_mut().zip(attribute.as_bytes()) {
        *byte = *value;
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_mad))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    const SUBJECT: Subject = Subject {
        class: 0x07,
        class_version: 2,
        method: 0x03,
        tid: 0x1122_3344_5566_7788,
        attribute: 0x0010,
        modifier: 0x99aa_bbcc,
    };

    const HEADER: [u8; HEADER_LEN] = [
        0x01, 0x07, 0x02, 0x03, 0, 0, 0, 0, //
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, //
        0x00, 0x10, 0, 0, 0x99, 0xaa, 0xbb, 0xcc,
    ];

    /// A header and a data of one byte repeated.
    fn datagram(header: [u8; HEADER_LEN], fill: u8) -> [u8; LEN] {
        let mut bytes = [fill; LEN];
        if let Some(start) = bytes.first_chunk_mut() {
            *start = header;
        }
        bytes
    }

    #[test]
    fn header_on_the_wire() {
        let header: [u8; HEADER_LEN] = zerocopy::transmute!(Header::new(SUBJECT));
        assert_eq!(header, HEADER);
    }

    #[test]
    fn fields_of_a_header() {
        let mut bytes = datagram(HEADER, 0xee);
        for (index, value) in [(4, 0x12), (5, 0x34), (6, 0x56), (7, 0x78)] {
            if let Some(byte) = bytes.get_mut(index) {
                *byte = value;
            }
        }
        let mad = Mad::parse(&bytes);
        assert_eq!(mad.map(Mad::data), Ok(&[0xee; DATA_LEN]));
        let header = mad.map(Mad::header);
        assert_eq!(header.map(Header::base_version), Ok(1));
        assert_eq!(header.map(Header::class), Ok(SUBJECT.class));
        assert_eq!(header.map(Header::class_version), Ok(SUBJECT.class_version));
        assert_eq!(header.map(Header::method), Ok(SUBJECT.method));
        assert_eq!(header.map(Header::status), Ok(0x1234));
        assert_eq!(header.map(Header::class_specific), Ok(0x5678));
        assert_eq!(header.map(Header::tid), Ok(SUBJECT.tid));
        assert_eq!(header.map(Header::attribute), Ok(SUBJECT.attribute));
        assert_eq!(header.map(Header::modifier), Ok(SUBJECT.modifier));
    }

    #[test]
    fn what_is_no_datagram() {
        let bytes = datagram(HEADER, 0);
        for length in [0, 1, HEADER_LEN - 1, HEADER_LEN, LEN - 1] {
            let short = bytes.get(..length).unwrap_or(&bytes);
            assert_eq!(Mad::parse(short), Err(MadError::Short(length)));
        }
        for version in [0, 2, 0x80, 0xff] {
            let mut header = HEADER;
            if let Some(first) = header.first_mut() {
                *first = version;
            }
            let error = Err(MadError::BaseVersion(version));
            assert_eq!(Mad::parse(&datagram(header, 0)), error);
        }
    }
}
