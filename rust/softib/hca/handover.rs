// SPDX-License-Identifier: GPL-2.0-only

//! Datagrams to a peer in memory, without a packet: from the sender's memory into the receiver's.
//!
//! Only simple datagrams go this way. All others, those in error above all, become packets, so
//! that they are judged and counted in one place.

use kernel::sync::Arc;

use super::{
    completion::{
        Completion,
        Event,
        Extra,
        Kind,
        Origin, //
    },
    counters::Counter,
    port::Path,
    queue_pair::{
        Attributes,
        Datagram,
        HandedOver,
        Inner,
        QueuePair,
        Type, //
    },
    region::{
        only_inline_piece,
        only_piece,
        Need,
        ALL_MEMORY, //
    }, //
};
use crate::{
    provider::memory::{
        Memory,
        Segment, //
    },
    transport::work::Status,
    wire::{
        grh,
        qpn::Qpn, //
    }, //
};

/// Bytes of the headers and the CRC that the datagram's packet would have.
const HEADERS: usize =
    crate::wire::lrh::LEN + crate::wire::bth::LEN + crate::wire::deth::LEN + crate::wire::icrc::LEN;

/// A datagram on its way from one memory into the other.
struct Parcel<'a> {
    from: &'a QueuePair,
    datagram: &'a Datagram<'a>,
    path: &'a Path,
    qkey: u32,
    port: u8,
}

impl QueuePair {
    /// Gives a datagram to a peer in memory. Returns whether that is done.
    ///
    /// The context is that of a packet from a net device: the poster of a chain is under RCU, and
    /// the end of a queue pair waits for it.
    #[inline]
    pub(super) fn hand_over(
        &self,
        attributes: &Attributes,
        far: &mut HandedOver,
        datagram: &Datagram<'_>,
        path: &Path,
    ) -> bool {
        let to = &datagram.to;
        let plain = datagram.header.is_empty() && !datagram.checksum;
        if !plain || self.kind != Type::Datagram || path.own || path.global.is_some() {
            return false;
        }
        let parcel = Parcel {
            from: self,
            datagram,
            path,
            qkey: datagram.qkey(attributes),
            port: attributes.port,
        };
        if !self.find_at_peer(attributes.port, far, to.queue_pair) {
            return false;
        }
        let Some(pair) = &far.pair else {
            return false;
        };
        // The sender's lock is not held: two queue pairs that send to each other would take both
        // locks in either order.
        let Some(event) = pair.inner.with(|inner| pair.take_parcel(inner, &parcel)) else {
            return false;
        };
        // The sender's consumer may hold its locks.
        event.raise_later();
        far.count(HEADERS + (datagram.length.wrapping_add(3) & !3));
        true
    }

    /// Finds the peer's queue pair of a number, most often the one that the datagram before went
    /// to, and notes it. A queue pair that has ended since takes no datagram.
    #[inline]
    fn find_at_peer(&self, port: u8, far: &mut HandedOver, number: Qpn) -> bool {
        let known = |far: &HandedOver| far.pair.as_ref().is_some_and(|pair| pair.number == number);
        if !known(far) {
            self.look_at_peer(port, far, number);
        }
        known(far)
    }

    #[cold]
    fn look_at_peer(&self, port: u8, far: &mut HandedOver, number: Qpn) {
        self.count_handed_over(port, far);
        far.pair = match self.hca.peer(port) {
            Some(peer) if !number.is_special() => peer.queue_pairs.find(port, number),
            _ => None,
        };
    }

    /// Counts what went to the peer's queue pair.
    pub(super) fn count_handed_over(&self, port: u8, far: &mut HandedOver) {
        let (count, bytes) = core::mem::take(&mut far.uncounted);
        if let (Some(pair), true) = (&far.pair, count != 0) {
            let counters = [
                (&self.hca.counters, Counter::Sent, Counter::SentBytes),
                (
                    &pair.hca.counters,
                    Counter::Received,
                    Counter::ReceivedBytes,
                ),
            ];
            for (counters, packets, sum) in counters {
                counters.add(port, packets, count);
                counters.add(port, sum, bytes);
            }
        }
    }

    /// Takes a datagram, if it is as simple as nearly all are.
    fn take_parcel(self: &Arc<Self>, inner: &mut Inner, parcel: &Parcel<'_>) -> Option<Event<'_>> {
        let own = &inner.attributes;
        if self.kind != Type::Datagram
            || self.shared.is_some()
            || self.hca.options.checksum
            || !inner.takes_datagrams(parcel.port)
            || own.qkey != parcel.qkey
        {
            return None;
        }
        let (pkey_index, path) = (own.pkey_index, parcel.path);
        let path_bits = self
            .hca
            .ports
            .admits(parcel.port, path.dlid, pkey_index, path.pkey)?;
        let (request, segments) = inner.receives.front()?;
        parcel.copy(self, segments)?;
        // Only after the copy: a receive that it failed for is left to the packet that is sent
        // instead.
        inner.receives.advance();
        let completion = Completion {
            request,
            status: Status::Success,
            kind: Kind::Receive,
            length: (grh::LEN + parcel.datagram.length) as u32,
            extra: match parcel.datagram.immediate {
                Some(data) => Extra::Immediate(data),
                None => Extra::Nothing,
            },
            source: parcel.from.number,
            origin: Origin {
                lid: path.slid.get(),
                service_level: path.service_level,
                path_bits,
                pkey_index,
                port: parcel.port,
                global: false,
                checksum: false,
            },
            queue_pair: self.handle,
        };
        Some(
            self.receive_queue
                .push(&completion, parcel.datagram.solicited),
        )
    }
}

impl Parcel<'_> {
    /// Copies the data into a receive of `to`'s; `None` if one of the two memories may not be
    /// used so, or is too small.
    #[inline(always)]
    fn copy(&self, to: &QueuePair, segments: &[Segment]) -> Option<()> {
        let datagram = self.datagram;
        let length = datagram.length;
        let base = self.from.hca.regions.base();
        let from = match datagram.inline {
            // Keys do not matter here (IBTA 11.4.1.1).
            true => only_inline_piece(datagram.segments, datagram.from, length),
            false => {
                let domain = self.from.domain;
                only_piece(domain, datagram.segments, base, datagram.from, length)
            }
        };
        let base = to.hca.regions.base();
        match (
            from,
            only_piece(to.receive_domain(), segments, base, grh::LEN, length),
        ) {
            (Some(from), Some(to)) => {
                from.copy(&to);
                Some(())
            }
            _ => self.copy_pieces(to, segments),
        }
    }

    #[cold]
    fn copy_pieces(&self, to: &QueuePair, segments: &[Segment]) -> Option<()> {
        let datagram = self.datagram;
        // An empty datagram needs room for its global route header, too.
        let room: usize = segments.iter().map(|segment| segment.len()).sum();
        if room < grh::LEN + datagram.length {
            return None;
        }
        // A region is locked while it is read or written: never two at a time, which two devices
        // could lock in either order.
        let is_plain = |list: &[Segment]| list.iter().all(|piece| piece.key() == ALL_MEMORY);
        if !datagram.inline && !is_plain(datagram.segments) && !is_plain(segments) {
            return None;
        }
        let mut place = grh::LEN;
        let mut fits = true;
        let mut each = |from: Memory| {
            let mut done = 0;
            let regions = &to.hca.regions;
            let (need, domain) = (Need::LocalWrite, to.receive_domain());
            let copied = regions.walk(domain, segments, place, from.len(), need, |room| {
                if let Some(part) = from.part(done, room.len()) {
                    part.copy(&room);
                }
                done += room.len();
            });
            fits &= copied.is_ok();
            place += from.len();
        };
        if datagram.inline {
            // Keys do not matter here (IBTA 11.4.1.1).
            for segment in datagram.segments {
                each(segment.inline_memory());
            }
        } else {
            let regions = &self.from.hca.regions;
            let (domain, list, from) = (self.from.domain, datagram.segments, datagram.from);
            regions
                .walk(
                    domain,
                    list,
                    from,
                    datagram.length,
                    Need::LocalRead,
                    &mut each,
                )
                .ok()?;
        }
        fits.then_some(())
    }
}
