// SPDX-License-Identifier: GPL-2.0-only

//! Receive queues beside the main one (`ethtool -L ib0 rx N`).
//!
//! An adapter without receive side scaling for datagrams puts all that comes to a queue pair into
//! one completion queue. So there are several queue pairs that receive, each with its own
//! completion queue, poll and pool of pages, and each peer is told the number of one of them, by
//! a hash of its GID: what ARP and neighbour discovery say of us is rewritten on its way out
//! ([`Numbers::prepare`], [`crate::wire::inbound`]). A peer is told the same one each time.
//!
//! The interface's own address, which nothing here changes, has the main queue pair's number. That
//! receives whatever comes to it, groups included, so peers that know no other lose nothing.
//!
//! When there are to be fewer, peers are told another one, and the queue pairs that go receive
//! for a while longer.

use core::sync::atomic::{
    AtomicUsize,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc,
    task::Task, //
};

use super::{
    connected::Mode,
    interface::{
        Interface,
        Phase, //
    },
    link::QueuePair,
    neighbour,
    queues::{
        next_vector,
        Queues,
        Sizes, //
    },
    receive::{
        self,
        Identity,
        Receiver, //
    }, //
};
use crate::{
    net::{
        ethtool::Moderation,
        napi::{
            Napi,
            Polled, //
        },
        rtnl::{
            Held,
            Rtnl, //
        },
        skb::Skb, //
    },
    rdma::{
        cq::CompletionQueue,
        qp::{
            self,
            Capacity, //
        }, //
    },
    wire::{
        encap,
        gid::Gid,
        hwaddr::HwAddr,
        inbound::{
            ask,
            choose,
            direct,
            tell,
            Asked, //
        },
        qpn::Qpn, //
    }, //
};

/// A receive queue beside the main one.
pub(super) struct Inbound {
    pub(super) pair: Arc<QueuePair>,
    pub(super) completions: Arc<receive::Queue>,
    pub(super) poll: Napi<Receiver, Interface>,
}

/// Parameters to start a receive queue with.
pub(super) struct Start {
    /// The Q_Key of the link.
    pub(super) qkey: u32,
    /// Index of the P_Key in the port's table.
    pub(super) pkey_index: u16,
    /// Buffers are for packets of so many bytes.
    pub(super) mtu: u32,
}

impl Inbound {
    /// Makes receive queue `index` of `interface`, with the lengths of `sizes`.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the device says.
    fn new(interface: &Interface, queues: &Queues, sizes: Sizes, index: u32) -> Result<Self> {
        let rdma = interface.pd.device();
        let poll = Napi::new(interface.device(), Polled::Receive(index))?;
        let waker = poll.instance().clone();
        let completions = CompletionQueue::new(rdma, sizes.receive_ring, next_vector(rdma), waker)?;
        let capacity = Capacity {
            // It never sends; some devices want to be asked for something.
            send: 1,
            receive: sizes.receive_ring,
            inline: 0,
            pieces: 1,
        };
        let send = queues.send.first().ok_or(ENODEV)?;
        let (pd, port) = (&interface.pd, interface.port());
        Ok(Self {
            pair: qp::QueuePair::new(pd, port, send, &completions, capacity)?,
            completions,
            poll,
        })
    }

    /// Begins to receive, as queue `index` of `interface`.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the device says.
    pub(super) fn start(
        &mut self,
        held: Held<'_>,
        interface: &Arc<Interface>,
        index: usize,
        start: &Start,
        identity: Identity,
    ) -> Result {
        if self.pair.recover()? {
            self.completions.discard();
        }
        self.pair.start(start.qkey, start.pkey_index)?;
        let (instance, mtu) = (self.poll.instance(), start.mtu);
        let (pair, completions) = (&self.pair, &self.completions);
        let mut receiver =
            Receiver::new(interface, index, instance, pair, completions, mtu, identity)?;
        receiver.start()?;
        self.poll.enable(held, receiver);
        Ok(())
    }

    /// Ends reception: stops the poll, and resets the queue pair.
    ///
    /// # Errors
    ///
    /// The device's error: the buffers' memory stays with it then.
    pub(super) fn stop(&mut self, held: Held<'_>) -> Result {
        let receiver = self.poll.disable(held);
        let stopped = self.pair.reset();
        // Only now: see `ReceiveRing`.
        drop(receiver);
        self.completions.discard();
        stopped
    }
}

/// The task that announces what peers know already. Programs are no such tasks: they may
/// announce at the same time that an IP address has come from another node.
#[derive(Default)]
pub(super) struct Repeating(AtomicUsize);

impl Repeating {
    /// Notes that the calling task repeats announcements from now on.
    fn begin(&self) {
        // Relaxed: only the task that stored its own address looks for it.
        self.0.store(Self::task(), Ordering::Relaxed);
    }

    /// Notes that no task repeats announcements any more.
    fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns whether the calling task repeats announcements. Packets that another task sends
    /// for it, from the stack's queue, count as that one's: then all are told more than they
    /// need, and their own again after.
    fn is_ours(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::task()
    }

    fn task() -> usize {
        Task::current_raw() as usize
    }
}

/// Numbers of several queue pairs that receive, the main one's first.
pub(super) struct Numbers(KVec<Qpn>);

impl Numbers {
    /// Returns the number that a peer at `gid` is told.
    pub(super) fn of(&self, gid: &Gid) -> Qpn {
        let index = choose(gid, self.0.len() as u32);
        self.0
            .get(index as usize)
            .copied()
            .unwrap_or(Qpn::MULTICAST)
    }

    /// Has a packet, which begins with its pseudo header, tell its receivers what they are to
    /// know of our address. Returns what is to be sent beside it.
    ///
    /// # Errors
    ///
    /// `ENOMEM`: it would tell something else.
    pub(super) fn prepare(
        &self,
        interface: &Arc<Interface>,
        packet: &mut Skb,
    ) -> Result<Option<Skb>> {
        let Some((address, datagram)) = packet.data().split_first_chunk::<{ HwAddr::LEN }>() else {
            return Ok(None);
        };
        let to = *HwAddr::from_ref(address);
        let Ok((ethertype, rest)) = encap::Header::parse(datagram) else {
            return Ok(None);
        };
        if !neighbour::may_tell(ethertype, rest) {
            return Ok(None);
        }
        if rest.len() < neighbour::SEEN && ethertype == encap::EtherType::Ipv6 {
            // What it is may be behind the linear part.
            let seen = packet.writable(encap::HARD_LEN + neighbour::SEEN)?;
            let rest = seen.get(encap::HARD_LEN..).unwrap_or_default();
            if !neighbour::may_tell(ethertype, rest) {
                return Ok(None);
            }
        }
        let own = interface.device().address();
        // These are no longer than a datagram: they do not come in fragments (RFC 6980).
        let bytes = packet.writable(usize::MAX)?;
        let datagram = bytes.get_mut(encap::HARD_LEN..).unwrap_or_default();
        if !to.is_multicast() {
            tell(ethertype, datagram, own, self.of(&to.gid()));
            return Ok(None);
        }
        match ask(ethertype, datagram, own, interface.repeating.is_ours()) {
            Asked::Nothing | Asked::Silent => Ok(None),
            Asked::Announced => {
                interface.notify_neighbours_soon();
                Ok(None)
            }
            Asked::Twice => {
                let mut copy = packet.duplicate()?;
                let bytes = copy.writable(usize::MAX)?;
                direct(bytes.get_mut(encap::HARD_LEN..).unwrap_or_default());
                Ok(Some(copy))
            }
        }
    }
}

impl Interface {
    /// Returns the number of the queue pair that a peer at `gid` is told, of an interface with
    /// the main queue pair `main`.
    pub(super) fn number_for(&self, gid: &Gid, main: Qpn) -> Qpn {
        let numbers = self.numbers.lock().clone();
        numbers.map_or(main, |numbers| numbers.of(gid))
    }

    /// Makes the receive queues of `queues` from number `first` on.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the device says.
    pub(super) fn new_inbound(
        &self,
        queues: &Queues,
        sizes: Sizes,
        first: u32,
        moderation: Moderation,
    ) -> Result<KVec<Inbound>> {
        let mut made = KVec::new();
        for index in first..sizes.receive_queues {
            let inbound = Inbound::new(self, queues, sizes, index)?;
            if moderation != Moderation::default() {
                inbound.completions.moderate(moderation)?;
            }
            made.push(inbound, GFP_KERNEL)?;
        }
        Ok(made)
    }

    /// Returns the numbers of the first `count` receive queues, if they are several.
    pub(super) fn numbers_of(
        queues: &Queues,
        inbound: &[Inbound],
        count: u32,
    ) -> Result<Option<Arc<Numbers>>> {
        if count < 2 {
            return Ok(None);
        }
        let mut numbers = KVec::new();
        numbers.push(queues.main()?.number(), GFP_KERNEL)?;
        for other in inbound.iter().take(count as usize - 1) {
            numbers.push(other.pair.number(), GFP_KERNEL)?;
        }
        Ok(Some(Arc::new(Numbers(numbers), GFP_KERNEL)?))
    }

    /// Tells peers of these from now on.
    pub(super) fn set_numbers(&self, numbers: Option<Arc<Numbers>>) {
        // Queues that are made later copy it from here; those that are there are told below.
        let before = core::mem::replace(&mut *self.numbers.lock(), numbers.clone());
        self.for_each_queue(|queue| queue.set_numbers(numbers.clone()));
        drop(before);
    }

    /// Starts all receive queues beside the main one.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the device says.
    pub(super) fn start_inbound(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        start: &Start,
        identity: &Identity,
    ) -> Result {
        let (control, held) = self.control.open(rtnl);
        for (queue, index) in control.inbound.iter_mut().zip(1..) {
            queue.start(held, self, index, start, identity.clone())?;
        }
        Ok(())
    }

    /// Changes how many receive queues there are. The interface stays up and its address as it is;
    /// with connections it goes down for a moment, as peers ask for them at each number.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and what the RDMA device and the stack say: all stays as it is.
    pub(super) fn set_receive_queues(self: &Arc<Self>, rtnl: &mut Rtnl, count: u32) -> Result {
        let before = self.sizes.get().receive_queues;
        let sizes = Sizes {
            receive_queues: count,
            ..self.sizes.get()
        };
        let queues = self.queues(rtnl);
        let phase = self.control.get(rtnl).phase;
        let restart = self.mode() == Mode::Connected && phase != Phase::Down;
        let moderation = self.coalesce(rtnl);
        // Some may be there still, from before there were fewer.
        let there = self.control.get(rtnl).inbound.len();
        let first = there as u32 + 1;
        let mut fresh = self.new_inbound(&queues, sizes, first, moderation)?;
        self.control
            .get(rtnl)
            .inbound
            .reserve(fresh.len(), GFP_KERNEL)?;
        // With a restart, or while down, they start when the interface comes up.
        if let (Phase::Up { mtu, pkey_index }, false) = (phase, restart) {
            let gid = self.control.get(rtnl).offer.and_then(|offer| offer.gid);
            let identity = self.identity(rtnl, gid)?;
            let qkey = self.control.get(rtnl).qkey.ok_or(ENODEV)?;
            let start = Start {
                qkey,
                pkey_index,
                mtu,
            };
            let (_, held) = self.control.open(rtnl);
            let begun = fresh.iter_mut().zip(there + 1..);
            let mut begun = begun
                .map(|(queue, index)| queue.start(held, self, index, &start, identity.clone()));
            if let Some(Err(error)) = begun.find(Result::is_err) {
                drop(begun);
                self.stop_inbound(rtnl, &mut fresh);
                return Err(error);
            }
        }
        if restart {
            self.take_down_briefly(rtnl);
        }
        let done = self.adopt(rtnl, &queues, fresh, count);
        if restart {
            self.bring_up_again(rtnl);
        }
        // Of new ones none goes, unless they did not come into use.
        if count < before || done.is_err() {
            self.retire_later(rtnl);
        }
        done?;
        self.notify_neighbours_soon();
        Ok(())
    }

    /// Takes `fresh` queues into use, so that there are `count`.
    fn adopt(
        &self,
        rtnl: &mut Rtnl,
        queues: &Queues,
        mut fresh: KVec<Inbound>,
        count: u32,
    ) -> Result {
        let before = self.sizes.get().receive_queues;
        if count < before {
            // Packets that name a queue the stack does not know make it warn.
            self.sizes.set_receive_queues(count);
            // A poll that read the old count has handed its packets up when this returns.
            self.device().wait_for_receivers(rtnl);
        }
        if let Err(error) = self.device().use_receive_queues(rtnl, count) {
            self.sizes.set_receive_queues(before);
            self.stop_inbound(rtnl, &mut fresh);
            return Err(error);
        }
        let inbound = &mut self.control.get(rtnl).inbound;
        for queue in fresh.drain_all() {
            // There is room: it was made before.
            let _ = inbound.push_within_capacity(queue);
        }
        match Self::numbers_of(queues, inbound, count) {
            Ok(numbers) => {
                self.sizes.set_receive_queues(count);
                self.set_numbers(numbers);
                Ok(())
            }
            Err(error) => {
                // The new queues are not in use, and go with the others that are not.
                self.sizes.set_receive_queues(before);
                let _ = self.device().use_receive_queues(rtnl, before);
                Err(error)
            }
        }
    }

    /// Stops receive queues of an interface that stays up.
    fn stop_inbound(&self, rtnl: &mut Rtnl, queues: &mut [Inbound]) {
        if let Some(qkey) = self.control.get(rtnl).qkey {
            self.silence_pairs(queues.iter().map(|queue| &*queue.pair), qkey);
        }
        let (_, held) = self.control.open(rtnl);
        for queue in queues {
            if let Err(error) = queue.stop(held) {
                self.cannot_reset(error);
            }
        }
    }

    /// Takes the receive queues away that nobody is told of any more, and the listeners for
    /// connections at their numbers.
    pub(super) fn retire(&self, rtnl: &mut Rtnl) -> KVec<Inbound> {
        let most = self.sizes.get().receive_queues.saturating_sub(1) as usize;
        let inbound = &mut self.control.get(rtnl).inbound;
        let mut retired = KVec::new();
        while inbound.len() > most {
            // Without memory at the moment, they stay.
            if retired.reserve(1, GFP_KERNEL).is_err() {
                break;
            }
            if let Some(queue) = inbound.pop() {
                let _ = retired.push_within_capacity(queue);
            }
        }
        if let Some(session) = self.session(rtnl) {
            for queue in &retired {
                session.retire(queue.pair.number());
            }
        }
        self.stop_inbound(rtnl, &mut retired);
        retired
    }

    /// Announces this node's address to the link. Peers that know another receive queue than the
    /// main one are not told the main one, if nothing else is new.
    pub(super) fn announce(self: &Arc<Self>, rtnl: &mut Rtnl) {
        let address = self.device().address();
        let before = self.control.get(rtnl).announced.replace(address);
        let is_known = before == Some(address) && self.sizes.get().receive_queues > 1;
        if is_known {
            // The stack sends its announcements in this task, before `announce` returns.
            self.repeating.begin();
        }
        self.device().announce(rtnl);
        self.repeating.end();
        if is_known {
            self.notify_neighbours(rtnl);
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_inbound)]
mod tests {
    use super::*;

    #[test]
    fn only_the_repeating_task_is_silent() {
        let repeating = Repeating::default();
        assert!(!repeating.is_ours());
        repeating.begin();
        assert!(repeating.is_ours());
        let other = Repeating(AtomicUsize::new(Repeating::task() ^ 1));
        assert!(!other.is_ours());
        repeating.end();
        assert!(!repeating.is_ours());
    }
}
