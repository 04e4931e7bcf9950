// SPDX-License-Identifier: GPL-2.0-only

//! A packet's way out.
//!
//! The stack hands packets to [`TransmitQueue::transmit`] with the queue's lock held. A packet
//! to a destination in the queue's cache goes into the send ring at once, and to the device
//! as soon as nothing more is announced; others ask the interface's table, where they may have to
//! wait.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::{
        Reason,
        Verdict, //
    },
    arp_nd::{
        may_ask,
        Found, //
    },
    cache::{
        self,
        Cache,
        Key, //
    },
    connected::Senders,
    inbound::Numbers,
    interface::Interface,
    link::QueuePair,
    offload::{
        Adapter,
        Ring, //
    },
    statistics::Statistics,
    stopped::{
        is_roomy,
        is_short,
        Stopped, //
    }, //
};
use crate::{
    net::{
        device::Device,
        napi::{
            Context,
            Instance,
            Poll, //
        },
        queue::Queue,
        skb::Skb,
        statistics::Counter, //
    },
    rdma::{
        ah::AddressHandle,
        cq::{
            Batch,
            Completion,
            CompletionQueue,
            Status,
            BATCH, //
        },
        rc_send::Tag,
        send::{
            Completed,
            Destination,
            HandleId,
            Outcome,
            Posted,
            Refused, //
        }, //
    },
    wire::{
        encap,
        gid::Gid,
        hwaddr::HwAddr,
        mgid, //
    }, //
};

/// Most packets in one chain, so that the device gets to work while the stack goes on.
pub(super) const CHAIN: u32 = 64;

/// Handles beyond the cache's, so that a retired one need not be waited for.
const SPARE_HANDLES: usize = 64;

/// The completion queue of sent packets.
pub(super) type Completions = CompletionQueue<Arc<Instance<Reaper>>>;

/// One transmit queue of an interface that is up.
pub(super) struct TransmitQueue {
    send: Ring,
    adapter: Adapter,
    cache: Cache,
    interface: Arc<Interface>,
    pub(super) statistics: Arc<Statistics>,
    /// The stack was told to stop for want of slots.
    pub(super) stopped: Stopped,
    /// Connections, in connected mode.
    pub(super) senders: Option<KBox<Senders>>,
    /// The receive queues that peers are told of, if there are several.
    numbers: Option<Arc<Numbers>>,
    /// The queue has neither connections nor receive queues to tell: packets go out as they come.
    is_plain: bool,
    /// Questions for neighbours are answered by the address cache.
    answers_requests: bool,
}

/// A packet that has passed the checks, without its pseudo header.
struct Outgoing {
    destination: Destination,
    packet: Skb,
}

impl TransmitQueue {
    /// Makes queue `index` of `interface`, which sends on `qp`.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the device says.
    pub(super) fn new(
        interface: &Arc<Interface>,
        index: usize,
        qp: &Arc<QueuePair>,
        qkey: u32,
        senders: Option<KBox<Senders>>,
    ) -> Result<Self> {
        let handles = (cache::ENTRIES + SPARE_HANDLES) as u16;
        let mut send = Ring::new(qp, interface.sizes().send_ring, handles, qkey)?;
        send.make_headers()?;
        let cache = Cache::new()?;
        let statistics = interface.transmit_statistics(index).ok_or(EINVAL)?.clone();
        let of_senders = senders.as_ref().map_or(0, |senders| senders.memory());
        let memory = send.memory() + cache.memory() + of_senders;
        statistics.memory_rings.set(memory as u64);
        let numbers = interface.numbers.lock().clone();
        Ok(Self {
            is_plain: senders.is_none() && numbers.is_none(),
            answers_requests: interface.answers_requests(),
            numbers,
            send,
            adapter: Adapter::of(qp.device(), interface.port()),
            cache,
            interface: interface.clone(),
            statistics,
            stopped: Stopped::new(),
            senders,
        })
    }

    /// Sends a packet in the interface's mode, or answers the request in it.
    #[inline(always)]
    pub(super) fn transmit(&mut self, device: &Device<Interface>, queue: Queue<'_>, packet: Skb) {
        if self.is_plain && !(self.answers_requests && may_ask(&packet)) {
            self.transmit_datagram(device, queue, packet);
        } else {
            self.transmit_otherwise(device, queue, packet);
        }
    }

    /// Sends a packet that may have to tell something else of our address, or go by a connection.
    fn transmit_otherwise(&mut self, device: &Device<Interface>, queue: Queue<'_>, packet: Skb) {
        let mut packet = match self.look_up(packet) {
            Found::Send(packet) => packet,
            Found::Done => return self.post_all(device, queue),
            Found::Drop(packet) => {
                drop_counted(device, &self.statistics.tx_drop_unresolved, packet);
                return self.post_all(device, queue);
            }
        };
        if let Some(numbers) = &self.numbers {
            match numbers.prepare(&self.interface, &mut packet) {
                Ok(None) => {}
                Ok(Some(other)) => self.route(device, queue, other),
                Err(_) => {
                    drop_counted(device, &self.statistics.tx_drop_memory, packet);
                    return self.post_all(device, queue);
                }
            }
        }
        self.route(device, queue, packet);
    }

    /// Has the address cache answer a packet, if it is a question for a neighbour.
    fn look_up(&self, packet: Skb) -> Found {
        if self.answers_requests && may_ask(&packet) {
            self.interface.look_up(packet)
        } else {
            Found::Send(packet)
        }
    }

    /// Gives all that is chained to the device: what waits for more to come waits no longer.
    fn post_all(&mut self, device: &Device<Interface>, queue: Queue<'_>) {
        self.post_connection(device, queue);
        self.post(device, queue);
    }

    #[inline]
    fn route(&mut self, device: &Device<Interface>, queue: Queue<'_>, packet: Skb) {
        if self.senders.is_some() {
            self.transmit_connected(device, queue, packet);
        } else {
            self.transmit_datagram(device, queue, packet);
        }
    }

    /// Changes the receive queues that peers are told of.
    pub(super) fn set_numbers(&mut self, numbers: Option<Arc<Numbers>>) {
        self.is_plain = self.senders.is_none() && numbers.is_none();
        self.numbers = numbers;
    }

    /// Has questions for neighbours answered by the address cache, or not.
    pub(super) fn set_answers_requests(&mut self, answers_requests: bool) {
        self.answers_requests = answers_requests;
    }

    /// Sends a packet as a datagram.
    #[inline(always)]
    pub(super) fn transmit_datagram(
        &mut self,
        device: &Device<Interface>,
        queue: Queue<'_>,
        packet: Skb,
    ) {
        let sent = match self.prepare(device, packet) {
            Some(outgoing) => self.push(outgoing),
            None => None,
        };
        let mut post = match sent {
            Some(bytes) => queue.sent(bytes),
            // A packet that waits or is dropped may be the last one announced: the chain goes
            // then.
            None => !queue.more_follow(),
        };
        if is_short(self.send.free()) {
            // Stopped while the longest packet still fits: the stack never gets one back as busy.
            self.stopped.stop(&queue);
            self.statistics.tx_stopped.add(1);
            // A stopped queue gets no packet that would post this chain.
            post = true;
        }
        if post || self.send.chained() >= CHAIN {
            self.post(device, queue);
        }
    }

    /// Checks a packet and finds its destination. `None`: it waits or was dropped.
    #[inline(always)]
    fn prepare(&mut self, device: &Device<Interface>, packet: Skb) -> Option<Outgoing> {
        let statistics = &self.statistics;
        let length = packet.len();
        let Some((address, datagram)) = packet.data().split_first_chunk::<{ HwAddr::LEN }>() else {
            drop_counted(device, &statistics.tx_drop_header, packet);
            return None;
        };
        let address = HwAddr::from_ref(address);
        if encap::Header::parse(datagram).is_err() {
            drop_counted(device, &statistics.tx_drop_header, packet);
            return None;
        }
        if length > device.mtu() as usize + encap::HARD_LEN && !fits_in_parts(&packet, device.mtu())
        {
            drop_counted(device, &statistics.tx_drop_length, packet);
            return None;
        }
        let qpn = address.qpn();
        let key = Key::new(address.gid_bytes());
        let (handle, mut packet) = match self.cache.get(key) {
            Some(handle) => (handle, packet),
            None => {
                let gid = address.gid();
                self.find(device, gid, packet)?
            }
        };
        // As long as the address: checked above.
        let _ = packet.pull(HwAddr::LEN);
        let destination = Destination { handle, qpn };
        Some(Outgoing {
            destination,
            packet,
        })
    }

    /// Asks the interface's table for a destination that the cache does not hold. Packets to a
    /// group of another link, or of none, go to that of this link, as with the kernel's
    /// `ib_ipoib`.
    #[cold]
    fn find(
        &mut self,
        device: &Device<Interface>,
        mut gid: Gid,
        packet: Skb,
    ) -> Option<(HandleId, Skb)> {
        if gid.is_multicast() {
            gid = mgid::in_partition(gid, self.interface.pkey());
            if let Some(handle) = self.cache.get(Key::new(&gid.bytes())) {
                return Some((handle, packet));
            }
        }
        self.statistics.address_misses.add(1);
        let statistics = &self.statistics;
        // Lock order: this queue's lock, which is held, and then the table's.
        match self.interface.request(gid, packet) {
            Verdict::Send(handle, packet) => match self.install(gid, handle) {
                Some(id) => Some((id, packet)),
                None => {
                    drop_counted(device, &self.statistics.tx_drop_full, packet);
                    None
                }
            },
            Verdict::Waits | Verdict::Search(_) => None,
            Verdict::Drop(packet, reason) => {
                let counter = match reason {
                    Reason::QueueFull | Reason::Busy => &statistics.tx_drop_waiting,
                    Reason::Unreachable => &statistics.tx_drop_unreachable,
                    Reason::NoMemory => &statistics.tx_drop_memory,
                };
                drop_counted(device, counter, packet);
                None
            }
        }
    }

    /// Enters a handle into the cache. `None` if too many handles wait for sends to complete.
    fn install(&mut self, gid: Gid, handle: Arc<AddressHandle>) -> Option<HandleId> {
        // Checked before the eviction: a victim that cannot retire would keep its place for good.
        if !self.send.can_retire() {
            return None;
        }
        let key = Key::new(&gid.bytes());
        if let Some(victim) = self.cache.evict(key) {
            self.send.retire(victim);
        }
        let id = self.send.install(handle)?;
        self.cache.insert(key, id);
        Some(id)
    }

    /// Puts a packet into the ring. Returns its length if it is there.
    #[inline(always)]
    fn push(&mut self, outgoing: Outgoing) -> Option<u32> {
        let Outgoing {
            destination,
            packet,
        } = outgoing;
        let pushed = if packet.is_plain() {
            self.send.push(destination, packet)
        } else {
            let (ring, statistics) = (&mut self.send, &self.statistics);
            self.adapter.push(ring, statistics, destination, packet)
        };
        let (packet, counter) = match pushed {
            Ok(bytes) => return Some(bytes),
            Err(Refused::Full(packet)) => (packet, &self.statistics.tx_drop_full),
            Err(Refused::Failed(packet) | Refused::Scattered(packet)) => {
                (packet, &self.statistics.tx_drop_memory)
            }
        };
        drop_counted(self.interface.device(), counter, packet);
        None
    }

    /// Gives what is chained to the device.
    #[inline]
    pub(super) fn post(&mut self, device: &Device<Interface>, queue: Queue<'_>) {
        let chained = self.send.chained();
        if chained == 0 {
            return;
        }
        // A stopped queue is woken by a completion, so the chain asks for one.
        let posted = self.send.post(self.stopped.get());
        let statistics = &self.statistics;
        statistics.tx_posts.add(1);
        statistics.tx_chains.add(u64::from(chained > 1));
        statistics.tx_packets.add(u64::from(posted.packets));
        statistics.tx_inline.add(u64::from(posted.inlined));
        // The device has copied inline packets: they are done with the post.
        if posted.done.packets != 0 {
            queue.completed(posted.done.packets, posted.done.bytes);
            statistics.count_sent(device, posted.done.packets, posted.done.bytes);
        }
        if posted.refused != 0 || posted.stuck {
            self.refused(device, queue, &posted);
        }
    }

    /// Accounts for packets that the device did not take.
    #[cold]
    fn refused(&mut self, device: &Device<Interface>, queue: Queue<'_>, posted: &Posted) {
        self.statistics
            .tx_drop_refused
            .add(u64::from(posted.refused));
        for _ in 0..posted.refused {
            device.count_send_dropped();
        }
        // The byte queue limit has counted them as sent, and no completion takes them back.
        queue.completed(posted.refused, posted.refused_bytes);
        // The slots of refused packets are free, and no completion comes to wake the queue.
        self.wake(queue);
        if posted.stuck {
            self.interface.restart_soon();
        } else {
            self.interface.recover();
        }
    }

    /// Wakes the stack's queue if there is room again.
    #[inline]
    pub(super) fn wake(&mut self, queue: Queue<'_>) {
        if self.stopped.get() && self.has_room() {
            if let Some(senders) = &mut self.senders {
                senders.unblock();
            }
            self.stopped.wake(&queue);
        }
    }

    fn has_room(&mut self) -> bool {
        is_roomy(self.send.free(), self.send.capacity())
            && self
                .senders
                .as_mut()
                .is_none_or(|senders| senders.has_room())
    }

    /// Ends the packets that a completion stands for.
    #[inline]
    fn complete(&mut self, completion: &Completion, budget: usize) -> Outcome {
        if let Some((tag, _)) = Tag::of(completion.id()) {
            return self.complete_connected(tag, completion, budget);
        }
        if completion.status() != Status::Success {
            // Flushed, too: an interface that is taken down polls no more, so this is an error that
            // the queue pair may not report otherwise.
            self.statistics.tx_errors.add(1);
            self.interface.recover();
        }
        let ended = self.send.complete(completion, budget as i32);
        Outcome::of(completion.status(), ended.unwrap_or_default())
    }

    /// Ends all packets; unless the queue pair is in Reset, their memory stays with the device.
    /// Returns how many there were.
    pub(super) fn clear(&mut self) -> usize {
        self.statistics.memory_rings.set(0);
        self.send.clear().packets as usize
    }

    /// Forgets the path to each of `gids`. What cannot be forgotten now is forgotten with its next
    /// eviction: its handle stays valid as long as it is known here.
    pub(super) fn forget(&mut self, gids: &[Gid]) {
        for gid in gids {
            if self.send.can_retire() {
                if let Some(handle) = self.cache.remove(gid) {
                    self.send.retire(handle);
                }
            }
        }
    }

    /// Changes the key that packets carry from now on.
    pub(super) fn set_qkey(&mut self, qkey: u32) {
        self.send.set_qkey(qkey);
    }

    /// Forgets the paths to all destinations, as far as handles can be retired now.
    pub(super) fn forget_all(&mut self) {
        while self.send.can_retire() {
            match self.cache.pop() {
                Some(handle) => self.send.retire(handle),
                None => return,
            }
        }
    }

    /// Notes the destinations used since the last call, as far as `out` has room.
    pub(super) fn take_used(&mut self, out: &mut KVec<Gid>) {
        self.cache.take_used(out);
    }
}

/// Returns whether a packet, with its pseudo header, is to be cut into parts of at most `mtu`
/// bytes. The MTU may be another one since the stack chose their size; one that is too long
/// breaks a queue pair.
#[inline(never)]
fn fits_in_parts(packet: &Skb, mtu: u32) -> bool {
    let segments = packet.wishes().segments;
    segments.is_some_and(|parts| parts.headers + parts.size <= mtu as usize + encap::HARD_LEN)
}

/// Drops a packet for a reason that `counter` counts.
#[cold]
pub(super) fn drop_counted(device: &Device<Interface>, counter: &Counter, packet: Skb) {
    counter.add(1);
    device.count_send_dropped();
    drop(packet);
}

/// The poll that ends sent packets.
pub(super) struct Reaper {
    completions: Arc<Completions>,
    device: Device<Interface>,
    queue: u32,
    statistics: Arc<Statistics>,
    batch: Batch,
}

impl Reaper {
    /// Makes the poll of queue `index` of `interface`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such queue.
    pub(super) fn new(
        interface: &Interface,
        index: usize,
        completions: &Arc<Completions>,
    ) -> Result<Self> {
        Ok(Self {
            completions: completions.clone(),
            device: interface.device().clone(),
            queue: index as u32,
            statistics: interface.transmit_statistics(index).ok_or(EINVAL)?.clone(),
            batch: Batch::new(),
        })
    }
}

impl Poll for Reaper {
    fn poll(&mut self, context: &Context<'_>, budget: usize) -> usize {
        let mut done = 0;
        loop {
            let taken = self.reap(context, budget);
            done += taken;
            if taken < BATCH || done >= budget {
                break;
            }
        }
        // Without a budget this is netpoll: the poll goes on as it was scheduled.
        if done < budget && context.complete(done) && self.completions.arm() {
            context.reschedule();
        }
        done.min(budget)
    }
}

impl Reaper {
    /// Handles a batch of completions; returns how many there were.
    fn reap(&mut self, context: &Context<'_>, budget: usize) -> usize {
        let completions = self.completions.poll(&mut self.batch, BATCH);
        if completions.is_empty() {
            return 0;
        }
        self.statistics.tx_completions.add(completions.len() as u64);
        let Ok(mut guard) = self.device.lock_queue_in_poll(context, self.queue) else {
            return completions.len();
        };
        let (mut sent, mut lost) = (Completed::default(), Completed::default());
        // What the byte queue limit has counted: not the packets of connections.
        let mut limited = Completed::default();
        if let Some(queue) = guard.as_mut() {
            for completion in completions {
                let outcome = queue.complete(completion, budget);
                sent += outcome.sent;
                lost += outcome.lost;
                if Tag::of(completion.id()).is_none() {
                    limited += outcome.sent;
                    limited += outcome.lost;
                }
            }
        }
        // In the transmit of a packet they are counted too: with the lock.
        self.statistics
            .count_sent(&self.device, sent.packets, sent.bytes);
        guard.with_queue(|data, queue| {
            queue.completed(limited.packets, limited.bytes);
            if let Some(data) = data {
                data.wake(queue);
            }
        });
        drop(guard);
        for _ in 0..lost.packets {
            self.device.count_send_dropped();
        }
        completions.len()
    }
}
