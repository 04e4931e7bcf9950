// SPDX-License-Identifier: GPL-2.0-only

//! A packet to be written: its headers, where its parts will be, and its bytes.

use core::fmt;

use super::super::bth;
use super::super::bth::{
    Bth,
    Transport, //
};
use super::super::grh;
use super::super::grh::{
    Addresses,
    Grh,
    Route, //
};
use super::super::icrc;
use super::super::icrc::Icrc;
use super::super::lid::Lid;
use super::super::lrh;
use super::super::lrh::{
    Link,
    Lrh,
    Next, //
};
use super::super::opcode::Opcode;
use super::writer::Writer;
use super::{
    Extension,
    MAX_PAYLOAD, //
};

/// The global route of a packet to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Global {
    /// Traffic class, 8 bits.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Routers the packet may still pass.
    pub hop_limit: u8,
    /// The GIDs of both ends.
    pub addresses: Addresses,
}

/// The headers of a packet to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Virtual lane, 4 bits.
    pub vl: u8,
    /// Service level, 4 bits.
    pub sl: u8,
    /// The LID that the packet goes to.
    pub dlid: Lid,
    /// The LID that the packet comes from.
    pub slid: Lid,
    /// The global route, if it has one.
    pub global: Option<Global>,
    /// The base transport header. What it says of the pad is made right.
    pub transport: Transport,
    /// The headers after it: those of the operation, no others.
    pub extension: Extension,
}

/// The lengths of the parts of a packet, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Length of the headers: where the payload begins.
    pub headers: usize,
    /// Length of the payload.
    pub payload: usize,
    /// Length of the zeros after it, which fill its last word.
    pub pad: usize,
}

impl Layout {
    /// The offset at which the invariant CRC begins.
    pub const fn icrc(&self) -> usize {
        self.headers + self.payload + self.pad
    }

    /// Length of the packet.
    pub const fn total(&self) -> usize {
        self.icrc() + icrc::LEN
    }
}

impl Outgoing {
    /// Returns the layout of the packet with a payload of that length.
    ///
    /// # Errors
    ///
    /// [`BuildError::Payload`] if it is longer than any MTU.
    pub fn layout(&self, payload: usize) -> Result<Layout, BuildError> {
        if payload > MAX_PAYLOAD {
            return Err(BuildError::Payload(payload));
        }
        let global = if self.global.is_some() { grh::LEN } else { 0 };
        Ok(Layout {
            headers: lrh::LEN + global + bth::LEN + Extension::len_of(self.transport.opcode),
            payload,
            pad: payload.wrapping_neg() % lrh::WORD,
        })
    }

    /// Writes the headers of a packet with a payload of that length at the beginning of the
    /// buffer. The payload, its pad and the CRC are left to the caller.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the payload is too long, the extension is not that of the operation, or
    /// the buffer does not hold the headers.
    pub fn write(&self, payload: usize, buffer: &mut [u8]) -> Result<Layout, BuildError> {
        let layout = self.layout(payload)?;
        if !self.extension.is_of(self.transport.opcode) {
            return Err(BuildError::Extension(self.transport.opcode));
        }
        self.write_headers(layout, &mut Writer::new(buffer))
            .ok_or(BuildError::Buffer)?;
        Ok(layout)
    }

    fn write_headers(&self, layout: Layout, writer: &mut Writer<'_>) -> Option<()> {
        let total = layout.total();
        let link = Link {
            vl: self.vl,
            sl: self.sl,
            next: match self.global {
                Some(_) => Next::Global,
                None => Next::Transport,
            },
            dlid: self.dlid,
            slid: self.slid,
            words: u16::try_from(total / lrh::WORD).ok()?,
        };
        writer.put(Some(Lrh::new(link).bytes()))?;
        if let Some(global) = self.global {
            let route = Route {
                traffic_class: global.traffic_class,
                flow_label: global.flow_label,
                // The invariant CRC counts, and of the headers only those behind this one.
                payload_length: u16::try_from(total - lrh::LEN - grh::LEN).ok()?,
                hop_limit: global.hop_limit,
                next_header: grh::NEXT_HEADER_IBA,
            };
            writer.put(Some(Grh::new(route, global.addresses).bytes()))?;
        }
        let transport = Transport {
            pad: u8::try_from(layout.pad).ok()?,
            ..self.transport
        };
        writer.put(Some(Bth::new(transport).bytes()))?;
        self.extension.write(writer)
    }

    /// Writes the whole packet at the beginning of the buffer, and answers its length. `update`
    /// continues a CRC-32, as [`icrc::crc32`] does.
    ///
    /// # Errors
    ///
    /// The errors of [`Outgoing::write`], and [`BuildError::Buffer`] if the buffer does not hold
    /// the packet.
    pub fn build(
        &self,
        payload: &[u8],
        buffer: &mut [u8],
        update: impl Fn(u32, &[u8]) -> u32,
    ) -> Result<usize, BuildError> {
        let total = self.layout(payload.len())?.total();
        let packet = buffer.get_mut(..total).ok_or(BuildError::Buffer)?;
        let layout = self.write(payload.len(), packet)?;
        let (_headers, rest) = packet
            .split_at_mut_checked(layout.headers)
            .ok_or(BuildError::Buffer)?;
        let mut writer = Writer::new(rest);
        let zeros = [0; lrh::WORD];
        writer.put_slice(payload).ok_or(BuildError::Buffer)?;
        writer
            .put_slice(zeros.get(..layout.pad).unwrap_or_default())
            .ok_or(BuildError::Buffer)?;
        seal(packet, self.global.is_some(), update).ok_or(BuildError::Buffer)?;
        Ok(total)
    }
}

/// Writes the invariant CRC of a packet into its last four bytes. `None` if it is shorter than its
/// headers.
pub fn seal(packet: &mut [u8], global: bool, update: impl Fn(u32, &[u8]) -> u32) -> Option<()> {
    let (covered, icrc) = packet.split_last_chunk_mut()?;
    *icrc = if global {
        Icrc::begin(covered, global, update)?.finish()
    } else {
        icrc::of_local(covered, update)?
    };
    Some(())
}

/// Why a packet cannot be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BuildError {
    /// The payload is longer than any MTU.
    Payload(usize),
    /// The extension is not that of the operation.
    Extension(Opcode),
    /// The buffer is too short.
    Buffer,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Payload(length) => {
                write!(f, "payload of {length} bytes, more than {MAX_PAYLOAD}")
            }
            BuildError::Extension(opcode) => write!(
                f,
                "the extended headers are not those of operation {:#04x}",
                opcode.get()
            ),
            BuildError::Buffer => f.write_str("the buffer is shorter than the packet"),
        }
    }
}

impl core::error::Error for BuildError {}
