// SPDX-License-Identifier: GPL-2.0-only

//! A whole packet, from its local route header to its invariant CRC (IBTA 5.2).
//!
//! Two readers: [`Head`] for who only passes packets on, [`Packet`] for who takes them. Both have
//! checked every length before they hand out a part. [`Outgoing`] writes one.

use core::fmt;
use zerocopy::FromBytes;

use super::aeth::Aeth;
use super::atomic::{
    AtomicAckEth,
    AtomicEth, //
};
use super::bth;
use super::bth::{
    Bth,
    Transport, //
};
use super::deth::Deth;
use super::grh;
use super::grh::{
    Addresses,
    Grh,
    Route, //
};
use super::icrc;
use super::icrc::Icrc;
use super::immdt::{
    Ieth,
    ImmDt, //
};
use super::lid::Lid;
use super::lrh;
use super::lrh::{
    Link,
    Lrh,
    LrhError,
    Next, //
};
use super::opcode::{
    Opcode,
    OpcodeError, //
};
use super::reth::Reth;

/// Length in bytes of the longest headers: both routes, the transport and an atomic operation.
pub const MAX_HEADERS: usize = lrh::LEN + grh::LEN + bth::LEN + super::atomic::LEN;

/// Length in bytes of the shortest packet: no payload.
pub const MIN_LEN: usize = lrh::LEN + bth::LEN + icrc::LEN;

/// The largest payload that the largest MTU allows (IBTA 7.7.8).
pub const MAX_PAYLOAD: usize = 4096;

/// What an Ethernet frame is filled up to with bytes that are no part of the packet in it.
pub const ETHERNET_MIN: usize = 46;

/// The headers that every packet has, of one whose length is right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head<'a> {
    /// All of the packet.
    pub bytes: &'a [u8],
    /// The local route header.
    pub lrh: &'a Lrh,
    /// The global route header, if there is one; its version, its next header and its length are
    /// right.
    pub grh: Option<&'a Grh>,
    /// The base transport header; its version is right.
    pub bth: &'a Bth,
    /// What is between the base transport header and the CRC.
    rest: &'a [u8],
    /// The invariant CRC.
    icrc: &'a [u8; icrc::LEN],
}

impl<'a> Head<'a> {
    /// Reads a packet that came in a frame: it may have a tail, but only what Ethernet fills up a
    /// short frame with.
    ///
    /// # Errors
    ///
    /// [`PacketError`] for the first header that is wrong.
    #[inline]
    pub fn parse(frame: &'a [u8]) -> Result<Head<'a>, PacketError> {
        let (lrh, _rest) = Lrh::parse(frame)?;
        let bytes = trim(frame, lrh.packet_len())?;
        let short = || PacketError::Short(bytes.len());
        let (_lrh, rest) = bytes.split_at_checked(lrh::LEN).ok_or_else(short)?;
        let (rest, icrc) = rest.split_last_chunk().ok_or_else(short)?;
        let (grh, rest) = match lrh.next() {
            Next::Raw | Next::RawIpv6 => return Err(PacketError::Raw),
            Next::Transport => (None, rest),
            Next::Global => {
                let (grh, rest) = Grh::ref_from_prefix(rest).map_err(|_| short())?;
                check_grh(grh, rest.len())?;
                (Some(grh), rest)
            }
        };
        let (bth, rest) = Bth::ref_from_prefix(rest).map_err(|_| short())?;
        if bth.version() != bth::VERSION {
            return Err(PacketError::TransportVersion(bth.version()));
        }
        Ok(Head {
            bytes,
            lrh,
            grh,
            bth,
            rest,
            icrc,
        })
    }

    /// Whether the invariant CRC is that of the packet. `update` continues a CRC-32, as
    /// [`icrc::crc32`] does.
    #[inline]
    pub fn is_intact(&self, update: impl Fn(u32, &[u8]) -> u32) -> bool {
        let covered = self.bytes.len().saturating_sub(icrc::LEN);
        self.bytes
            .get(..covered)
            .and_then(|bytes| Icrc::begin(bytes, self.grh.is_some(), update))
            .is_some_and(|icrc| icrc.finish() == *self.icrc)
    }
}

/// The packet in a frame, without the frame's tail.
#[inline]
fn trim(frame: &[u8], length: usize) -> Result<&[u8], PacketError> {
    if length < MIN_LEN {
        return Err(PacketError::Short(length));
    }
    if frame.len() > length && frame.len() > ETHERNET_MIN {
        return Err(PacketError::Tail(frame.len() - length));
    }
    frame.get(..length).ok_or(PacketError::Cut {
        wanted: length,
        found: frame.len(),
    })
}

/// Checks a global route header before so many bytes, without the CRC.
#[inline]
fn check_grh(grh: &Grh, follows: usize) -> Result<(), PacketError> {
    let route = grh.route();
    if grh.version() != Grh::VERSION {
        return Err(PacketError::RouteVersion(grh.version()));
    }
    if route.next_header != grh::NEXT_HEADER_IBA {
        return Err(PacketError::NextHeader(route.next_header));
    }
    if usize::from(route.payload_length) != follows + icrc::LEN {
        return Err(PacketError::RouteLength {
            said: route.payload_length,
            found: follows + icrc::LEN,
        });
    }
    Ok(())
}

/// The headers between the base transport header and the payload. Which of them a packet has
/// follows from its operation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Extension {
    /// Of a datagram: who sent it.
    pub deth: Option<Deth>,
    /// Of an RDMA operation: the memory.
    pub reth: Option<Reth>,
    /// Of an atomic operation: the word and what to do.
    pub atomic: Option<AtomicEth>,
    /// Of an answer: what became of the request.
    pub aeth: Option<Aeth>,
    /// Of the answer to an atomic operation: what the word was.
    pub atomic_ack: Option<AtomicAckEth>,
    /// Immediate data.
    pub immediate: Option<ImmDt>,
    /// The key to invalidate.
    pub invalidate: Option<Ieth>,
}

impl Extension {
    /// How long the headers of an operation are.
    pub const fn len_of(opcode: Opcode) -> usize {
        const fn one(wanted: bool, length: usize) -> usize {
            if wanted {
                length
            } else {
                0
            }
        }
        let operation = opcode.operation;
        one(opcode.has_deth(), super::deth::LEN)
            + one(operation.has_reth(), super::reth::LEN)
            + one(operation.has_atomic(), super::atomic::LEN)
            + one(operation.has_aeth(), super::aeth::LEN)
            + one(operation.has_atomic_ack(), super::atomic::ACK_LEN)
            + one(operation.has_immediate(), super::immdt::LEN)
            + one(operation.has_invalidate(), super::immdt::LEN)
    }

    /// Reads the headers of an operation, and answers with what follows them.
    fn parse(opcode: Opcode, bytes: &[u8]) -> Option<(Extension, &[u8])> {
        let operation = opcode.operation;
        let (deth, rest) = take(opcode.has_deth(), bytes)?;
        let (reth, rest) = take(operation.has_reth(), rest)?;
        let (atomic, rest) = take(operation.has_atomic(), rest)?;
        let (aeth, rest) = take(operation.has_aeth(), rest)?;
        let (atomic_ack, rest) = take(operation.has_atomic_ack(), rest)?;
        let (immediate, rest) = take(operation.has_immediate(), rest)?;
        let (invalidate, rest) = take(operation.has_invalidate(), rest)?;
        let extension = Extension {
            deth,
            reth,
            atomic,
            aeth,
            atomic_ack,
            immediate,
            invalidate,
        };
        Some((extension, rest))
    }

    /// Whether these are the headers that the operation has.
    fn is_of(&self, opcode: Opcode) -> bool {
        let operation = opcode.operation;
        self.deth.is_some() == opcode.has_deth()
            && self.reth.is_some() == operation.has_reth()
            && self.atomic.is_some() == operation.has_atomic()
            && self.aeth.is_some() == operation.has_aeth()
            && self.atomic_ack.is_some() == operation.has_atomic_ack()
            && self.immediate.is_some() == operation.has_immediate()
            && self.invalidate.is_some() == operation.has_invalidate()
    }

    /// Writes those that are there, in the order of the specification.
    fn write(&self, writer: &mut Writer<'_>) -> Option<()> {
        writer.put(self.deth.map(Deth::bytes))?;
        writer.put(self.reth.map(Reth::bytes))?;
        writer.put(self.atomic.map(AtomicEth::bytes))?;
        writer.put(self.aeth.map(Aeth::bytes))?;
        writer.put(self.atomic_ack.map(AtomicAckEth::bytes))?;
        writer.put(self.immediate.map(ImmDt::bytes))?;
        writer.put(self.invalidate.map(Ieth::bytes))
    }
}

/// Reads one header, if it is wanted.
#[inline]
fn take<T>(wanted: bool, bytes: &[u8]) -> Option<(Option<T>, &[u8])>
where
    T: FromBytes,
{
    if !wanted {
        return Some((None, bytes));
    }
    let (header, rest) = T::read_from_prefix(bytes).ok()?;
    Some((Some(header), rest))
}

/// A packet for a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The headers that every packet has.
    pub head: Head<'a>,
    /// The base transport header.
    pub transport: Transport,
    /// Those after it.
    pub extension: Extension,
    /// What the consumer sent, without what fills its last word.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a packet that came in a frame.
    ///
    /// # Errors
    ///
    /// [`PacketError`] for the first header that is wrong. The CRC is not looked at.
    #[inline]
    pub fn parse(frame: &'a [u8]) -> Result<Packet<'a>, PacketError> {
        Self::of(Head::parse(frame)?)
    }

    /// Reads the rest of a packet.
    ///
    /// # Errors
    ///
    /// [`PacketError`] for the first header that is wrong. The CRC is not looked at.
    #[inline]
    pub fn of(head: Head<'a>) -> Result<Packet<'a>, PacketError> {
        let transport = head.bth.transport()?;
        let (extension, rest) = Extension::parse(transport.opcode, head.rest)
            .ok_or(PacketError::Short(head.bytes.len()))?;
        let payload = rest
            .len()
            .checked_sub(usize::from(transport.pad))
            .and_then(|length| rest.get(..length))
            .ok_or(PacketError::Pad(transport.pad))?;
        if payload.len() > MAX_PAYLOAD {
            return Err(PacketError::Payload(payload.len()));
        }
        Ok(Packet {
            head,
            transport,
            extension,
            payload,
        })
    }
}

/// The global route of a packet to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Global {
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Routers the packet may still pass.
    pub hop_limit: u8,
    /// Both ends.
    pub addresses: Addresses,
}

/// The headers of a packet to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Virtual lane.
    pub vl: u8,
    /// Service level.
    pub sl: u8,
    /// Where the packet goes.
    pub dlid: Lid,
    /// Where it comes from.
    pub slid: Lid,
    /// The global route, if it has one.
    pub global: Option<Global>,
    /// The base transport header. What it says of the pad is made right.
    pub transport: Transport,
    /// The headers after it: those of the operation, no others.
    pub extension: Extension,
}

/// Where the parts of a packet are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Length of the headers: where the payload begins.
    pub headers: usize,
    /// Length of the payload.
    pub payload: usize,
    /// Zeros after it.
    pub pad: usize,
}

impl Layout {
    /// Where the invariant CRC begins.
    pub const fn icrc(&self) -> usize {
        self.headers + self.payload + self.pad
    }

    /// Length of the packet.
    pub const fn total(&self) -> usize {
        self.icrc() + icrc::LEN
    }
}

impl Outgoing {
    /// Where the parts of the packet will be with a payload of that length.
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
        self.write_headers(layout, &mut Writer { rest: buffer })
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
    /// As [`Outgoing::write`], and if the buffer does not hold the packet.
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
        let mut writer = Writer { rest };
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
    *icrc = Icrc::begin(covered, global, update)?.finish();
    Some(())
}

/// What is left of a buffer that is written from its beginning.
struct Writer<'a> {
    rest: &'a mut [u8],
}

impl Writer<'_> {
    /// Writes these bytes, if there are any. `None` if the buffer has no room for them.
    fn put<const LEN: usize>(&mut self, bytes: Option<[u8; LEN]>) -> Option<()> {
        match bytes {
            Some(bytes) => self.put_slice(&bytes),
            None => Some(()),
        }
    }

    fn put_slice(&mut self, bytes: &[u8]) -> Option<()> {
        let (room, rest) = core::mem::take(&mut self.rest).split_at_mut_checked(bytes.len())?;
        room.copy_from_slice(bytes);
        self.rest = rest;
        Some(())
    }
}

/// Why bytes are not a packet of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketError {
    /// The local route header is missing or of another version.
    Link(LrhError),
    /// By its own word it is shorter than its headers; that length in bytes.
    Short(usize),
    /// It is longer than what came.
    Cut {
        /// The length that it says it has, in bytes.
        wanted: usize,
        /// How many bytes came.
        found: usize,
    },
    /// So many bytes came after its end, more than fill up a frame.
    Tail(usize),
    /// It is a raw packet, which has no queue pair.
    Raw,
    /// The version of its global route header, not 6.
    RouteVersion(u8),
    /// Its global route header is not followed by a transport header, but by this.
    NextHeader(u8),
    /// Its two route headers contradict each other.
    RouteLength {
        /// What the global one says, in bytes.
        said: u16,
        /// What follows it by the local one.
        found: usize,
    },
    /// Its transport is of another version.
    TransportVersion(u8),
    /// Its operation is unknown.
    Operation(u8),
    /// It has fewer bytes of payload than are said to be its pad.
    Pad(u8),
    /// It has more payload than any MTU allows.
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

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(oxib_wire_packet))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::super::opcode::{
        Operation,
        Service, //
    };
    use super::super::pkey::Pkey;
    use super::super::psn::Psn;
    use super::super::qpn::Qpn;
    use super::*;

    /// The sample packet of IBTA 7.8.4 with its invariant CRC.
    const SAMPLE: [u8; 56] = [
        0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, // LRH
        0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a, // BTH
        0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, // RETH
        0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e, //
        0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, // payload
        0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00, //
        0x96, 0x25, 0xb7, 0x5a, // ICRC
    ];

    fn sample() -> Outgoing {
        Outgoing {
            vl: 7,
            sl: 1,
            dlid: Lid::new(0x375c),
            slid: Lid::new(0x17d2),
            global: None,
            transport: Transport {
                opcode: Opcode {
                    service: Service::Rc,
                    operation: Operation::WriteOnly,
                },
                solicited: false,
                migrated: false,
                pad: 0,
                pkey: Pkey::new(0x2487),
                destination: Qpn::from_bytes([0x87, 0xb1, 0xb3]),
                ack_request: false,
                psn: Psn::from_bytes([0x0d, 0xec, 0x2a]),
            },
            extension: Extension {
                reth: Some(Reth::new(0x0171_0a1c_015d_4002, 0x38f2_7a05, 14)),
                ..Extension::default()
            },
        }
    }

    fn payload() -> &'static [u8] {
        SAMPLE.get(36..50).unwrap_or_default()
    }

    #[test]
    fn sample_is_written() {
        let mut buffer = [0xee; 64];
        let built = sample().build(payload(), &mut buffer, icrc::crc32);
        assert_eq!(built, Ok(SAMPLE.len()));
        assert!(buffer.starts_with(&SAMPLE));
        assert_eq!(buffer.get(SAMPLE.len()..), Some(&[0xee; 8][..]));
    }

    #[test]
    fn sample_is_read() {
        let packet = Packet::parse(&SAMPLE);
        assert_eq!(packet.map(|packet| packet.payload), Ok(payload()));
        assert_eq!(
            packet.map(|packet| packet.extension),
            Ok(sample().extension)
        );
        let intact = packet.map(|packet| packet.head.is_intact(icrc::crc32));
        assert_eq!(intact, Ok(true));
        let mut garbled = SAMPLE;
        if let Some(last) = garbled.last_mut() {
            *last ^= 1;
        }
        let intact = Head::parse(&garbled).map(|head| head.is_intact(icrc::crc32));
        assert_eq!(intact, Ok(false));
    }

    /// A frame with this prefix in place of the sample's, cut or filled with zeros to a length.
    fn frame(prefix: &[u8], length: usize) -> ([u8; 128], usize) {
        let mut bytes = [0; 128];
        if let Some(start) = bytes.first_chunk_mut() {
            *start = SAMPLE;
        }
        if let Some(start) = bytes.get_mut(..prefix.len()) {
            start.copy_from_slice(prefix);
        }
        (bytes, length)
    }

    #[test]
    fn lies() {
        let table = [
            // One word too many, one too few, fewer than the headers, none.
            (
                frame(&[0x70, 0x12, 0x37, 0x5c, 0x00, 0x0f], 56),
                PacketError::Cut {
                    wanted: 60,
                    found: 56,
                },
            ),
            (
                frame(&[0x70, 0x12, 0x37, 0x5c, 0x00, 0x0d], 56),
                PacketError::Tail(4),
            ),
            (
                frame(&[0x70, 0x12, 0x37, 0x5c, 0x00, 0x05], 46),
                PacketError::Short(20),
            ),
            (
                frame(&[0x70, 0x12, 0x37, 0x5c, 0x00, 0x00], 46),
                PacketError::Short(0),
            ),
            // The reserved bits are not part of the length.
            (
                frame(&[0x70, 0x12, 0x37, 0x5c, 0xf8, 0x0e], 57),
                PacketError::Tail(1),
            ),
            // Another link, raw packets, another transport, an unknown operation.
            (frame(&[0x7f], 56), PacketError::Link(LrhError::Version(15))),
            (frame(&[0x70, 0x10], 56), PacketError::Raw),
            (frame(&[0x70, 0x11], 56), PacketError::Raw),
            (
                frame(
                    &[0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x21],
                    56,
                ),
                PacketError::TransportVersion(1),
            ),
            (
                frame(&[0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0xff], 56),
                PacketError::Operation(0xff),
            ),
            // A route header that is none.
            (frame(&[0x70, 0x13], 56), PacketError::RouteVersion(0)),
            // 24 bytes: an RDMA WRITE without the memory; a SEND in the middle with a pad alone.
            (
                frame(&[0x70, 0x12, 0x37, 0x5c, 0x00, 0x06], 46),
                PacketError::Short(24),
            ),
            (
                frame(
                    &[0x70, 0x12, 0x37, 0x5c, 0x00, 0x06, 0x17, 0xd2, 0x01, 0x20],
                    46,
                ),
                PacketError::Pad(2),
            ),
        ];
        for ((bytes, length), error) in table {
            let frame = bytes.get(..length).unwrap_or(&bytes);
            assert_eq!(Packet::parse(frame), Err(error));
        }
    }

    #[test]
    fn filled_frames() {
        let mut bytes = [0; ETHERNET_MIN];
        let mut outgoing = sample();
        outgoing.transport.opcode.operation = Operation::SendMiddle;
        outgoing.extension = Extension::default();
        assert_eq!(outgoing.build(&[1], &mut bytes, icrc::crc32), Ok(28));
        let packet = Packet::parse(&bytes);
        assert_eq!(packet.map(|packet| packet.payload), Ok(&[1][..]));
        assert_eq!(packet.map(|packet| packet.head.bytes.len()), Ok(28));
    }

    #[test]
    fn what_cannot_be_written() {
        let mut buffer = [0; 64];
        let long = sample().write(MAX_PAYLOAD + 1, &mut buffer);
        assert_eq!(long, Err(BuildError::Payload(MAX_PAYLOAD + 1)));
        let mut wrong = sample();
        wrong.extension.immediate = Some(ImmDt::from_bytes([0; 4]));
        let opcode = wrong.transport.opcode;
        assert_eq!(
            wrong.write(14, &mut buffer),
            Err(BuildError::Extension(opcode))
        );
        for length in 0..SAMPLE.len() {
            let short = buffer.get_mut(..length).unwrap_or_default();
            assert_eq!(
                sample().build(payload(), short, icrc::crc32),
                Err(BuildError::Buffer)
            );
        }
    }
}
