// SPDX-License-Identifier: GPL-2.0-only

//! A whole packet, from its local route header to its invariant CRC (IBTA 5.2).
//!
//! Two readers: [`Head`] for switches and routers, [`Packet`] for receivers. Both have
//! checked every length before they hand out a part. [`Outgoing`] writes one.

use super::atomic;
use super::bth;
use super::bth::Transport;
use super::grh;
use super::icrc;
use super::lrh;

mod error;
mod extension;
mod head;
mod outgoing;
mod writer;

pub use self::error::PacketError;
pub use self::extension::Extension;
pub use self::head::Head;
pub use self::outgoing::{
    seal,
    BuildError,
    Global,
    Layout,
    Outgoing, //
};

/// Length in bytes of the longest headers: both routes, the transport and an atomic operation.
pub const MAX_HEADERS: usize = lrh::LEN + grh::LEN + bth::LEN + atomic::LEN;

/// Length in bytes of the shortest packet: no payload.
pub const MIN_LEN: usize = lrh::LEN + bth::LEN + icrc::LEN;

/// The largest payload that the largest MTU allows (IBTA 7.7.8).
pub const MAX_PAYLOAD: usize = 4096;

/// The length to which Ethernet fills up a short frame, behind the packet in it.
pub const ETHERNET_MIN: usize = 46;

/// A packet for a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The headers that every packet has.
    pub head: Head<'a>,
    /// The base transport header.
    pub transport: Transport,
    /// The headers after the transport header, which follow from its operation.
    pub extension: Extension,
    /// The data of the consumer, without the pad that fills its last word.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a packet that came in a frame. As part of the caller: a packet is large to hand over.
    ///
    /// # Errors
    ///
    /// [`PacketError`] for the first header that is wrong. The CRC is not looked at.
    #[inline(always)]
    pub fn parse(frame: &'a [u8]) -> Result<Packet<'a>, PacketError> {
        Self::of(Head::parse(frame)?)
    }

    /// Reads the rest of a packet.
    ///
    /// # Errors
    ///
    /// [`PacketError`] for the first header that is wrong. The CRC is not looked at.
    #[inline(always)]
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

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_packet))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::super::immdt::ImmDt;
    use super::super::lid::Lid;
    use super::super::lrh::LrhError;
    use super::super::opcode::{
        Opcode,
        Operation,
        Service, //
    };
    use super::super::pkey::Pkey;
    use super::super::psn::Psn;
    use super::super::qpn::Qpn;
    use super::super::reth::Reth;
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
