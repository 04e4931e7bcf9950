// SPDX-License-Identifier: GPL-2.0-only

//! The queue pairs of an interface, with their completion queues and polls: how they are made, how
//! many there are, and how long.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    interface::Interface,
    link::QueuePair,
    options::{
        Options,
        MAX_TX_QUEUES,
        RING, //
    },
    receive::Receiver,
    transmit::Reaper, //
};
use crate::{
    net::{
        device::Device,
        ethtool::{
            Channels,
            Rings, //
        },
        napi::{
            Instance,
            Napi,
            Polled, //
        },
        rtnl::Rtnl, //
    },
    rdma::{
        cq::CompletionQueue,
        device::Device as RdmaDevice,
        pd::ProtectionDomain,
        port::PortNumber,
        qp::{
            self,
            Capacity, //
        },
        send::{
            FEW,
            MANY, //
        }, //
    }, //
};

mod moderation;
mod resize;

/// Bytes that we would like to send inline: a TCP acknowledgement with its headers and time stamps,
/// small requests.
const INLINE: u32 = 128;

/// Numbers and lengths of an interface's queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sizes {
    /// Number of transmit queues.
    pub(super) transmit_queues: u32,
    /// Number of receive queues.
    pub(super) receive_queues: u32,
    /// Packets in each send ring, a power of two.
    pub(super) send_ring: u32,
    /// Packets in each receive ring, a power of two.
    pub(super) receive_ring: u32,
}

/// The current sizes, for readers without the RTNL.
pub(super) struct SizesNow {
    transmit_queues: AtomicU32,
    receive_queues: AtomicU32,
    send_ring: AtomicU32,
    receive_ring: AtomicU32,
}

impl SizesNow {
    /// Creates the atomic copy of `sizes`.
    pub(super) fn new(sizes: Sizes) -> Self {
        Self {
            transmit_queues: AtomicU32::new(sizes.transmit_queues),
            receive_queues: AtomicU32::new(sizes.receive_queues),
            send_ring: AtomicU32::new(sizes.send_ring),
            receive_ring: AtomicU32::new(sizes.receive_ring),
        }
    }

    /// Returns whether there is a receive queue `index`. Others may still receive for a while.
    #[inline(always)]
    pub(super) fn has_receive_queue(&self, index: u16) -> bool {
        // Relaxed: before a queue goes, `adopt` stores the count and waits for running polls.
        u32::from(index) < self.receive_queues.load(Ordering::Relaxed)
    }

    /// Notes that there are `count` receive queues.
    pub(super) fn set_receive_queues(&self, count: u32) {
        self.receive_queues.store(count, Ordering::Relaxed);
    }

    fn set(&self, sizes: Sizes) {
        self.transmit_queues
            .store(sizes.transmit_queues, Ordering::Relaxed);
        self.set_receive_queues(sizes.receive_queues);
        self.send_ring.store(sizes.send_ring, Ordering::Relaxed);
        self.receive_ring
            .store(sizes.receive_ring, Ordering::Relaxed);
    }

    /// The sizes. They change with the RTNL held, between down and up.
    pub(super) fn get(&self) -> Sizes {
        Sizes {
            transmit_queues: self.transmit_queues.load(Ordering::Relaxed),
            receive_queues: self.receive_queues.load(Ordering::Relaxed),
            send_ring: self.send_ring.load(Ordering::Relaxed),
            receive_ring: self.receive_ring.load(Ordering::Relaxed),
        }
    }
}

/// Queue pairs and completion queues.
pub(super) struct Queues {
    /// The first receives and sends, the others only send. Those that only receive are apart.
    pub(super) pairs: KVec<Arc<QueuePair>>,
    /// The completion queue of receives by the first queue pair.
    pub(super) receive: Arc<super::receive::Queue>,
    /// The completion queues of sends, one for each queue pair.
    pub(super) send: KVec<Arc<super::transmit::Completions>>,
}

impl Queues {
    /// The queue pair that the interface's address carries the number of.
    ///
    /// # Errors
    ///
    /// None: every interface has one.
    pub(super) fn main(&self) -> Result<&Arc<QueuePair>> {
        self.pairs.first().ok_or(ENODEV)
    }

    /// Throws away the completions that nobody waits for any more.
    pub(super) fn discard(&self) {
        self.receive.discard();
        self.send.iter().for_each(|queue| queue.discard());
    }

    /// Returns the same queues without the queue pairs behind the first `count`.
    fn first(&self, count: usize) -> Result<Self> {
        let mut first = Self {
            pairs: KVec::new(),
            receive: self.receive.clone(),
            send: KVec::new(),
        };
        for (pair, send) in self.pairs.iter().zip(&self.send).take(count) {
            first.pairs.push(pair.clone(), GFP_KERNEL)?;
            first.send.push(send.clone(), GFP_KERNEL)?;
        }
        Ok(first)
    }
}

/// The polls of what was sent, one for each transmit queue.
type Reapers = KVec<Napi<Reaper, Interface>>;

/// The polls of the completion queues.
pub(super) struct Polls {
    pub(super) receive: Napi<Receiver, Interface>,
    pub(super) reapers: Reapers,
}

/// Makes the queues of `device` on `port`.
///
/// # Errors
///
/// `ENOMEM` and what the RDMA device says.
pub(super) fn new(
    device: &Device<Interface>,
    pd: &Arc<ProtectionDomain>,
    port: PortNumber,
    sizes: Sizes,
) -> Result<(Arc<Queues>, Polls)> {
    let receive = Napi::new(device, Polled::Receive(0))?;
    // Flushed requests complete too, so a queue has room for the whole ring.
    let waker = receive.instance().clone();
    let queues = Queues {
        pairs: KVec::new(),
        receive: CompletionQueue::new(
            pd.device(),
            sizes.receive_ring,
            next_vector(pd.device()),
            waker,
        )?,
        send: KVec::new(),
    };
    let (queues, reapers) = complete(device, pd, port, sizes, queues)?;
    Ok((queues, Polls { receive, reapers }))
}

/// The completion vector of the next queue of received packets on a device: in turn, over all
/// interfaces, so that no CPU gets all that comes in.
pub(super) fn next_vector(device: &RdmaDevice) -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed) % device.completion_vectors()
}

/// Adds to `queues` what they lack to be of `sizes`. Returns the polls of those that were added.
///
/// # Errors
///
/// `ENOMEM` and what the RDMA device says.
fn complete(
    device: &Device<Interface>,
    pd: &Arc<ProtectionDomain>,
    port: PortNumber,
    sizes: Sizes,
    queues: Queues,
) -> Result<(Arc<Queues>, Reapers)> {
    let rdma = pd.device();
    let vectors = rdma.completion_vectors();
    let Queues {
        mut pairs,
        receive: received,
        mut send,
    } = queues;
    let mut reapers = KVec::new();
    for index in pairs.len() as u32..sizes.transmit_queues {
        let reaper: Napi<Reaper, Interface> = Napi::new(device, Polled::Transmit)?;
        let waker: Arc<Instance<Reaper>> = reaper.instance().clone();
        // One half is for connections.
        let entries = 2 * sizes.send_ring;
        let sent = CompletionQueue::new(rdma, entries, index % vectors, waker)?;
        let capacity = Capacity {
            send: sizes.send_ring,
            receive: if index == 0 { sizes.receive_ring } else { 0 },
            inline: INLINE,
            // Only what a device cuts is long enough to be worth so many.
            pieces: if rdma.cuts_segments(port) { MANY } else { FEW } as u32,
        };
        let pair = qp::QueuePair::new(pd, port, &sent, &received, capacity)?;
        pairs.push(pair, GFP_KERNEL)?;
        send.push(sent, GFP_KERNEL)?;
        reapers.push(reaper, GFP_KERNEL)?;
    }
    let queues = Queues {
        pairs,
        receive: received,
        send,
    };
    Ok((Arc::new(queues, GFP_KERNEL)?, reapers))
}

impl Options {
    /// The sizes to begin with, of an interface with at most `most` transmit queues on a device
    /// with `vectors` completion vectors.
    pub(super) fn sizes(&self, vectors: u32, most: u32) -> Sizes {
        let cpus = kernel::cpu::nr_cpu_ids();
        Sizes {
            transmit_queues: self.tx_queues(vectors, cpus).min(most),
            receive_queues: 1,
            send_ring: self.send_ring,
            receive_ring: self.receive_ring,
        }
    }

    /// Returns the sizes to begin with of a child, which has one transmit queue unless the
    /// parameter gives a number. There may be many children, and each queue takes memory and a
    /// completion queue.
    pub(super) fn sizes_of_child(&self, vectors: u32, most: u32) -> Sizes {
        match self.has_tx_queues() {
            true => self.sizes(vectors, most),
            false => self.sizes(vectors, most.min(1)),
        }
    }
}

impl Interface {
    /// The queues of the interface, which change with the RTNL held.
    pub(super) fn queues(&self, rtnl: &mut Rtnl) -> Arc<Queues> {
        self.queues.get(rtnl).clone()
    }

    /// Longest ring that the device can have.
    fn longest_ring(&self) -> u32 {
        let most = self.link().rdma().max_work_requests();
        let largest = most.checked_ilog2().map_or(1, |log| 1 << log);
        largest.min(*RING.end())
    }

    /// Most transmit queues that make sense: each has a completion vector and a CPU of its own.
    fn most_queues(&self) -> u32 {
        let vectors = self.link().rdma().completion_vectors();
        let cpus = kernel::cpu::nr_cpu_ids();
        let most = vectors.min(cpus).clamp(1, MAX_TX_QUEUES);
        most.min(self.device().queues())
    }

    /// Most receive queues that make sense, by the same rule. `ip link add … numrxqueues` may ask
    /// for fewer.
    fn most_receive_queues(&self) -> u32 {
        self.most_queues().min(self.device().receive_queues())
    }

    /// Returns the ring lengths that `ethtool -g` shows.
    pub(super) fn rings(&self) -> Rings {
        let sizes = self.sizes.get();
        Rings {
            send: sizes.send_ring,
            receive: sizes.receive_ring,
            max: self.longest_ring(),
        }
    }

    /// Returns the queue counts that `ethtool -l` shows.
    pub(super) fn channels(&self) -> Channels {
        Channels {
            transmit: self.sizes.get().transmit_queues,
            max_transmit: self.most_queues(),
            receive: self.sizes.get().receive_queues,
            max_receive: self.most_receive_queues(),
        }
    }
}
