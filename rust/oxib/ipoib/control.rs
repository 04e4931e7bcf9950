// SPDX-License-Identifier: GPL-2.0-only

//! The control path: an interface comes up, goes down, and follows its port. All of it with the
//! RTNL held.

use kernel::{
    prelude::*,
    sync::Arc,
    time::Delta, //
};

use super::{
    connected::{
        Mode,
        Senders, //
    },
    inbound::Start,
    interface::{
        Interface,
        Phase, //
    },
    link::{
        Offer,
        QueuePair, //
    },
    receive::{
        Identity,
        Receiver, //
    },
    together,
    transmit::{
        Reaper,
        TransmitQueue, //
    }, //
};
use crate::{
    acm::Host,
    net::rtnl::Rtnl,
    rdma::port::LinkLayer,
    wire::{
        connected::MAX_PACKET,
        encap,
        gid::Gid,
        qpn::Qpn, //
    }, //
};

mod follow;
mod membership;
mod mtu;
mod restart;
mod trouble;

pub(super) use follow::Unanswered;
pub(super) use restart::{
    Backoff,
    LastAlarm, //
};
pub(super) use trouble::{
    News,
    Trouble, //
};

/// Bits to flip in the link's Q_Key for one that nobody uses.
const UNUSED_QKEY: u32 = 0x7fff_0000;

/// Time for packets that passed the check of the Q_Key to be handled.
const SETTLE: Delta = Delta::from_millis(20);

/// Packets of MTU size that may be on their way at least. A device that completes packets one by
/// one teaches the byte queue limit that two are enough; then there is never anything to chain.
const BULK: u32 = 16;

/// Bytes that the stack may hand over at once at least in connected mode: four of the largest
/// packets. Those that go by connections do not count.
const BULK_CONNECTED: u32 = 4 * MAX_PACKET;

/// The memberships in groups of an interface that goes down.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Memberships {
    /// The interface leaves its groups.
    End,
    /// The interface stays a member, and its queue pair stays attached.
    Stay,
    /// The interface stays a member, and its queue pair is detached. The one with which the
    /// interface is brought up, the same or another, is attached.
    Move,
}

impl Interface {
    /// Brings the interface up: queue pairs, rings, polls, groups.
    pub(super) fn bring_up(self: &Arc<Self>, rtnl: &mut Rtnl) -> Result {
        let mut result = self.try_to_bring_up(rtnl);
        if result == Err(EINVAL) && self.may_be_used_up(rtnl) {
            let remade = self.remake_queues(rtnl);
            result = remade.and_then(|()| self.try_to_bring_up(rtnl));
        }
        let name = self.device().name();
        match self.control.get(rtnl).start.note(&result) {
            Some(News::Fails(error)) => {
                dev_err!(self.rdma(), "{name}: cannot be brought up: {error:?}\n");
            }
            Some(News::Over) => dev_info!(self.rdma(), "{name}: can be brought up again\n"),
            None => {}
        }
        result
    }

    fn try_to_bring_up(self: &Arc<Self>, rtnl: &mut Rtnl) -> Result {
        let offer = self.link().refresh()?;
        self.tell_of_partition(rtnl, &offer);
        let Some(pkey_index) = offer.pkey_index else {
            // The P_Key went while the interface was taken down briefly.
            self.leave_groups(rtnl);
            self.control.get(rtnl).phase = Phase::NoPkey;
            return Ok(());
        };
        // What arrives from now on is answered, carrier or not.
        self.follow_address(rtnl, &offer);
        let mtu = offer.largest;
        self.control.get(rtnl).phase = Phase::Up { mtu, pkey_index };
        // Before the queues send: a search that begins while the link is stopped ends at once.
        self.link().start();
        let started = self
            // Reception before transmission: the answer to the first packet needs a buffer.
            .start_queue_pairs(rtnl, pkey_index)
            .and_then(|()| self.start_receive(rtnl, &offer))
            .and_then(|()| self.open_session(rtnl, offer.lid))
            .and_then(|()| self.start_transmit(rtnl, offer.mtu));
        if started.is_err() {
            self.take_down(rtnl);
            return started;
        }
        self.device().start_queues(rtnl);
        if self.link().is_routed() {
            let host: Arc<dyn Host> = self.clone();
            self.exchange.open(&host);
        }
        self.refresh(rtnl);
        Ok(())
    }

    /// Does something with each queue pair.
    fn for_each_pair(&self, rtnl: &mut Rtnl, mut act: impl FnMut(&QueuePair)) {
        let queues = self.queues(rtnl);
        queues.pairs.iter().for_each(|pair| act(pair));
        let inbound = self.control.get(rtnl).inbound.iter();
        inbound.for_each(|queue| act(&queue.pair));
    }

    /// Returns whether the device may refuse to start the queue pairs because they were started
    /// before. Drivers of InfiniBand start them as often as that is asked for.
    fn may_be_used_up(&self, rtnl: &mut Rtnl) -> bool {
        let mut were_started = false;
        self.for_each_pair(rtnl, |qp| were_started |= qp.was_started());
        were_started && !self.link().is_routed()
    }

    fn start_queue_pairs(&self, rtnl: &mut Rtnl, pkey_index: u16) -> Result {
        let qkey = self.link().qkey();
        // Noted before the first pair starts: if a later one fails, `silence` has to change the
        // key.
        let control = self.control.get(rtnl);
        control.qkey = Some(qkey);
        // A key that was refused before is given to each of them now.
        control.keying = Trouble::default();
        let queues = self.queues(rtnl);
        let mut was_lost = false;
        for qp in &queues.pairs {
            was_lost |= qp.recover()?;
        }
        // Their old requests may have completed: a new ring must not take those for its own.
        if was_lost {
            queues.discard();
        }
        together::for_each(&self.works, &queues.pairs, move |qp| {
            qp.start(qkey, pkey_index)
        })
    }

    fn start_receive(self: &Arc<Self>, rtnl: &mut Rtnl, offer: &Offer) -> Result {
        let mtu = offer.largest;
        let identity = self.identity(rtnl, offer.gid)?;
        let start = Start {
            qkey: self.link().qkey(),
            pkey_index: offer.pkey_index.ok_or(ENODEV)?,
            mtu,
        };
        self.start_inbound(rtnl, &start, &identity)?;
        let queues = self.queues(rtnl);
        let (control, held) = self.control.open(rtnl);
        let poll = &mut control.polls.receive;
        let (qp, queue) = (queues.main()?, &queues.receive);
        let mut receiver = Receiver::new(self, 0, poll.instance(), qp, queue, mtu, identity)?;
        receiver.start()?;
        poll.enable(held, receiver);
        Ok(())
    }

    /// Starts to send, in datagrams of up to `datagram` bytes at first.
    fn start_transmit(self: &Arc<Self>, rtnl: &mut Rtnl, datagram: u32) -> Result {
        let qkey = self.link().qkey();
        let session = self.session(rtnl);
        let bulk = match self.mode() {
            Mode::Connected => BULK_CONNECTED,
            Mode::Datagram => BULK * (self.device().mtu() + encap::LEN as u32),
        };
        let queues = self.queues(rtnl);
        for (index, qp) in queues.pairs.iter().enumerate() {
            let senders = match &session {
                Some(session) => Some(Senders::new(session, index, datagram)?),
                None => None,
            };
            let queue = TransmitQueue::new(self, index, qp, qkey, senders)?;
            let minimum = self.control.get(rtnl).minimums.get_mut(index);
            let minimum = minimum.ok_or(EINVAL)?;
            if let Some((_, alarm)) = self.transmit_alarm(index) {
                alarm.forget();
            }
            // The data of a queue belongs to its lock, also while the stack sends nothing.
            let mut guard = self.device().lock_queue(index as u32)?;
            *guard = Some(queue);
            if guard.with_queue(|_, queue| queue.replace_minimum(*minimum, bulk)) {
                *minimum = bulk;
            }
        }
        let (control, held) = self.control.open(rtnl);
        let pairs = control.polls.reapers.iter_mut().zip(&queues.send);
        for (index, (reaper, completions)) in pairs.enumerate() {
            reaper.enable(held, Reaper::new(self, index, completions)?);
            completions.arm();
        }
        Ok(())
    }

    /// Returns the identity by which the interface recognizes its own packets, which come from
    /// `gid`.
    pub(super) fn identity(&self, rtnl: &mut Rtnl, gid: Option<Gid>) -> Result<Identity> {
        let mut numbers: KVec<Qpn> = KVec::new();
        for qp in &self.queues(rtnl).pairs {
            numbers.push(qp.number(), GFP_KERNEL)?;
        }
        Ok(Identity {
            gid: gid.unwrap_or(Gid::ZERO),
            queue_pairs: Arc::new(numbers, GFP_KERNEL)?,
            broadcast: self.link().carrier_group(self.broadcast().gid()),
        })
    }

    /// Takes the interface down, also when it is up in part.
    pub(super) fn take_down(self: &Arc<Self>, rtnl: &mut Rtnl) {
        self.stop(rtnl, Memberships::End);
    }

    /// Takes the interface down for a change after which it is brought up at once with the same
    /// queue pairs. It stays a member of its groups, so that the SA is asked for nothing, as with
    /// the kernel's `ib_ipoib`; a membership to send ends with its path all the same.
    pub(super) fn take_down_briefly(self: &Arc<Self>, rtnl: &mut Rtnl) {
        self.take_down_keeping(rtnl, Memberships::Stay);
    }

    /// Takes the interface down as [`Self::take_down_briefly`], with `memberships` for the queue
    /// pairs with which it is brought up.
    pub(super) fn take_down_keeping(self: &Arc<Self>, rtnl: &mut Rtnl, memberships: Memberships) {
        // On a RoCE port nothing may arrive at a queue pair that is reset: see `silence`.
        let memberships = match self.link().is_routed() {
            true => memberships,
            false => Memberships::End,
        };
        self.stop(rtnl, memberships);
    }

    fn stop(self: &Arc<Self>, rtnl: &mut Rtnl, memberships: Memberships) {
        self.device().set_carrier(rtnl, false);
        // First what could wake the stack's queues again.
        let (control, held) = self.control.open(rtnl);
        control.phase = Phase::Down;
        control
            .polls
            .reapers
            .iter_mut()
            .for_each(|reaper| drop(reaper.disable(held)));
        self.device().stop_queues(rtnl);
        self.close_session(rtnl);
        self.link().stop();
        let host: Arc<dyn Host> = self.clone();
        self.exchange.close(&host);
        match memberships {
            Memberships::End => self.leave_groups(rtnl),
            Memberships::Stay => {}
            Memberships::Move => self.detach_groups(rtnl),
        }
        self.silence(rtnl);
        let queues = self.queues(rtnl);
        let (control, held) = self.control.open(rtnl);
        // The poll ends before the reset: it takes a flushed request for a failure to be repaired.
        let receiver = control.polls.receive.disable(held);
        // All of them, whatever becomes of one.
        for queue in &mut control.inbound {
            if let Err(error) = queue.stop(held) {
                self.cannot_reset(error);
            }
        }
        if let Err(error) = together::for_each(&self.works, &queues.pairs, |qp| qp.reset()) {
            self.cannot_reset(error);
        }
        // Only now: the memory of a queue pair that is not in Reset stays with the device.
        drop(receiver);
        self.remove_transmit_queues();
        // What is left names slots of rings that are gone: the next rings must not see it.
        queues.discard();
        let forgotten = self.destinations.lock().take_all();
        self.count_dropped(forgotten.waiting());
        drop(forgotten);
    }

    /// Tells the administrator that a queue pair may go on to use memory.
    pub(super) fn cannot_reset(&self, error: Error) {
        dev_err!(
            self.rdma(),
            "{}: a queue pair cannot be reset: {error:?}; the device may go on using its buffers\n",
            self.device().name()
        );
    }

    /// Makes the port drop what arrives, before the queue pairs go.
    ///
    /// A packet that comes to a queue pair on its way to Reset is a danger on rxe (Linux 7.2,
    /// 7.3): it is freed with the queue pair's lock held, which may run a softirq that receives
    /// the next one for the same queue pair and waits for that lock for ever. With a key that
    /// nobody uses, packets are dropped before they come so far.
    fn silence(&self, rtnl: &mut Rtnl) {
        let Some(qkey) = self.control.get(rtnl).qkey.take() else {
            return;
        };
        let queues = self.queues(rtnl);
        let inbound = self.control.get(rtnl).inbound.iter();
        let beside = inbound.map(|queue| &*queue.pair);
        let pairs = queues.pairs.iter().map(|pair| &**pair);
        self.silence_pairs(Iterator::chain(pairs, beside), qkey);
    }

    /// Makes the port drop what arrives for `pairs`, which have `qkey`.
    pub(super) fn silence_pairs<'a>(&self, pairs: impl Iterator<Item = &'a QueuePair>, qkey: u32) {
        if self.link().rdma().link_layer(self.port()) != LinkLayer::Ethernet {
            // Not rxe.
            return;
        }
        let mut changed = false;
        for qp in pairs {
            // Of a queue pair that never started, or failed, the state says no: nothing arrives.
            changed |= qp.set_qkey(qkey ^ UNUSED_QKEY).is_ok();
        }
        if changed {
            kernel::time::delay::fsleep(SETTLE);
        }
    }

    fn remove_transmit_queues(&self) {
        for index in 0..self.device().queues() {
            let Ok(mut guard) = self.device().lock_queue(index) else {
                continue;
            };
            let ended = guard.with_queue(|data, queue| {
                // No completion comes for what `clear` ends: the byte queue limit would wait for
                // it.
                queue.reset();
                data.map_or(0, |data| data.clear())
            });
            let data = guard.take();
            drop(guard);
            // Dropped without the queue's lock: rings and connections go here, which may sleep.
            drop(data);
            self.count_dropped(ended);
        }
    }

    /// Counts packets that were not sent because the interface went down.
    fn count_dropped(&self, packets: usize) {
        self.statistics().tx_drop_down.add(packets as u64);
        for _ in 0..packets {
            self.device().count_send_dropped();
        }
    }
}
