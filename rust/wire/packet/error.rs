// SPDX-License-Identifier: GPL-2.0-only

//! The reasons why bytes are not a packet.

use core::fmt;

use super::super::lrh::LrhError;
use super::super::opcode::OpcodeError;
use super::MAX_PAYLOAD;

/// Why bytes are not a packet of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketError {
    /// A packet with a local route header that is missing or of another version.
    Link(LrhError),
    /// A packet that is shorter than its headers, by its own length field; that length in bytes.
    Short(usize),
    /// A packet that is longer than what came.
    Cut {
        /// The length in the local route header, in bytes.
        wanted: usize,
        /// The number of bytes that came.
        found: usize,
    },
    /// A frame with so many bytes after the packet, more than fill up a short one.
    Tail(usize),
    /// A raw packet, which has no queue pair.
    Raw,
    /// A packet with another version than 6 in its global route header; that version.
    RouteVersion(u8),
    /// A packet without a transport header after its global route header; the next header.
    NextHeader(u8),
    /// A packet with two route headers that contradict each other.
    RouteLength {
        /// The length in the global route header, in bytes.
        said: u16,
        /// The bytes that follow the global route header, by the local one.
        found: usize,
    },
    /// A packet of another version of the transport; that version.
    TransportVersion(u8),
    /// A packet of an unknown operation; its code.
    Operation(u8),
    /// A packet with fewer bytes of payload than its pad, which is this.
    Pad(u8),
    /// A packet with more payload than any MTU allows; its length in bytes.
    Payload(usize),
}

impl From<LrhError> for PacketError {
    fn from(error: LrhError) -> PacketError {
        PacketError::Link(error)
    }
}

impl From<OpcodeError> for PacketError {
    fn from(OpcodeError(number): OpcodeError) -> PacketError {
        PacketError::Operation(number)
    }
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketError::Link(error) => error.fmt(f),
            PacketError::Short(length) => {
                write!(f, "packet of {length} bytes is shorter than its headers")
            }
            PacketError::Cut { wanted, found } => {
                write!(f, "packet of {wanted} bytes, of which {found} came")
            }
            PacketError::Tail(length) => write!(f, "{length} bytes after the end of the packet"),
            PacketError::Raw => f.write_str("raw packet"),
            PacketError::RouteVersion(version) => {
                write!(f, "global route header of version {version}")
            }
            PacketError::NextHeader(number) => {
                write!(f, "global route header before protocol {number:#04x}")
            }
            PacketError::RouteLength { said, found } => write!(
                f,
                "global route header before {said} bytes by its own word, {found} by the packet's"
            ),
            PacketError::TransportVersion(version) => {
                write!(f, "transport header of version {version}")
            }
            PacketError::Operation(number) => OpcodeError(*number).fmt(f),
            PacketError::Pad(length) => write!(f, "pad of {length} bytes, more than the payload"),
            PacketError::Payload(length) => {
                write!(f, "payload of {length} bytes, more than {MAX_PAYLOAD}")
            }
        }
    }
}

impl core::error::Error for PacketError {}
