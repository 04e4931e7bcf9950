// SPDX-License-Identifier: GPL-2.0-only

//! The queue pairs of an interface, with their completion queues and polls: made with it, and
//! made again when an administrator changes how many there are or how long (`ethtool -G`,
//! `ethtool -L`), or when a device starts none a second time.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use kernel::{
    fmt,
    prelude::*,
    str::BStr,
    sync::Arc, //
};

use super::{
    control::Memberships,
    inbound::{
        Inbound,
        Numbers, //
    },
    interface::{
        Interface,
        Phase, //
    },
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
        errno,
        ethtool::{
            Channels,
            Moderation,
            Rings, //
        },
        extack::ExtendedAck,
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

/// Queues that are to take the place of others.
struct Fresh {
    queues: Arc<Queues>,
    polls: Polls,
    inbound: KVec<Inbound>,
    numbers: Option<Arc<Numbers>>,
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

    /// Takes the next powers of two for the lengths of the rings.
    ///
    /// # Errors
    ///
    /// `EINVAL` for one out of range, said in `reply`; `ENOMEM`, and what the RDMA device says.
    pub(super) fn set_rings(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        send: u32,
        receive: u32,
        reply: &mut ExtendedAck<'_>,
    ) -> Result {
        let range = *RING.start().min(&self.longest_ring())..=self.longest_ring();
        let mut length = |asked: u32| {
            let rounded = asked.checked_next_power_of_two().unwrap_or(u32::MAX);
            if asked < *range.start() || !range.contains(&rounded) {
                return Err(reply.refuse(
                    EINVAL,
                    fmt!("give rings of {} to {} packets", range.start(), range.end()),
                ));
            }
            Ok(rounded)
        };
        let sizes = Sizes {
            send_ring: length(send)?,
            receive_ring: length(receive)?,
            ..self.sizes.get()
        };
        self.resize(rtnl, sizes)
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

    /// Changes how many queues there are.
    ///
    /// # Errors
    ///
    /// `EINVAL` for none or too many, of which the stack has said so by itself; `ENOMEM`, and
    /// what the RDMA device says: all stays as it is.
    pub(super) fn set_channels(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        transmit: u32,
        receive: u32,
    ) -> Result {
        let (transmits, receives) = (1..=self.most_queues(), 1..=self.most_receive_queues());
        if !transmits.contains(&transmit) || !receives.contains(&receive) {
            return Err(EINVAL);
        }
        let before = self.sizes.get();
        if receive != before.receive_queues {
            self.set_receive_queues(rtnl, receive)?;
        }
        if transmit == before.transmit_queues {
            return Ok(());
        }
        let done = self.set_transmit_queues(rtnl, transmit);
        if done.is_err() && receive != before.receive_queues {
            // Half of what was asked for is refused, so nothing is to change. Those that went are
            // there for a while still, so this takes little.
            let _ = self.set_receive_queues(rtnl, before.receive_queues);
        }
        done
    }

    /// Changes how many transmit queues there are. The interface is down for a moment; the first
    /// queue pair stays, and with it the address.
    fn set_transmit_queues(self: &Arc<Self>, rtnl: &mut Rtnl, count: u32) -> Result {
        let sizes = Sizes {
            transmit_queues: count,
            ..self.sizes.get()
        };
        // If these cannot be made, all stays as it is.
        let kept = self.queues(rtnl).first(count as usize)?;
        let reused = kept.pairs.len();
        let pd = &self.pd;
        let (queues, made) = complete(self.device(), pd, self.port(), sizes, kept)?;
        let reapers = &mut self.control.get(rtnl).polls.reapers;
        reapers.reserve(made.len(), GFP_KERNEL)?;
        // The last step that can fail; it undoes itself.
        let is_up = self.pause(rtnl, count, Memberships::Stay)?;
        // The queue pairs first: they complete to the polls.
        drop(core::mem::replace(self.queues.get(rtnl), queues));
        let reapers = &mut self.control.get(rtnl).polls.reapers;
        reapers.truncate(reused);
        for reaper in made {
            // There is room: it was made above.
            let _ = reapers.push_within_capacity(reaper);
        }
        // While down: rings and queues that are made next take their lengths and number from here.
        self.sizes.set(sizes);
        self.resume(rtnl, is_up);
        Ok(())
    }

    /// Takes the interface down, if it is up, and has the stack send on `count` queues when it
    /// comes up again, with `memberships` for the queue pairs then. Returns whether it was up.
    fn pause(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        count: u32,
        memberships: Memberships,
    ) -> Result<bool> {
        let is_up = !matches!(self.control.get(rtnl).phase, Phase::Down);
        if is_up {
            self.take_down_keeping(rtnl, memberships);
        }
        if count == self.sizes.get().transmit_queues {
            // The stack has as many already. To set that anew would spread the processors over the
            // queues again, whatever `xps_cpus` an administrator has chosen.
            return Ok(is_up);
        }
        self.device().use_queues(rtnl, count).inspect_err(|_| {
            if is_up {
                self.bring_up_again(rtnl);
            }
        })?;
        Ok(is_up)
    }

    fn resume(self: &Arc<Self>, rtnl: &mut Rtnl, is_up: bool) {
        if is_up {
            self.bring_up_again(rtnl);
        } else {
            self.refresh(rtnl);
        }
    }

    /// Makes the queues again, with `sizes`. The interface is down for a moment; its address has
    /// another queue pair's number then, which the neighbours are told. It stays a member of its
    /// groups, which the other queue pair hears.
    fn resize(self: &Arc<Self>, rtnl: &mut Rtnl, sizes: Sizes) -> Result {
        let old = self.sizes.get();
        if sizes == old {
            return Ok(());
        }
        // If these cannot be made, all stays as it is.
        let fresh = self.make_queues(rtnl, sizes)?;
        let is_up = self.pause(rtnl, sizes.transmit_queues, Memberships::Move)?;
        self.replace_queues(rtnl, sizes, fresh);
        self.resume(rtnl, is_up);
        Ok(())
    }

    /// Makes the queues of an interface that is down again, as they were. Its address has another
    /// queue pair's number when it comes up.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the RDMA device says: all stays as it is.
    pub(super) fn remake_queues(&self, rtnl: &mut Rtnl) -> Result {
        let sizes = self.sizes.get();
        let fresh = self.make_queues(rtnl, sizes)?;
        self.replace_queues(rtnl, sizes, fresh);
        Ok(())
    }

    /// Makes queues of `sizes`, which nothing uses yet.
    fn make_queues(&self, rtnl: &mut Rtnl, sizes: Sizes) -> Result<Fresh> {
        let pd = &self.pd;
        let (queues, polls) = new(self.device(), pd, self.port(), sizes)?;
        let moderation = self.coalesce(rtnl);
        if moderation != Moderation::default() {
            queues.receive.moderate(moderation)?;
        }
        let inbound = self.new_inbound(&queues, sizes, 1, moderation)?;
        let numbers = Self::numbers_of(&queues, &inbound, sizes.receive_queues)?;
        Ok(Fresh {
            queues,
            polls,
            inbound,
            numbers,
        })
    }

    /// Has the `fresh` queues, of `sizes`, take the place of those of an interface that is down.
    fn replace_queues(&self, rtnl: &mut Rtnl, sizes: Sizes, fresh: Fresh) {
        let Fresh {
            queues,
            polls,
            inbound,
            numbers,
        } = fresh;
        let old_queues = core::mem::replace(self.queues.get(rtnl), queues);
        let old_polls = core::mem::replace(&mut self.control.get(rtnl).polls, polls);
        let old_inbound = core::mem::replace(&mut self.control.get(rtnl).inbound, inbound);
        self.sizes.set(sizes);
        self.set_numbers(numbers);
        // The queue pairs first: they complete to the polls.
        drop(old_inbound);
        drop(old_queues);
        drop(old_polls);
    }

    /// Returns the moderation of receive completions.
    pub(super) fn coalesce(&self, rtnl: &mut Rtnl) -> Moderation {
        self.control.get(rtnl).moderation
    }

    /// Sets the moderation of receive completions.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the device cannot, said in `reply`, and what else it says.
    pub(super) fn set_coalesce(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        moderation: Moderation,
        reply: &mut ExtendedAck<'_>,
    ) -> Result {
        let old = self.coalesce(rtnl);
        if moderation == old {
            return Ok(());
        }
        self.moderate_all(rtnl, moderation).map_err(|error| {
            // All queues or none: what some have taken is taken back. What refuses that, too, is
            // left as it is.
            let _ = self.moderate_all(rtnl, old);
            let name = self.link().rdma().name();
            let refused = Unmoderated {
                device: BStr::from_bytes(name.text().to_bytes()),
                error,
            };
            reply.refuse(error, fmt!("{refused}"))
        })?;
        self.control.get(rtnl).moderation = moderation;
        Ok(())
    }

    /// Has the device gather the completions of each receive queue.
    fn moderate_all(&self, rtnl: &mut Rtnl, moderation: Moderation) -> Result {
        self.queues(rtnl).receive.moderate(moderation)?;
        let mut inbound = self.control.get(rtnl).inbound.iter();
        inbound.try_for_each(|queue| queue.completions.moderate(moderation))?;
        let session = self.session(rtnl);
        session.map_or(Ok(()), |session| session.moderate(moderation))
    }
}

/// Extended acknowledgement when an RDMA device does not moderate completions as it is asked to.
/// Like all such texts it has at most [`LONGEST`](crate::net::extack::LONGEST) bytes, also with the
/// longest name of a device.
struct Unmoderated<'a> {
    /// The device's name.
    device: &'a BStr,
    /// The device's error.
    error: Error,
}

impl fmt::Display for Unmoderated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.device, f)?;
        f.write_str(if self.error == errno::not_supported() {
            // In the word of `ethtool -C`.
            " cannot coalesce"
        } else {
            " refuses that"
        })
    }
}

#[kernel::prelude::kunit_tests(oxib_queues)]
mod tests {
    use kernel::str::CString;

    use super::*;
    use crate::net::extack::LONGEST;

    #[test]
    fn refusals_fit_into_an_extended_acknowledgement() -> Result {
        // `IB_DEVICE_NAME_MAX`, less the NUL.
        let device = BStr::from_bytes(&[b'm'; 63]);
        for error in [errno::not_supported(), EINVAL] {
            let refused = Unmoderated { device, error };
            let text = CString::try_from_fmt(fmt!("{refused}"))?;
            assert!(text.to_bytes().len() <= LONGEST);
        }
        Ok(())
    }
}
