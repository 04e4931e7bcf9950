// SPDX-License-Identifier: GPL-2.0-only

//! A packet's way out.
//!
//! The stack hands packets to [`TransmitQueue::transmit`] with the queue's lock held. A packet whose
//! destination is in the queue's cache goes into the send ring at once, and to the device as soon
//! as nothing more is announced; others ask the interface's table, where they may have to wait.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::{
        Reason,
        Verdict, //
    },
    cache::{
        self,
        Cache,
        Key, //
    },
    interface::Interface,
    link::QueuePair,
    receive::Receiver,
    statistics::Statistics, //
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
            CompletionQueue,
            Status,
            BATCH, //
        },
        send::{
            Completed,
            Destination,
            HandleId,
            Posted,
            Refused,
            SendQueue, //
        }, //
    },
    wire::{
        encap,
        gid::Gid,
        hwaddr::HwAddr, //
    }, //
};

/// Most packets in one chain, so that the device gets to work while the stack goes on.
const CHAIN: u32 = 64;

/// The share of the ring that must be free before a stopped queue is woken.
const WAKE_SHARE: u32 = 4;

/// Handles beyond the cache's, so that a retired one need not be waited for.
const SPARE_HANDLES: usize = 64;

/// The completion queue of sent packets.
pub(super) type Completions = CompletionQueue<Arc<Instance<Reaper>>>;

/// One transmit queue of an interface that is up.
pub(super) struct TransmitQueue {
    send: SendQueue<Skb, Arc<Instance<Reaper>>, Arc<Instance<Receiver>>>,
    cache: Cache,
    interface: Arc<Interface>,
    statistics: Arc<Statistics>,
    /// The stack was told to stop for want of slots.
    stopped: bool,
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
    ) -> Result<Self> {
        let handles = (cache::ENTRIES + SPARE_HANDLES) as u16;
        let send = SendQueue::new(qp, interface.options().send_ring, handles, qkey)?;
        let cache = Cache::new()?;
        let statistics = interface.transmit_statistics(index).ok_or(EINVAL)?.clone();
        let memory = send.memory() + cache.memory();
        statistics.memory_rings.set(memory as u64);
        Ok(Self {
            send,
            cache,
            interface: interface.clone(),
            statistics,
            stopped: false,
        })
    }

    /// Sends a packet.
    #[inline(always)]
    pub(super) fn transmit(&mut self, device: &Device<Interface>, queue: Queue<'_>, packet: Skb) {
        let sent = match self.prepare(device, packet) {
            Some(outgoing) => self.push(outgoing),
            None => None,
        };
        let mut post = match sent {
            Some(bytes) => queue.sent(bytes),
            None => !queue.more_follow(),
        };
        if self.send.free() == 0 {
            queue.stop();
            self.stopped = true;
            self.statistics.tx_stopped.add(1);
            post = true;
        }
        if post || self.send.chained() >= CHAIN {
            self.post(device, queue);
        }
    }

    /// Checks a packet and finds its destination. `None`: it waits or was dropped.
    #[inline(always)]
    fn prepare(&mut self, device: &Device<Interface>, mut packet: Skb) -> Option<Outgoing> {
        let statistics = &self.statistics;
        if !packet.is_linear() && packet.linearize().is_err() {
            drop_counted(device, &statistics.tx_drop_memory, packet);
            return None;
        }
        let Some((address, datagram)) = packet.data().split_first_chunk::<{ HwAddr::LEN }>() else {
            drop_counted(device, &statistics.tx_drop_header, packet);
            return None;
        };
        let address = HwAddr::from_ref(address);
        if encap::Header::parse(datagram).is_err() {
            drop_counted(device, &statistics.tx_drop_header, packet);
            return None;
        }
        if datagram.len() > device.mtu() as usize + encap::LEN {
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

    /// Asks the interface's table for a destination that the cache does not hold.
    #[cold]
    fn find(
        &mut self,
        device: &Device<Interface>,
        gid: Gid,
        packet: Skb,
    ) -> Option<(HandleId, Skb)> {
        self.statistics.address_misses.add(1);
        let statistics = &self.statistics;
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
        let bytes = outgoing.packet.len() as u32;
        let (packet, counter) = match self.send.push(outgoing.destination, outgoing.packet) {
            Ok(()) => return Some(bytes),
            Err(Refused::Full(packet)) => (packet, &self.statistics.tx_drop_full),
            Err(Refused::Failed(packet)) => (packet, &self.statistics.tx_drop_memory),
        };
        drop_counted(self.interface.device(), counter, packet);
        None
    }

    /// Gives what is chained to the device.
    #[inline]
    fn post(&mut self, device: &Device<Interface>, queue: Queue<'_>) {
        let chained = self.send.chained();
        if chained == 0 {
            return;
        }
        let posted = self.send.post();
        let statistics = &self.statistics;
        statistics.tx_posts.add(1);
        statistics.tx_chains.add(u64::from(chained > 1));
        statistics.tx_packets.add(u64::from(posted.packets));
        statistics.tx_inline.add(u64::from(posted.inlined));
        if posted.refused != 0 {
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
        queue.completed(posted.refused, posted.refused_bytes);
        self.wake(queue);
        if posted.stuck {
            self.interface.restart_soon();
        } else {
            self.interface.recover();
        }
    }

    /// Wakes the stack's queue if there is room again.
    #[inline]
    fn wake(&mut self, queue: Queue<'_>) {
        if self.stopped && self.send.free() >= self.send.capacity() / WAKE_SHARE {
            self.stopped = false;
            queue.wake();
        }
    }

    /// Ends the packets that a completion stands for.
    #[inline]
    fn complete(&mut self, id: u64, status: Status, budget: usize) -> Completed {
        if status != Status::Success {
            // Flushed, too: an interface that is taken down polls no more, so this is an error that
            // the queue pair may not report otherwise.
            self.statistics.tx_errors.add(1);
            self.interface.recover();
        }
        self.send.complete(id, budget as i32).unwrap_or_default()
    }

    /// Ends all packets, after the queue pair was reset; if it could not be (`quiet` is false), their
    /// memory stays with the device. Returns how many there were.
    pub(super) fn clear(&mut self, quiet: bool) -> usize {
        if !quiet {
            self.send.abandon();
        }
        self.statistics.memory_rings.set(0);
        self.send.clear().packets as usize
    }

    /// Forgets the way to each of `gids`. What cannot be forgotten now is forgotten with its next
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

    /// Forgets all ways.
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

/// Drops a packet for a reason that `counter` counts.
#[cold]
fn drop_counted(device: &Device<Interface>, counter: &Counter, packet: Skb) {
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
        let (mut all, mut sent) = (Completed::default(), Completed::default());
        if let Some(queue) = guard.as_mut() {
            for completion in completions {
                let status = completion.status();
                let ended = queue.complete(completion.id(), status, budget);
                all += ended;
                if status == Status::Success {
                    sent += ended;
                }
            }
        }
        guard.with_queue(|data, queue| {
            queue.completed(all.packets, all.bytes);
            if let Some(data) = data {
                data.wake(queue);
            }
        });
        drop(guard);
        self.device.count_sent(sent.packets, sent.bytes);
        for _ in sent.packets..all.packets {
            self.device.count_send_dropped();
        }
        completions.len()
    }
}
