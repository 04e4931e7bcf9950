// SPDX-License-Identifier: GPL-2.0-only

//! Offloads of the stack: checksums, and segmentation of TCP.
//!
//! An adapter does it if it can; else oxib does, and it is worth it: a long segment goes through
//! the stack once, and its parts are headers in the ring with pieces of the stack's own memory
//! behind them, where there would be a packet for each.

use kernel::sync::Arc;

use super::{
    receive::Receiver,
    statistics::Statistics,
    transmit::Reaper, //
};
use crate::{
    net::{
        napi::Instance,
        skb::{
            Segments,
            Skb, //
        }, //
    },
    rdma::{
        device::Device,
        port::PortNumber,
        send::{
            self,
            Destination,
            Refused,
            SendQueue,
            Work,
            HEADER, //
        }, //
    },
    wire::offload::{
        fill_headers,
        Cut, //
    }, //
};

/// Most parts that a packet of the stack is cut into.
pub(super) const SEGMENTS: u32 = 64;

/// The send ring of a transmit queue.
pub(super) type Ring = SendQueue<Skb, Arc<Instance<Reaper>>, Arc<Instance<Receiver>>>;

type Pushed = core::result::Result<u32, Refused<Skb>>;

/// Offloads of an adapter.
#[derive(Clone, Copy)]
pub(super) struct Adapter {
    checksums: bool,
    cuts: bool,
}

impl Adapter {
    /// Returns the offloads of `device` on `port`.
    pub(super) fn of(device: &Device, port: PortNumber) -> Self {
        Self {
            checksums: device.computes_checksums(),
            cuts: device.cuts_segments(port),
        }
    }

    /// Adds a packet that is not one piece of memory to be sent as it is, without its pseudo
    /// header, to a ring, and counts it if it is cut. Returns the bytes that it is on the wire.
    ///
    /// # Errors
    ///
    /// The packet back, with the reason; the ring is as it was.
    pub(super) fn push(
        self,
        ring: &mut Ring,
        statistics: &Statistics,
        to: Destination,
        mut packet: Skb,
    ) -> Pushed {
        let wishes = packet.wishes();
        // What adapters can do they do to IPv4, and to nothing in a tunnel.
        let checksum = self.checksums && wishes.plain;
        let Some(segments) = wishes.segments else {
            if wishes.checksum && !checksum && packet.complete_checksum().is_err() {
                return Err(Refused::Failed(packet));
            }
            let work = Work {
                checksum,
                cut: None,
            };
            return in_one(packet, |packet| ring.push_pieces(to, packet, work));
        };
        let parts = segments.count(packet.len());
        let pushed = self.push_long(ring, to, packet, segments, wishes.plain);
        if pushed.is_ok() {
            statistics.tx_long.add(1);
            statistics.tx_parts.add(parts as u64);
        }
        pushed
    }

    /// Adds a packet that is to be cut. Adapters can cut those that are `plain`.
    fn push_long(
        self,
        ring: &mut Ring,
        to: Destination,
        packet: Skb,
        segments: Segments,
        plain: bool,
    ) -> Pushed {
        if !self.cuts || !plain {
            return cut(ring, to, packet, segments);
        }
        let work = Work {
            checksum: true,
            cut: Some(send::Cut {
                headers: segments.headers,
                size: segments.size,
            }),
        };
        match ring.push_pieces(to, packet, work) {
            // Each part lies in fewer pieces.
            Err(Refused::Scattered(packet)) => cut(ring, to, packet, segments),
            pushed => pushed,
        }
    }
}

/// Pushes a packet, in one piece of memory if it lies in too many.
fn in_one(packet: Skb, mut push: impl FnMut(Skb) -> Pushed) -> Pushed {
    match push(packet) {
        Err(Refused::Scattered(mut packet)) => match packet.linearize() {
            Ok(()) => push(packet),
            Err(_) => Err(Refused::Failed(packet)),
        },
        pushed => pushed,
    }
}

/// Cuts a packet into segments, and adds those to a ring.
#[inline(never)]
fn cut(ring: &mut Ring, to: Destination, mut packet: Skb, segments: Segments) -> Pushed {
    // The device reads later what is summed now.
    if packet.may_change() && packet.copy_pieces().is_err() {
        return Err(Refused::Failed(packet));
    }
    let mut headers = [0; HEADER];
    let source = packet.data().get(..segments.headers);
    let (Some(copy), Some(source)) = (headers.get_mut(..segments.headers), source) else {
        return Err(Refused::Failed(packet));
    };
    copy.copy_from_slice(source);
    let Some(cut) = Cut::new(copy, segments.size, packet.len() - segments.headers) else {
        return Err(Refused::Failed(packet));
    };
    let mut part = |packet: &Skb, number: u32, room: &mut [u8; HEADER]| {
        let data = cut.data(number as usize);
        let bytes = segments.headers + data.start..segments.headers + data.end;
        cut.write_header(number as usize, room.first_chunk_mut()?);
        fill_headers(room.get_mut(..segments.headers)?, packet.sum(bytes.clone()));
        Some((segments.headers, bytes))
    };
    let count = cut.count() as u32;
    in_one(packet, |packet| {
        ring.push_parts(to, packet, count, &mut part)
    })
}
