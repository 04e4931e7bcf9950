// SPDX-License-Identifier: GPL-2.0-only

//! Counters of a device's ports.

use core::sync::atomic::{
    AtomicU64,
    Ordering, //
};

use crate::{
    fabric::counters::PortCounts,
    wire::lid::Lid, //
};

/// A counter, named by the cause of what it counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counter {
    /// Packets sent, unicast and multicast.
    Sent,
    /// Bytes of them, headers included.
    SentBytes,
    /// Multicast packets among those sent.
    SentMulticast,
    /// Packets that came and were right.
    Received,
    ReceivedBytes,
    ReceivedMulticast,
    /// Packets that could not be sent: no memory, the port was not active, the P_Key index was that
    /// of an unused entry, or too many waited for a device in memory to take them.
    SendDropped,
    /// Frames that are no packet, and packets with more payload than the port takes.
    Malformed,
    /// Packets with a wrong invariant CRC.
    BadIcrc,
    /// Packets to another port's local identifier.
    WrongLid,
    /// Packets for queue pairs that there are not, or that take none of that kind.
    WrongQueuePair,
    /// Packets for a connection that are not its peer's.
    WrongSource,
    /// Packets of a partition that the port is not in, or the queue pair.
    WrongPkey,
    WrongQkey,
    /// Datagrams that no receive was posted for.
    NoReceive,
    /// Packets that came while the port was not active.
    NotActive,
    /// Multicast packets that no queue pair here takes.
    NoMember,
    /// Number of times that the cable went dead.
    LinkDowned,
    /// Address handles that were made with a static rate.
    RatedHandles,
    /// Sends of long segments that the device cut.
    CutSends,
    /// Packets that these became.
    CutPackets,
    /// Commands to the device, of its first port.
    Commands,
}

/// The number of counters.
pub(crate) const COUNT: usize = Counter::Commands as usize + 1;

/// Names, in the order of the counters.
pub(crate) const NAMES: [&core::ffi::CStr; COUNT] = [
    c"sent_packets",
    c"sent_bytes",
    c"sent_multicast",
    c"received_packets",
    c"received_bytes",
    c"received_multicast",
    c"send_dropped",
    c"malformed",
    c"bad_icrc",
    c"wrong_lid",
    c"wrong_queue_pair",
    c"wrong_source",
    c"wrong_pkey",
    c"wrong_qkey",
    c"no_receive",
    c"not_active",
    c"no_member",
    c"link_downed",
    c"rated_handles",
    c"cut_sends",
    c"cut_packets",
    c"commands",
];

/// The counters of a device's ports.
pub(crate) struct Counters([[AtomicU64; COUNT]; super::queue_pairs::PORTS]);

impl Counters {
    pub(crate) const fn new() -> Self {
        Self([const { [const { AtomicU64::new(0) }; COUNT] }; super::queue_pairs::PORTS])
    }

    /// Adds `more` to a counter of a port.
    #[inline]
    pub(crate) fn add(&self, port: u8, counter: Counter, more: u64) {
        if let Some(value) = self.value(port, counter as usize) {
            value.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Counts a packet of so many bytes that was sent to there.
    #[inline]
    pub(crate) fn sent(&self, port: u8, dlid: Lid, bytes: usize) {
        self.add(port, Counter::Sent, 1);
        self.add(port, Counter::SentBytes, bytes as u64);
        if dlid.is_multicast() {
            self.add(port, Counter::SentMulticast, 1);
        }
    }

    /// Counts a packet of so many bytes that came to `dlid`.
    #[inline]
    pub(crate) fn received(&self, port: u8, dlid: Lid, bytes: usize) {
        self.add(port, Counter::Received, 1);
        self.add(port, Counter::ReceivedBytes, bytes as u64);
        if dlid.is_multicast() {
            self.add(port, Counter::ReceivedMulticast, 1);
        }
    }

    /// The value of the counter of that place.
    pub(crate) fn get(&self, port: u8, place: usize) -> u64 {
        self.value(port, place)
            .map_or(0, |value| value.load(Ordering::Relaxed))
    }

    /// Returns the counters of a port that its performance agent reports.
    pub(crate) fn of_port(&self, port: u8) -> PortCounts {
        let of = |counter: Counter| self.get(port, counter as usize);
        // These first: of a sum that grows meanwhile no part is larger than the whole.
        let multicast = (of(Counter::SentMulticast), of(Counter::ReceivedMulticast));
        let packets = (of(Counter::Sent), of(Counter::Received));
        PortCounts {
            transmit_data: of(Counter::SentBytes) / 4,
            receive_data: of(Counter::ReceivedBytes) / 4,
            transmit_packets: packets.0,
            receive_packets: packets.1,
            // The subtractions saturate: relaxed loads may pass each other all the same.
            unicast_transmit_packets: packets.0.saturating_sub(multicast.0),
            unicast_receive_packets: packets.1.saturating_sub(multicast.1),
            multicast_transmit_packets: multicast.0,
            multicast_receive_packets: multicast.1,
            link_downed: of(Counter::LinkDowned),
            receive_errors: of(Counter::Malformed) + of(Counter::BadIcrc),
            transmit_discards: of(Counter::SendDropped),
            receive_constraint: of(Counter::WrongPkey),
            ..PortCounts::default()
        }
    }

    fn value(&self, port: u8, place: usize) -> Option<&AtomicU64> {
        self.0
            .get(usize::from(port).checked_sub(1)?)
            .and_then(|values| values.get(place))
    }
}
