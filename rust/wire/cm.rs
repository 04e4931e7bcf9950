// SPDX-License-Identifier: GPL-2.0-only

//! The messages of communication management (IBTA 12.6, 12.8, 12.11).
//!
//! [`Message::parse`] sees a received datagram as one of eleven views, whose functions read its
//! fields. To send one, its module has a `Parameters` of the same names, and [`Parameters`] is any
//! of them: `build` writes the whole datagram, header and reserved fields included.
//!
//! "Local" in the name of a field is the side that sends the message, "remote" the one that gets
//! it. Fields of a byte or more have their own type here; those of less are [`super::bits`].

use core::fmt;

use super::mad;
use super::mad::{
    Header,
    Mad,
    MadError, //
};

// As in the root, the paths are spelled out: a file that was named so has its modules beside it.
#[path = "cm/apr.rs"]
pub mod apr;
#[path = "cm/build.rs"]
pub mod build;
#[path = "cm/comm_id.rs"]
pub mod comm_id;
#[path = "cm/drep.rs"]
pub mod drep;
#[path = "cm/dreq.rs"]
pub mod dreq;
#[path = "cm/ece.rs"]
pub mod ece;
#[path = "cm/kind.rs"]
pub mod kind;
#[path = "cm/lap.rs"]
pub mod lap;
#[path = "cm/mra.rs"]
pub mod mra;
#[path = "cm/mtu.rs"]
pub mod mtu;
#[path = "cm/path.rs"]
pub mod path;
#[path = "cm/reason.rs"]
pub mod reason;
#[path = "cm/rej.rs"]
pub mod rej;
#[path = "cm/rep.rs"]
pub mod rep;
#[path = "cm/req.rs"]
pub mod req;
#[path = "cm/rtu.rs"]
pub mod rtu;
#[path = "cm/service_id.rs"]
pub mod service_id;
#[path = "cm/sidr_rep.rs"]
pub mod sidr_rep;
#[path = "cm/sidr_req.rs"]
pub mod sidr_req;
#[path = "cm/timeout.rs"]
pub mod timeout;
#[path = "cm/transport.rs"]
pub mod transport;

use apr::Apr;
use build::BuildError;
use drep::Drep;
use dreq::Dreq;
use kind::Kind;
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

/// A received message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Request for communication.
    Req(&'a Req),
    /// Message receipt acknowledgment.
    Mra(&'a Mra),
    /// Reject.
    Rej(&'a Rej),
    /// Reply to a request for communication.
    Rep(&'a Rep),
    /// Ready to use.
    Rtu(&'a Rtu),
    /// Request for communication release.
    Dreq(&'a Dreq),
    /// Reply to a request for communication release.
    Drep(&'a Drep),
    /// Service ID resolution request.
    SidrReq(&'a SidrReq),
    /// Service ID resolution response.
    SidrRep(&'a SidrRep),
    /// Load alternate path.
    Lap(&'a Lap),
    /// Alternate path response.
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

    /// Which message it is.
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

    /// What the consumer at the other side says.
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

/// What any message is built from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parameters<'a> {
    /// Request for communication.
    Req(req::Parameters<'a>),
    /// Message receipt acknowledgment.
    Mra(mra::Parameters<'a>),
    /// Reject.
    Rej(rej::Parameters<'a>),
    /// Reply to a request for communication.
    Rep(rep::Parameters<'a>),
    /// Ready to use.
    Rtu(rtu::Parameters<'a>),
    /// Request for communication release.
    Dreq(dreq::Parameters<'a>),
    /// Reply to a request for communication release.
    Drep(drep::Parameters<'a>),
    /// Service ID resolution request.
    SidrReq(sidr_req::Parameters<'a>),
    /// Service ID resolution response.
    SidrRep(sidr_rep::Parameters<'a>),
    /// Load alternate path.
    Lap(lap::Parameters<'a>),
    /// Alternate path response.
    Apr(apr::Parameters<'a>),
}

impl Parameters<'_> {
    /// Builds the message with this transaction identifier.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is too much additional information or private data; nothing is
    /// written then.
    pub fn build(&self, tid: u64, out: &mut [u8; mad::LEN]) -> Result<(), BuildError> {
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
    /// It is no management datagram.
    Mad(MadError),
    /// It is of another class.
    Class(u8),
    /// It is of another version of the class.
    ClassVersion(u8),
    /// Its method is not `Send()`.
    Method(u8),
    /// Its attribute is none of [`Kind`].
    Attribute(u16),
    /// It says that it has more additional information than [`INFORMATION_LEN`].
    Information {
        /// The message.
        kind: Kind,
        /// The length that it says.
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
                "{kind} with {length} bytes of additional information, where it has {INFORMATION_LEN}"
            ),
        }
    }
}

impl core::error::Error for ParseError {}
