// SPDX-License-Identifier: GPL-2.0-only

//! A message of the family with its attributes, which are not parsed.

use crate::netlink::family;
use netlink_packet_core::{
    DecodeError,
    Emitable,
    ParseableParametrized, //
};
use netlink_packet_generic::{
    GenlFamily,
    GenlHeader, //
};

/// An operation with its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The operation, of [`family::operation`].
    pub operation: u8,
    /// The attributes, as [`Attributes`](crate::netlink::attribute::Attributes) reads them.
    pub attributes: Vec<u8>,
}

impl GenlFamily for Message {
    fn family_name() -> &'static str {
        family::NAME
    }

    fn command(&self) -> u8 {
        self.operation
    }

    fn version(&self) -> u8 {
        family::VERSION
    }
}

impl Emitable for Message {
    fn buffer_len(&self) -> usize {
        self.attributes.len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.attributes);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Message {
    fn parse_with_param(bytes: &[u8], header: GenlHeader) -> Result<Message, DecodeError> {
        Ok(Message {
            operation: header.cmd,
            attributes: bytes.to_vec(),
        })
    }
}
