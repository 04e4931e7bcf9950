// SPDX-License-Identifier: GPL-2.0-only

//! The headers that every packet has (IBTA 5.2): all that is looked at where a packet passes on.

use zerocopy::FromBytes as _;

use super::super::bth;
use super::super::bth::Bth;
use super::super::grh;
use super::super::grh::Grh;
use super::super::icrc;
use super::super::icrc::Icrc;
use super::super::lrh;
use super::super::lrh::{
    Lrh,
    Next, //
};
use super::{
    PacketError,
    ETHERNET_MIN,
    MIN_LEN, //
};

/// The headers that every packet has, of one with the right length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head<'a> {
    /// The bytes of the whole packet.
    pub bytes: &'a [u8],
    /// The local route header.
    pub lrh: &'a Lrh,
    /// The global route header, if there is one; its version, its next header and its length are
    /// right.
    pub grh: Option<&'a Grh>,
    /// The base transport header; its version is right.
    pub bth: &'a Bth,
    /// The bytes between the base transport header and the CRC.
    pub(super) rest: &'a [u8],
    /// The invariant CRC, which [`Head::is_intact`] checks.
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

    /// Returns whether the invariant CRC is that of the packet. `update` continues a CRC-32, as
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
    // Ethernet fills up short frames alone: in a longer one nothing may follow the packet.
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
