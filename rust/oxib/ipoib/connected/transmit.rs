// SPDX-License-Identifier: GPL-2.0-only

//! A packet's way out in connected mode: by the connection to its destination, or as a datagram.
//!
//! All packets to one destination go by the same transmit queue ([`home`]), so a connection has one
//! queue, and that queue's lock serialises it. A filter or a change of the number of queues may
//! have a packet come by another one: what is too large for a datagram goes by a connection of that
//! queue's own. Packets are chained as those in datagrams are; at most one chain of a queue is not
//! posted.
//!
//! They do not count against the queue's byte queue limit, as with the kernel's `ib_ipoib`: a peer
//! that is gone acknowledges nothing for seconds, and would hold up the queue's other destinations
//! with little on its way. These wait for it only once the ring of its connection, or the queue's
//! share of the completion queue, is full.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    peer::{
        Fate,
        Peers,
        Route, //
    },
    receive::Arrivals,
    session::Session, //
};
use crate::{
    ipoib::{
        interface::Interface,
        stopped::WAKE_SHARE,
        strangers,
        transmit::{
            drop_counted,
            Reaper,
            TransmitQueue,
            CHAIN, //
        }, //
    },
    net::{
        device::Device,
        napi::Instance,
        queue::Queue,
        skb::Skb, //
    },
    rdma::{
        cq::{
            Completion,
            Status, //
        },
        dma::Pieces,
        management,
        rc_send::{
            SendRing,
            Tag, //
        },
        send::{
            Outcome,
            Posted,
            Refused, //
        }, //
    },
    wire::{
        encap,
        gid::Gid,
        hwaddr::HwAddr, //
    }, //
};

mod teardown;

/// The share of the completion queue that may be taken by requests that nobody waits for.
const QUIET_SHARE: u32 = 4;

/// The send side of one connection.
pub(in crate::ipoib) struct Sender {
    ring: SendRing<Skb, Arc<Instance<Reaper>>, Arc<Instance<Arrivals>>>,
    /// The largest packet that the peer takes, with its encapsulation header.
    most: u32,
}

impl Sender {
    pub(super) fn new(
        ring: SendRing<Skb, Arc<Instance<Reaper>>, Arc<Instance<Arrivals>>>,
        most: u32,
    ) -> Self {
        Self { ring, most }
    }
}

/// Connected mode as a part of a transmit queue.
pub(in crate::ipoib) struct Senders {
    session: Arc<Session>,
    peers: Peers<Sender, Skb>,
    /// Index of the transmit queue, and number of transmit queues.
    index: u32,
    queues: u32,
    /// The largest datagram, with its encapsulation header.
    datagram: usize,
    /// The connection with the chain that is not posted.
    chained: Option<Tag>,
    /// Requests with the device, of all connections, and how many of them the completion queue
    /// takes.
    in_flight: u32,
    limit: u32,
    /// Requests among these that complete only once another one of their connection does.
    unsignalled: u32,
    /// The connection that had no slot left.
    blocked: Option<Tag>,
}

/// Returns the transmit queue, of `queues`, that all packets to an address go by.
#[inline]
fn home(address: &HwAddr, queues: u32) -> u32 {
    let [.., a, b, c, d] = *address.gid_bytes();
    // Multiplicative hashing: the constant is 2^32 divided by the golden ratio.
    let mixed = u32::from_be_bytes([a, b, c, d]).wrapping_mul(0x9e37_79b9);
    (u64::from(mixed) * u64::from(queues) >> 32) as u32
}

/// Returns whether a packet may go by a connection of the queue that it came by. If that is not the
/// destination's own, one is only begun for a packet that is too large for a datagram.
///
/// Address resolution begins no connection. A sender that asks from invented addresses is answered
/// and later probed at each of them, and each connection would query the subnet administrator for a
/// path. As datagrams, these packets have the budget of [`crate::ipoib::strangers`].
#[inline]
fn may_connect(
    is_home: bool,
    is_large: bool,
    is_resolution: bool,
    is_connected: impl FnOnce() -> bool,
) -> bool {
    is_large || (is_home && !is_resolution) || is_connected()
}

/// The handling of a packet.
enum Handled {
    /// The packet is in a connection's chain.
    Chained(Tag),
    /// The packet goes as a datagram.
    Datagram(Skb),
    /// The packet waits, or was dropped.
    Gone,
}

impl Senders {
    /// Creates the connections' part of transmit queue `index`; packets of up to `datagram` bytes
    /// go as datagrams, with the encapsulation header.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(in crate::ipoib) fn new(
        session: &Arc<Session>,
        index: usize,
        datagram: u32,
    ) -> Result<KBox<Self>> {
        let senders = Self {
            session: session.clone(),
            // Another number for each session, but for one case in thousands: its tags are none of
            // those of earlier ones, whose completions may still come.
            peers: Peers::new(management::random() as u16)?,
            index: index as u32,
            queues: session.queues.pairs.len() as u32,
            datagram: datagram as usize,
            chained: None,
            in_flight: 0,
            limit: session.interface.sizes.get().send_ring,
            unsignalled: 0,
            blocked: None,
        };
        Ok(KBox::new(senders, GFP_KERNEL)?)
    }

    /// Changes the length of the largest datagram, with its encapsulation header.
    pub(in crate::ipoib) fn set_datagram(&mut self, bytes: u32) {
        self.datagram = bytes as usize;
    }

    /// Notes in `out` the connections that are to be closed: see [`Peers::take_idle`].
    pub(super) fn take_idle(
        &mut self,
        now: u64,
        idle: u64,
        from: usize,
        out: &mut KVec<Tag>,
    ) -> Option<usize> {
        self.peers.take_idle(now, idle, from, out)
    }

    /// Passes to `end` the packets that have waited too long for their connections. Returns
    /// whether others wait.
    pub(super) fn expire_waits(&mut self, now: u64, end: impl FnMut(Skb)) -> bool {
        self.peers.expire_waits(now, end)
    }

    /// Returns whether these are the connections of `session`.
    pub(super) fn is_of(&self, session: &Arc<Session>) -> bool {
        Arc::ptr_eq(&self.session, session)
    }

    /// Returns whether a stopped queue may go on.
    pub(in crate::ipoib) fn has_room(&mut self) -> bool {
        let is_free = self.in_flight <= self.limit - self.limit / WAKE_SHARE;
        let blocked = self.blocked.and_then(|tag| self.peers.link(tag));
        is_free
            && blocked
                .is_none_or(|sender| sender.ring.free() >= sender.ring.capacity() / WAKE_SHARE)
    }

    /// Notes that the queue goes on.
    pub(in crate::ipoib) fn unblock(&mut self) {
        self.blocked = None;
    }

    /// Bytes of memory that the table takes.
    pub(in crate::ipoib) fn memory(&self) -> usize {
        size_of::<Self>() + self.peers.memory()
    }

    /// Finds out how a packet goes, and puts it there.
    fn handle(&mut self, queue: &QueueParts<'_>, packet: Skb) -> Handled {
        let Some((address, datagram)) = packet.data().split_first_chunk::<{ HwAddr::LEN }>() else {
            return Handled::Datagram(packet);
        };
        let _ = datagram;
        let address = *HwAddr::from_ref(address);
        let length = packet.len() - HwAddr::LEN;
        let interface = &self.session.interface;
        let (is_home, is_large) = (
            home(&address, self.queues) == self.index,
            length > self.datagram,
        );
        let takes_connections = address.flags() & HwAddr::RC != 0
            && !address.is_multicast()
            && may_connect(is_home, is_large, strangers::is_resolution(&packet), || {
                self.peers.link_to(&address).is_some()
            });
        let route = if takes_connections {
            self.peers.route(&address, || interface.now())
        } else {
            Route::Datagram
        };
        match route {
            Route::Connection(sender, tag) if length <= sender.most as usize => {
                sender.push(queue, tag, packet)
            }
            Route::Connection(sender, _) => {
                let most = sender.most;
                self.session.too_big(interface, packet, most);
                Handled::Gone
            }
            Route::Begin(tag) => {
                if self.session.connect(self.index, tag, address).is_err() {
                    let now = interface.now();
                    drop(self.peers.end(tag, Fate::Postponed, now));
                }
                self.meanwhile(queue, tag, packet, length)
            }
            Route::Wait(tag) => self.meanwhile(queue, tag, packet, length),
            Route::Pause if length > self.datagram => {
                drop_counted(queue.device, &queue.statistics.tx_drop_waiting, packet);
                Handled::Gone
            }
            Route::Pause => Handled::Datagram(packet),
            Route::Datagram => self.as_datagram(interface.clone(), packet, length),
        }
    }

    /// Handles a packet to a peer to which a connection is being established.
    fn meanwhile(
        &mut self,
        queue: &QueueParts<'_>,
        tag: Tag,
        packet: Skb,
        length: usize,
    ) -> Handled {
        if length <= self.datagram {
            return Handled::Datagram(packet);
        }
        match self.peers.hold(tag, packet) {
            Ok(()) => self.session.expire_waits_later(),
            Err(packet) => drop_counted(queue.device, &queue.statistics.tx_drop_waiting, packet),
        }
        Handled::Gone
    }

    /// Handles a packet for which there will be no connection.
    fn as_datagram(&mut self, interface: Arc<Interface>, packet: Skb, length: usize) -> Handled {
        if length <= self.datagram {
            return Handled::Datagram(packet);
        }
        let most = self.datagram as u32;
        self.session.too_big(&interface, packet, most);
        Handled::Gone
    }
}

/// Parts of a transmit queue that connections use.
struct QueueParts<'a> {
    device: &'a Device<Interface>,
    statistics: &'a crate::ipoib::statistics::Statistics,
}

impl Sender {
    /// Puts a packet into the connection's chain.
    fn push(&mut self, queue: &QueueParts<'_>, tag: Tag, mut packet: Skb) -> Handled {
        let statistics = queue.statistics;
        // Copied into one piece if the device takes fewer: the packet is not lost for that.
        if packet.pieces() > self.ring.pieces() && packet.linearize().is_err() {
            drop_counted(queue.device, &statistics.tx_drop_memory, packet);
            return Handled::Gone;
        }
        // As long as the address: checked before.
        let _ = packet.pull(HwAddr::LEN);
        let (packet, counter) = match self.ring.push(packet) {
            Ok(()) => return Handled::Chained(tag),
            Err(Refused::Full(packet)) => (packet, &statistics.tx_drop_full),
            Err(Refused::Failed(packet) | Refused::Scattered(packet)) => {
                (packet, &statistics.tx_drop_memory)
            }
        };
        drop_counted(queue.device, counter, packet);
        Handled::Gone
    }
}

impl TransmitQueue {
    /// Sends a packet in connected mode.
    #[inline(never)]
    pub(in crate::ipoib) fn transmit_connected(
        &mut self,
        device: &Device<Interface>,
        queue: Queue<'_>,
        mut packet: Skb,
    ) {
        let Some(senders) = self.senders.as_deref_mut() else {
            return self.transmit_datagram(device, queue, packet);
        };
        let parts = QueueParts {
            device,
            statistics: &self.statistics,
        };
        let wishes = (!packet.is_plain()).then(|| packet.wishes());
        let is_cut = wishes
            .as_ref()
            .is_some_and(|wishes| wishes.segments.is_some());
        let unfinished = wishes.is_some_and(|wishes| wishes.checksum);
        let handled = if is_cut {
            // The stack made it ready for datagram mode, and it comes late.
            drop_counted(device, &self.statistics.tx_drop_length, packet);
            Handled::Gone
        } else if unfinished && packet.complete_checksum().is_err() {
            // No adapter computes checksums of what goes by a connection.
            drop_counted(device, &self.statistics.tx_drop_memory, packet);
            Handled::Gone
        } else {
            senders.handle(&parts, packet)
        };
        match handled {
            Handled::Chained(tag) => self.chained(device, queue, tag),
            Handled::Datagram(packet) => {
                self.post_connection(device, queue);
                self.transmit_datagram(device, queue, packet);
            }
            Handled::Gone => {
                if !queue.more_follow() {
                    self.post_connection(device, queue);
                    self.post(device, queue);
                }
            }
        }
    }

    /// Notes the peers to which packets were sent by connections since the last look, as far as
    /// `out` has room. Begins at the place `from`, and returns the place to go on at if there may
    /// be more.
    pub(in crate::ipoib) fn take_connected(
        &mut self,
        from: usize,
        out: &mut KVec<Gid>,
    ) -> Option<usize> {
        self.senders.as_mut()?.peers.take_used(from, out)
    }

    /// Notes that a packet was put into the chain of a connection.
    fn chained(&mut self, device: &Device<Interface>, queue: Queue<'_>, tag: Tag) {
        // Other chains go first: one is enough to remember.
        self.post(device, queue);
        let other = self.senders.as_ref().and_then(|senders| senders.chained);
        if other.is_some_and(|other| other != tag) {
            self.post_connection(device, queue);
        }
        let mut post = !queue.more_follow();
        let Some(senders) = self.senders.as_deref_mut() else {
            return;
        };
        senders.chained = Some(tag);
        senders.in_flight += 1;
        // All connections of a queue share half of its completion queue, which must not overflow.
        let is_full = senders.in_flight >= senders.limit;
        let Some(sender) = senders.peers.link(tag) else {
            return;
        };
        post |= sender.ring.chained() >= CHAIN;
        if is_full || sender.ring.free() == 0 {
            // The stack has one queue for them all, so it stops for the one that is full.
            senders.blocked = Some(tag);
            self.stopped.stop(&queue);
            self.statistics.tx_stopped.add(1);
            post = true;
        }
        if post {
            self.post_connection(device, queue);
        }
    }

    /// Gives the chain of a connection to the device, if there is one that is not posted.
    pub(in crate::ipoib) fn post_connection(
        &mut self,
        device: &Device<Interface>,
        queue: Queue<'_>,
    ) {
        let Some(senders) = self.senders.as_deref_mut() else {
            return;
        };
        let Some(tag) = senders.chained.take() else {
            return;
        };
        let Some(sender) = senders.peers.link(tag) else {
            return;
        };
        // Few enough, or those that the queue may have to wait for would never be done.
        let quietly = !self.stopped.get() && senders.unsignalled < senders.limit / QUIET_SHARE;
        senders.unsignalled -= sender.ring.unsignalled();
        let posted = sender.ring.post(quietly);
        senders.unsignalled += sender.ring.unsignalled();
        let chained = posted.packets + posted.refused;
        self.statistics.tx_posts.add(1);
        self.statistics.tx_chains.add(u64::from(chained > 1));
        self.statistics.tx_packets.add(u64::from(posted.packets));
        self.statistics.tx_inline.add(u64::from(posted.inlined));
        if posted.done.packets != 0 {
            self.statistics
                .count_sent(device, posted.done.packets, posted.done.bytes);
        }
        if posted.refused != 0 || posted.stuck {
            self.refused_by_connection(device, queue, tag, &posted);
        }
    }

    /// Accounts for packets that the device did not take: the connection has failed.
    #[cold]
    fn refused_by_connection(
        &mut self,
        device: &Device<Interface>,
        queue: Queue<'_>,
        tag: Tag,
        posted: &Posted,
    ) {
        self.statistics
            .tx_drop_refused
            .add(u64::from(posted.refused));
        for _ in 0..posted.refused {
            device.count_send_dropped();
        }
        if let Some(senders) = &mut self.senders {
            senders.in_flight -= posted.refused;
            senders.break_off(tag);
        }
        self.wake(queue);
    }

    /// Ends the packets that a completion of a connection stands for.
    pub(in crate::ipoib) fn complete_connected(
        &mut self,
        tag: Tag,
        completion: &Completion,
        budget: usize,
    ) -> Outcome {
        let Some(senders) = self.senders.as_deref_mut() else {
            return Outcome::default();
        };
        let Some(sender) = senders.peers.link(tag) else {
            // Of one that is gone: it was accounted for.
            return Outcome::default();
        };
        // A completion ends all requests before its own, too: the difference counts them.
        let free = sender.ring.free();
        let Some(outcome) = sender.ring.complete(completion, budget as i32) else {
            // Of the queue pair of an earlier connection: its failure is none of this one's.
            return Outcome::default();
        };
        senders.in_flight -= sender.ring.free() - free;
        if completion.status() != Status::Success {
            // The peer went, or is not ready: no trouble of ours.
            self.statistics.tx_drop_connection.add(1);
            senders.break_off(tag);
        }
        outcome
    }
}

impl Interface {
    /// Passes on a new connection: packets that waited for it go, and all that follow.
    ///
    /// # Errors
    ///
    /// `ENOENT`: nobody wants it any more.
    pub(super) fn connection_made(
        &self,
        session: &Arc<Session>,
        queue: u32,
        tag: Tag,
        sender: Sender,
    ) -> Result {
        let now = self.now();
        let mut guard = self.device().lock_queue(queue)?;
        let senders = guard.as_mut().and_then(|data| data.senders.as_mut());
        // The interface may have gone down and up since: the tag means nothing to another session.
        let waiting = match senders.filter(|senders| senders.is_of(session)) {
            Some(senders) => senders.peers.connected(tag, sender, now).map_err(drop),
            None => {
                drop(sender);
                Err(())
            }
        };
        // Each of the packets takes the queue's lock.
        drop(guard);
        for packet in waiting.map_err(|()| ENOENT)? {
            packet.transmit_again();
        }
        Ok(())
    }

    /// Returns the session that the transmit queues know, if there is one.
    pub(super) fn session_of_queues(&self) -> Option<Arc<Session>> {
        let mut guard = self.device().lock_queue(0).ok()?;
        let senders = guard.as_mut()?.senders.as_ref()?;
        Some(senders.session.clone())
    }

    /// Returns the transmit queue of a packet that goes to `address`, in connected mode.
    #[inline]
    pub(in crate::ipoib) fn select_queue(&self, address: &HwAddr) -> u32 {
        home(address, self.sizes.get().transmit_queues)
    }
}

const _: () = assert!(encap::PSEUDO_LEN == HwAddr::LEN);

#[kernel::prelude::kunit_tests(oxib_connected_transmit)]
mod tests {
    use super::*;
    use crate::wire::qpn::Qpn;

    #[test]
    fn destinations_have_one_queue_each() {
        let mut used = [0; 4];
        for n in 0..=255u8 {
            let mut gid = [0xfe; 16];
            gid[15] = n;
            let address = HwAddr::new(Qpn::from_bytes([0, 0, n]), Gid::from_bytes(gid));
            assert_eq!(home(&address, 1), 0);
            let queue = home(&address, 4);
            // Which queue pair it is of, and what it offers, is no matter.
            let other = HwAddr::new(Qpn::MULTICAST, Gid::from_bytes(gid)).with_flags(HwAddr::RC);
            assert_eq!(home(&other, 4), queue);
            used[queue as usize] += 1;
        }
        assert!(used.iter().all(|count| *count > 32));
    }

    #[test]
    fn large_packets_are_connected_whatever_their_queue_and_resolution_is_not() {
        for (is_home, is_large, is_resolution, is_connected, expected) in [
            (true, false, false, false, true),
            (true, true, false, false, true),
            (false, true, false, false, true),
            (false, false, false, true, true),
            (false, false, false, false, false),
            (true, false, true, false, false),
            (true, false, true, true, true),
            (false, false, true, true, true),
            (true, true, true, false, true),
        ] {
            let may = may_connect(is_home, is_large, is_resolution, || is_connected);
            assert_eq!(may, expected);
        }
    }
}
