// SPDX-License-Identifier: GPL-2.0-only

//! The messages of communication management (IBTA 12.6, 12.8, 12.11).
//!
//! [`Message::parse`] sees a received datagram as one of eleven views, with functions that read
//! its fields. To send one, its module has a `Parameters` of the same names, and [`Parameters`] is
//! any of them: `build` writes the whole datagram, header and reserved fields included.
//!
//! "Local" in the name of a field is the side that sends the message, "remote" the one that gets
//! it. Fields of a byte or more have their own type here; those of less are runs of bits of
//! one mechanism, `wire::bits`.

use core::fmt;

use super::mad;
use super::mad::{
    Header,
    Mad,
    MadError, //
};

pub mod apr;
pub mod build;
pub mod comm_id;
pub mod drep;
pub mod dreq;
pub mod ece;
pub mod kind;
pub mod lap;
pub mod mra;
pub mod mtu;
pub mod path;
pub mod reason;
pub mod rej;
pub mod rep;
pub mod req;
pub mod rtu;
pub mod service_id;
pub mod sidr_rep;
pub mod sidr_req;
pub mod timeout;
pub mod transport;

pub use self::build::BuildError;
pub use self::comm_id::CommId;
pub use self::ece::Ece;
pub use self::kind::Kind;
pub use self::mtu::Mtu;
pub use self::path::Path;
pub use self::reason::Reason;
pub use self::service_id::ServiceId;
pub use self::timeout::Timeout;
pub use self::transport::Transport;

use apr::Apr;
use drep::Drep;
use dreq::Dreq;
use lap::Lap;
use mra::Mra;
use rej::Rej;
use rep::Rep;
use req::Req;
use rtu::Rtu;
use sidr_rep::SidrRep;
use sidr_req::SidrReq;

/// The version of the class that has these messages.
pub const CLASS_VERSION: u8 = 2;

/// Length in bytes of the additional information of a REJ, an APR, and a SIDR_REP.
pub const INFORMATION_LEN: usize = 72;

/// A received message of communication management.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Request for communication (IBTA 12.6.5).
    Req(&'a Req),
    /// Message receipt acknowledgment (IBTA 12.6.6).
    Mra(&'a Mra),
    /// Reject (IBTA 12.6.7).
    Rej(&'a Rej),
    /// Reply to a request for communication (IBTA 12.6.8).
    Rep(&'a Rep),
    /// Ready to use (IBTA 12.6.9).
    Rtu(&'a Rtu),
    /// Request for communication release (IBTA 12.6.10).
    Dreq(&'a Dreq),
    /// Reply to a request for communication release (IBTA 12.6.11).
    Drep(&'a Drep),
    /// Service ID resolution request (IBTA 12.11.1).
    SidrReq(&'a SidrReq),
    /// Service ID resolution response (IBTA 12.11.2).
    SidrRep(&'a SidrRep),
    /// Load alternate path (IBTA 12.8.1).
    Lap(&'a Lap),
    /// Alternate path response (IBTA 12.8.2).
    Apr(&'a Apr),
}

impl<'a> Message<'a> {
    /// Sees a received datagram as the message that it is. Reserved fields, and bytes after the end
    /// of the datagram, are ignored; values that are reserved are for the user of the message to
    /// judge.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if it is none of the eleven, or says that it has more additional information
    /// than there is room for.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, ParseError> {
        let mad = Mad::parse(bytes).map_err(ParseError::Mad)?;
        let header = mad.header();
        if header.class() != mad::CLASS_CM {
            return Err(ParseError::Class(header.class()));
        }
        if header.class_version() != CLASS_VERSION {
            return Err(ParseError::ClassVersion(header.class_version()));
        }
        if header.method() != mad::METHOD_SEND {
            return Err(ParseError::Method(header.method()));
        }
        let message = Message::view(Kind::try_from(header.attribute())?, mad);
        message.check_information()?;
        Ok(message)
    }

    /// Returns the sender's communication ID of the exchange. A SIDR_REP has only the requester's.
    pub fn sender(self) -> CommId {
        match self {
            Message::Req(req) => req.local_comm_id(),
            Message::Mra(mra) => mra.local_comm_id(),
            Message::Rej(rej) => rej.local_comm_id(),
            Message::Rep(rep) => rep.local_comm_id(),
            Message::Rtu(rtu) => rtu.local_comm_id(),
            Message::Dreq(dreq) => dreq.local_comm_id(),
            Message::Drep(drep) => drep.local_comm_id(),
            Message::SidrReq(req) => req.request_id(),
            Message::SidrRep(rep) => rep.request_id(),
            Message::Lap(lap) => lap.local_comm_id(),
            Message::Apr(apr) => apr.local_comm_id(),
        }
    }

    /// Sees the datagram as a message of this kind, unjudged.
    fn view(kind: Kind, mad: &'a Mad) -> Message<'a> {
        match kind {
            Kind::Req => Message::Req(zerocopy::transmute_ref!(mad)),
            Kind::Mra => Message::Mra(zerocopy::transmute_ref!(mad)),
            Kind::Rej => Message::Rej(zerocopy::transmute_ref!(mad)),
            Kind::Rep => Message::Rep(zerocopy::transmute_ref!(mad)),
            Kind::Rtu => Message::Rtu(zerocopy::transmute_ref!(mad)),
            Kind::Dreq => Message::Dreq(zerocopy::transmute_ref!(mad)),
            Kind::Drep => Message::Drep(zerocopy::transmute_ref!(mad)),
            Kind::SidrReq => Message::SidrReq(zerocopy::transmute_ref!(mad)),
            Kind::SidrRep => Message::SidrRep(zerocopy::transmute_ref!(mad)),
            Kind::Lap => Message::Lap(zerocopy::transmute_ref!(mad)),
            Kind::Apr => Message::Apr(zerocopy::transmute_ref!(mad)),
        }
    }

    /// Checks how much additional information the message says it has.
    fn check_information(self) -> Result<(), ParseError> {
        let length = match self {
            Message::Rej(rej) => rej.ari_length(),
            Message::Apr(apr) => apr.information_length(),
            Message::SidrRep(reply) => reply.information_length(),
            _ => 0,
        };
        if usize::from(length) > INFORMATION_LEN {
            return Err(ParseError::Information {
                kind: self.kind(),
                length,
            });
        }
        Ok(())
    }

    /// The kind of the message.
    pub const fn kind(self) -> Kind {
        match self {
            Message::Req(_) => Kind::Req,
            Message::Mra(_) => Kind::Mra,
            Message::Rej(_) => Kind::Rej,
            Message::Rep(_) => Kind::Rep,
            Message::Rtu(_) => Kind::Rtu,
            Message::Dreq(_) => Kind::Dreq,
            Message::Drep(_) => Kind::Drep,
            Message::SidrReq(_) => Kind::SidrReq,
            Message::SidrRep(_) => Kind::SidrRep,
            Message::Lap(_) => Kind::Lap,
            Message::Apr(_) => Kind::Apr,
        }
    }

    /// The header, with the transaction identifier.
    pub const fn header(self) -> &'a Header {
        match self {
            Message::Req(message) => message.header(),
            Message::Mra(message) => message.header(),
            Message::Rej(message) => message.header(),
            Message::Rep(message) => message.header(),
            Message::Rtu(message) => message.header(),
            Message::Dreq(message) => message.header(),
            Message::Drep(message) => message.header(),
            Message::SidrReq(message) => message.header(),
            Message::SidrRep(message) => message.header(),
            Message::Lap(message) => message.header(),
            Message::Apr(message) => message.header(),
        }
    }

    /// The private data of the sender's consumer.
    pub const fn private_data(self) -> &'a [u8] {
        match self {
            Message::Req(message) => message.private_data(),
            Message::Mra(message) => message.private_data(),
            Message::Rej(message) => message.private_data(),
            Message::Rep(message) => message.private_data(),
            Message::Rtu(message) => message.private_data(),
            Message::Dreq(message) => message.private_data(),
            Message::Drep(message) => message.private_data(),
            Message::SidrReq(message) => message.private_data(),
            Message::SidrRep(message) => message.private_data(),
            Message::Lap(message) => message.private_data(),
            Message::Apr(message) => message.private_data(),
        }
    }
}

/// The parameters from which any message is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parameters<'a> {
    /// Request for communication (IBTA 12.6.5).
    Req(req::Parameters<'a>),
    /// Message receipt acknowledgment (IBTA 12.6.6).
    Mra(mra::Parameters<'a>),
    /// Reject (IBTA 12.6.7).
    Rej(rej::Parameters<'a>),
    /// Reply to a request for communication (IBTA 12.6.8).
    Rep(rep::Parameters<'a>),
    /// Ready to use (IBTA 12.6.9).
    Rtu(rtu::Parameters<'a>),
    /// Request for communication release (IBTA 12.6.10).
    Dreq(dreq::Parameters<'a>),
    /// Reply to a request for communication release (IBTA 12.6.11).
    Drep(drep::Parameters<'a>),
    /// Service ID resolution request (IBTA 12.11.1).
    SidrReq(sidr_req::Parameters<'a>),
    /// Service ID resolution response (IBTA 12.11.2).
    SidrRep(sidr_rep::Parameters<'a>),
    /// Load alternate path (IBTA 12.8.1).
    Lap(lap::Parameters<'a>),
    /// Alternate path response (IBTA 12.8.2).
    Apr(apr::Parameters<'a>),
}

impl Parameters<'_> {
    /// Builds the message with this transaction identifier.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is too much additional information or private data; nothing is
    /// written then.
    pub fn build<'b>(&self, tid: u64, out: impl Into<mad::Blank<'b>>) -> Result<(), BuildError> {
        match self {
            Parameters::Req(parameters) => parameters.build(tid, out),
            Parameters::Mra(parameters) => parameters.build(tid, out),
            Parameters::Rej(parameters) => parameters.build(tid, out),
            Parameters::Rep(parameters) => parameters.build(tid, out),
            Parameters::Rtu(parameters) => parameters.build(tid, out),
            Parameters::Dreq(parameters) => parameters.build(tid, out),
            Parameters::Drep(parameters) => parameters.build(tid, out),
            Parameters::SidrReq(parameters) => parameters.build(tid, out),
            Parameters::SidrRep(parameters) => parameters.build(tid, out),
            Parameters::Lap(parameters) => parameters.build(tid, out),
            Parameters::Apr(parameters) => parameters.build(tid, out),
        }
    }
}

/// Why a datagram is not a message of communication management.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// A datagram that is no management datagram.
    Mad(MadError),
    /// A datagram of another management class, which is this one.
    Class(u8),
    /// A message of another version of the class, which is this one.
    ClassVersion(u8),
    /// A message with a method other than `Send()`.
    Method(u8),
    /// A message with an attribute that is none of [`Kind`].
    Attribute(u16),
    /// A message with additional information that is too long by its length field.
    Information {
        /// The kind of the message.
        kind: Kind,
        /// The length in the message, in bytes.
        length: u8,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::Mad(error) => fmt::Display::fmt(error, f),
            ParseError::Class(class) => write!(
                f,
                "management class {class:#04x} is not communication management"
            ),
            ParseError::ClassVersion(version) => write!(
                f,
                "communication management of version {version}, not {CLASS_VERSION}"
            ),
            ParseError::Method(method) => {
                write!(f, "communication management has no method {method:#04x}")
            }
            ParseError::Attribute(number) => {
                write!(f, "communication management has no message {number:#06x}")
            }
            ParseError::Information { kind, length } => write!(
                f,
                "{kind} with {length} bytes of additional information, where it has \
                 {INFORMATION_LEN}"
            ),
        }
    }
}

impl core::error::Error for ParseError {}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_cm))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;
    use comm_id::CommId;
    use reason::Reason;
    use rej::Rejected;

    const TID: u64 = 0x1122_3344_5566_7788;

    /// A REJ that says "ab" in addition, and "xyz" as private data.
    const REJ: Parameters<'_> = Parameters::Rej(rej::Parameters {
        local_comm_id: CommId::new(0x0102_0304),
        remote_comm_id: CommId::new(0x0506_0708),
        rejected: Rejected::Rep,
        reason: Reason::CONSUMER_DEFINED,
        ari: b"ab",
        private_data: b"xyz",
    });

    fn built() -> [u8; mad::LEN] {
        let mut bytes = [0xee; mad::LEN];
        assert_eq!(REJ.build(TID, &mut bytes), Ok(()));
        bytes
    }

    #[test]
    fn what_is_built_is_read() {
        let bytes = built();
        let golden = [
            0x01,
            0x07,
            0x02,
            0x03,
            0,
            0,
            0,
            0,
            0x11,
            0x22,
            0x33,
            0x44,
            0x55,
            0x66,
            0x77,
            0x88, //
            0x00,
            0x12,
            0,
            0,
            0,
            0,
            0,
            0,
            1,
            2,
            3,
            4,
            5,
            6,
            7,
            8, //
            0b0100_0000,
            0b0000_0100,
            0,
            28,
            b'a',
            b'b',
            0,
            0,
        ];
        assert!(bytes.starts_with(&golden));

        let message = Message::parse(&bytes);
        assert_eq!(message.map(Message::kind), Ok(Kind::Rej));
        assert_eq!(message.map(|message| message.header().tid()), Ok(TID));
        let text = message.map(Message::private_data).unwrap_or_default();
        assert_eq!(text.len(), rej::PRIVATE_DATA_LEN);
        assert!(text.starts_with(b"xyz\0"));
        let rej = match message {
            Ok(Message::Rej(rej)) => Some(rej),
            _ => None,
        };
        assert_eq!(rej.map(Rej::local_comm_id), Some(CommId::new(0x0102_0304)));
        assert_eq!(message.map(Message::sender), Ok(CommId::new(0x0102_0304)));
        assert_eq!(rej.map(Rej::remote_comm_id), Some(CommId::new(0x0506_0708)));
        assert_eq!(rej.map(Rej::rejected), Some(Rejected::Rep));
        assert_eq!(rej.map(Rej::reason), Some(Reason::CONSUMER_DEFINED));
        assert_eq!(rej.map(Rej::ari), Some(&b"ab"[..]));
        assert_eq!(rej.and_then(Rej::ca_guid), None);
    }

    #[test]
    fn what_is_no_message() {
        let too_long = ParseError::Information {
            kind: Kind::Rej,
            length: 73,
        };
        // Which byte, its value, what is wrong.
        let table = [
            (0, 0x80, ParseError::Mad(MadError::BaseVersion(0x80))),
            (1, 0x03, ParseError::Class(0x03)),
            (2, 0x01, ParseError::ClassVersion(1)),
            (3, 0x83, ParseError::Method(0x83)),
            (16, 0x01, ParseError::Attribute(0x0112)),
            (17, 0x0f, ParseError::Attribute(0x000f)),
            (17, 0x1b, ParseError::Attribute(0x001b)),
            (33, 73 << 1, too_long),
        ];
        for (index, value, error) in table {
            let mut bytes = built();
            if let Some(byte) = bytes.get_mut(index) {
                *byte = value;
            }
            assert_eq!(Message::parse(&bytes), Err(error));
        }
        let bytes = built();
        let short = bytes.get(..255).unwrap_or(&bytes);
        assert_eq!(
            Message::parse(short),
            Err(ParseError::Mad(MadError::Short(255)))
        );
    }

    #[test]
    fn what_does_not_fit() {
        let mut bytes = [0xee; mad::LEN];
        let mut parameters = drep::Parameters {
            local_comm_id: CommId::ZERO,
            remote_comm_id: CommId::ZERO,
            private_data: &[1; 224],
        };
        assert_eq!(parameters.build(TID, &mut bytes), Ok(()));
        parameters.private_data = &[1; 225];
        let error = BuildError::PrivateData {
            kind: Kind::Drep,
            length: 225,
        };
        let before = bytes;
        assert_eq!(parameters.build(0, &mut bytes), Err(error));
        assert_eq!(bytes, before);
    }
}
