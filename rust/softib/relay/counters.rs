// SPDX-License-Identifier: GPL-2.0-only

//! Counters of the ports of switches and routers, and causes of dropped packets.

use core::sync::atomic::{
    AtomicU64,
    Ordering, //
};

use crate::{
    fabric::{
        counters::PortCounts,
        discard::PortCounter,
        Discard, //
    },
    wire::{
        lrh::Lrh,
        packet::PacketError, //
    }, //
};

/// The cause for which a packet was dropped.
pub(crate) enum Cause {
    /// The frame is no packet.
    Malformed,
    /// A rule of the fabric.
    Rule(Discard),
    /// There was no memory.
    Memory,
}

impl From<PacketError> for Cause {
    fn from(_: PacketError) -> Self {
        Self::Malformed
    }
}

impl From<Discard> for Cause {
    fn from(discard: Discard) -> Self {
        Self::Rule(discard)
    }
}

/// The packets that passed a port in one direction.
pub(super) struct Traffic {
    packets: AtomicU64,
    bytes: AtomicU64,
    /// Multicast packets among them.
    multicast: AtomicU64,
}

impl Traffic {
    const fn new() -> Self {
        Self {
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            multicast: AtomicU64::new(0),
        }
    }

    /// Counts a packet of that direction.
    #[inline]
    pub(super) fn count(&self, frame: &[u8]) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(frame.len() as u64, Ordering::Relaxed);
        if Lrh::parse(frame).is_ok_and(|(lrh, _)| lrh.dlid().is_multicast()) {
            self.multicast.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The counters of a port of a switch or a router.
pub(super) struct PortCounters {
    pub(super) sent: Traffic,
    pub(super) received: Traffic,
    link_downed: AtomicU64,
    malformed: AtomicU64,
    no_memory: AtomicU64,
    discards: [AtomicU64; Discard::COUNT],
}

impl PortCounters {
    pub(super) const fn new() -> Self {
        Self {
            sent: Traffic::new(),
            received: Traffic::new(),
            link_downed: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            no_memory: AtomicU64::new(0),
            discards: [const { AtomicU64::new(0) }; Discard::COUNT],
        }
    }

    /// Counts a packet that was dropped.
    pub(super) fn count_drop(&self, cause: &Cause) {
        let counter = match cause {
            Cause::Malformed => &self.malformed,
            Cause::Memory => &self.no_memory,
            Cause::Rule(discard) => match self.discards.get(discard.index()) {
                Some(counter) => counter,
                None => return,
            },
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts that the link went down.
    pub(super) fn count_link_downed(&self) {
        self.link_downed.fetch_add(1, Ordering::Relaxed);
    }

    /// Frames that were no packets.
    pub(super) fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }

    /// Packets that were not passed on for want of memory.
    pub(super) fn no_memory(&self) -> u64 {
        self.no_memory.load(Ordering::Relaxed)
    }

    /// Packets dropped for that cause.
    pub(super) fn discarded(&self, cause: Discard) -> u64 {
        self.discards
            .get(cause.index())
            .map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// Returns the counters that the port's performance agent reports.
    pub(super) fn read(&self) -> PortCounts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // These first: of a sum that grows meanwhile no part is larger than the whole.
        let multicast = (get(&self.sent.multicast), get(&self.received.multicast));
        let packets = (get(&self.sent.packets), get(&self.received.packets));
        let mut counts = PortCounts {
            transmit_data: get(&self.sent.bytes) / 4,
            receive_data: get(&self.received.bytes) / 4,
            transmit_packets: packets.0,
            receive_packets: packets.1,
            // The subtractions saturate: relaxed loads may pass each other all the same.
            unicast_transmit_packets: packets.0.saturating_sub(multicast.0),
            unicast_receive_packets: packets.1.saturating_sub(multicast.1),
            multicast_transmit_packets: multicast.0,
            multicast_receive_packets: multicast.1,
            link_downed: get(&self.link_downed),
            receive_errors: self.malformed(),
            transmit_discards: self.no_memory(),
            ..PortCounts::default()
        };
        for (discard, counter) in Discard::ALL.iter().zip(&self.discards) {
            let place = match discard.counter() {
                PortCounter::ReceiveErrors => &mut counts.receive_errors,
                PortCounter::RelayErrors => &mut counts.relay_errors,
                PortCounter::TransmitDiscards => &mut counts.transmit_discards,
                PortCounter::ReceiveConstraint => &mut counts.receive_constraint,
                PortCounter::TransmitConstraint => &mut counts.transmit_constraint,
                PortCounter::Vl15Dropped => &mut counts.vl15_dropped,
                PortCounter::Qp1Dropped => &mut counts.qp1_dropped,
            };
            *place += get(counter);
        }
        counts
    }
}
