// SPDX-License-Identifier: GPL-2.0-only

//! The messages of connection management by number.

use core::fmt;

use super::{
    apr,
    drep,
    dreq,
    lap,
    mra,
    rej,
    rep,
    req,
    rtu,
    sidr_rep,
    sidr_req,
    ParseError, //
};

/// A kind of message: the attribute identifier of its header (IBTA 12.6.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u16)]
pub enum Kind {
    /// Request for communication (IBTA 12.6.5).
    Req = 0x10,
    /// Message receipt acknowledgment (IBTA 12.6.6).
    Mra = 0x11,
    /// Reject (IBTA 12.6.7).
    Rej = 0x12,
    /// Reply to a request for communication (IBTA 12.6.8).
    Rep = 0x13,
    /// Ready to use (IBTA 12.6.9).
    Rtu = 0x14,
    /// Request for communication release (IBTA 12.6.10).
    Dreq = 0x15,
    /// Reply to a request for communication release (IBTA 12.6.11).
    Drep = 0x16,
    /// Service ID resolution request (IBTA 12.11.1).
    SidrReq = 0x17,
    /// Service ID resolution response (IBTA 12.11.2).
    SidrRep = 0x18,
    /// Load alternate path (IBTA 12.8.1).
    Lap = 0x19,
    /// Alternate path response (IBTA 12.8.2).
    Apr = 0x1a,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Kind; 11] = [
        Kind::Req,
        Kind::Mra,
        Kind::Rej,
        Kind::Rep,
        Kind::Rtu,
        Kind::Dreq,
        Kind::Drep,
        Kind::SidrReq,
        Kind::SidrRep,
        Kind::Lap,
        Kind::Apr,
    ];

    /// The attribute identifier, host byte order.
    pub const fn get(self) -> u16 {
        self as u16
    }

    /// The number of bytes of private data that the message has.
    pub const fn private_data_len(self) -> usize {
        match self {
            Kind::Req => req::PRIVATE_DATA_LEN,
            Kind::Mra => mra::PRIVATE_DATA_LEN,
            Kind::Rej => rej::PRIVATE_DATA_LEN,
            Kind::Rep => rep::PRIVATE_DATA_LEN,
            Kind::Rtu => rtu::PRIVATE_DATA_LEN,
            Kind::Dreq => dreq::PRIVATE_DATA_LEN,
            Kind::Drep => drep::PRIVATE_DATA_LEN,
            Kind::SidrReq => sidr_req::PRIVATE_DATA_LEN,
            Kind::SidrRep => sidr_rep::PRIVATE_DATA_LEN,
            Kind::Lap => lap::PRIVATE_DATA_LEN,
            Kind::Apr => apr::PRIVATE_DATA_LEN,
        }
    }
}

impl TryFrom<u16> for Kind {
    type Error = ParseError;

    /// Takes the attribute identifier in host byte order.
    fn try_from(attribute: u16) -> Result<Kind, ParseError> {
        Kind::ALL
            .into_iter()
            .find(|kind| kind.get() == attribute)
            .ok_or(ParseError::Attribute(attribute))
    }
}

/// Writes the name as the specification does.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Req => "REQ",
            Kind::Mra => "MRA",
            Kind::Rej => "REJ",
            Kind::Rep => "REP",
            Kind::Rtu => "RTU",
            Kind::Dreq => "DREQ",
            Kind::Drep => "DREP",
            Kind::SidrReq => "SIDR_REQ",
            Kind::SidrRep => "SIDR_REP",
            Kind::Lap => "LAP",
            Kind::Apr => "APR",
        })
    }
}
