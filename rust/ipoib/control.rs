// SPDX-License-Identifier: GPL-2.0-only

//! How an interface comes up, goes down, and follows its port. All of it with the RTNL held.

use core::sync::atomic::Ordering;

use kernel::{
    prelude::*,
    sync::Arc,
    time::Delta, //
};

use super::{
    interface::{
        Interface,
        Phase, //
    },
    link::{
        Link,
        Offer,
        QueuePair, //
    },
    multicast::Membership,
    receive::{
        Identity,
        Receiver, //
    },
    transmit::{
        Reaper,
        TransmitQueue, //
    }, //
};
use crate::{
    net::rtnl::Rtnl,
    rdma::qp,
    wire::{
        encap,
        gid::Gid,
        hwaddr::HwAddr,
        qpn::Qpn, //
    }, //
};

/// What is changed in the Q_Key of the link to make one that nobody uses.
const UNUSED_QKEY: u32 = 0x7fff_0000;

/// Time for packets that passed the check of the Q_Key to be handled.
const SETTLE: Delta = Delta::from_millis(20);

/// Packets of MTU size that may be on their way at least. A device that completes packets one by one
/// teaches the byte queue limit that two are enough; then there is never anything to chain.
const BULK: u32 = 16;

/// Longest wait between two restarts, in seconds.
const RESTART_MAX: u64 = 16;

/// When something that failed may be tried again: at once, then after 1, 2, 4 … seconds.
#[derive(Clone, Copy, Default)]
pub(super) struct Backoff {
    /// Not before this time, in seconds.
    at: u64,
    /// The wait after the next try.
    wait: u64,
}

impl Backoff {
    /// Begins a try at time `now`, or says how long to wait for it.
    fn begin(&mut self, now: u64) -> core::result::Result<(), u64> {
        if now < self.at {
            return Err(self.at - now);
        }
        // A good while without a try: the trouble is over.
        if now > self.at + 4 * RESTART_MAX {
            self.wait = 0;
        }
        self.wait = (self.wait * 2).clamp(1, RESTART_MAX);
        self.at = now + self.wait;
        Ok(())
    }
}

/// How an interface's groups are joined and left.
struct Member<'a> {
    link: &'a dyn Link,
    qp: &'a QueuePair,
    rtnl: &'a mut Rtnl,
}

impl Membership for Member<'_> {
    fn join(&mut self, group: Gid) -> Result {
        self.link.join(self.rtnl, self.qp, group)
    }

    fn leave(&mut self, group: Gid) {
        self.link.leave(self.rtnl, self.qp, group);
    }
}

impl Interface {
    /// Brings the interface up: queue pairs, rings, polls, groups.
    pub(super) fn bring_up(self: &Arc<Self>, rtnl: &mut Rtnl) -> Result {
        let mtu = self.link().refresh()?.mtu;
        self.control.get(rtnl).phase = Phase::Up(mtu);
        let started = self
            .start_receive(rtnl, mtu)
            .and_then(|()| self.start_transmit(rtnl));
        if let Err(error) = started {
            dev_err!(
                self.rdma(),
                "{}: cannot be brought up: {error:?}\n",
                self.device().name()
            );
            self.take_down(rtnl);
            return Err(error);
        }
        self.device().start_queues(rtnl);
        self.refresh(rtnl);
        Ok(())
    }

    fn start_receive(self: &Arc<Self>, rtnl: &mut Rtnl, mtu: u32) -> Result {
        let qkey = self.link().qkey();
        for qp in &self.queue_pairs {
            qp.start(qkey)?;
        }
        let identity = self.identity()?;
        let control = self.control.get(rtnl);
        let instance = control.receive.instance();
        let queue = &self.queues.receive;
        let mut receiver = Receiver::new(self, instance, self.main_qp()?, queue, mtu, identity)?;
        receiver.start()?;
        control.receive.enable(receiver);
        Ok(())
    }

    fn start_transmit(self: &Arc<Self>, rtnl: &mut Rtnl) -> Result {
        let qkey = self.link().qkey();
        for (index, qp) in self.queue_pairs.iter().enumerate() {
            let queue = TransmitQueue::new(self, index, qp, qkey)?;
            let mut guard = self.device().lock_queue(index as u32)?;
            *guard = Some(queue);
            let bulk = BULK * (self.device().mtu() + encap::LEN as u32);
            guard.with_queue(|_, queue| queue.set_minimum(bulk));
        }
        let control = self.control.get(rtnl);
        let pairs = control.reapers.iter_mut().zip(&self.queues.send);
        for (index, (reaper, completions)) in pairs.enumerate() {
            reaper.enable(Reaper::new(self, index, completions)?);
            completions.arm();
        }
        Ok(())
    }

    /// How the interface knows its own packets.
    fn identity(&self) -> Result<Identity> {
        let mut numbers: KVec<Qpn> = KVec::new();
        for qp in &self.queue_pairs {
            numbers.push(qp.number(), GFP_KERNEL)?;
        }
        Ok(Identity {
            gid: self.device().address().gid(),
            queue_pairs: Arc::new(numbers, GFP_KERNEL)?,
            broadcast: self.link().carrier_group(self.broadcast.gid()),
        })
    }

    /// Takes the interface down, also when it is up in part.
    pub(super) fn take_down(self: &Arc<Self>, rtnl: &mut Rtnl) {
        self.device().set_carrier(rtnl, false);
        // First what could wake the stack's queues again.
        let control = self.control.get(rtnl);
        control.phase = Phase::Down;
        control
            .reapers
            .iter_mut()
            .for_each(|reaper| drop(reaper.disable()));
        self.device().stop_queues(rtnl);
        self.leave_groups(rtnl);
        self.silence();
        let receiver = self.control.get(rtnl).receive.disable();
        let mut quiet = true;
        for qp in &self.queue_pairs {
            if let Err(error) = qp.reset() {
                quiet = false;
                dev_err!(
                    self.rdma(),
                    "{}: queue pair cannot be reset: {error:?}; its buffers stay with the device\n",
                    self.device().name()
                );
            }
        }
        // In Reset no device touches their memory any more; otherwise it may, so it is not freed.
        if let Some(mut receiver) = receiver {
            if !quiet {
                receiver.abandon();
            }
        }
        self.remove_transmit_queues(quiet);
        self.queues.receive.discard();
        self.queues.send.iter().for_each(|queue| queue.discard());
        let forgotten = self.destinations.lock().take_all();
        self.count_dropped(forgotten.waiting());
        drop(forgotten);
    }

    /// Makes the port drop what arrives, before the queue pairs go.
    ///
    /// A packet that comes to a queue pair on its way to Reset is a danger on rxe (Linux 7.2): it is
    /// freed with the queue pair's lock held, which may run a softirq that receives the next one for
    /// the same queue pair and waits for that lock for ever. With a key that nobody uses, packets
    /// are dropped before they come so far.
    fn silence(&self) {
        let mut changed = false;
        for qp in &self.queue_pairs {
            // Of a queue pair that never started, or failed, the state says no: nothing arrives.
            changed |= qp.set_qkey(self.link().qkey() ^ UNUSED_QKEY).is_ok();
        }
        if changed {
            kernel::time::delay::fsleep(SETTLE);
        }
    }

    fn remove_transmit_queues(&self, quiet: bool) {
        for index in 0..self.device().queues() {
            let Ok(mut guard) = self.device().lock_queue(index) else {
                continue;
            };
            let ended = guard.with_queue(|data, queue| {
                queue.reset();
                data.map_or(0, |data| data.clear(quiet))
            });
            let data = guard.take();
            drop(guard);
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

    /// Reads the port anew and makes the interface what the port offers.
    pub(super) fn refresh(self: &Arc<Self>, rtnl: &mut Rtnl) {
        let offer = match self.link().refresh() {
            Ok(offer) => offer,
            Err(error) => {
                let port = self.port().get();
                dev_warn!(self.rdma(), "port {port} cannot be queried: {error:?}\n");
                self.device().set_carrier(rtnl, false);
                return;
            }
        };
        let old = self.control.get(rtnl).offer.replace(offer);
        self.follow_gid(rtnl, &offer);
        self.follow_mtu(rtnl, &offer, old);
        let joined = self.sync_groups(rtnl);
        let carrier = joined && offer.active && offer.gid.is_some();
        self.device().set_carrier(rtnl, carrier);
    }

    /// Takes the port's GID into the interface's address.
    fn follow_gid(self: &Arc<Self>, rtnl: &mut Rtnl, offer: &Offer) {
        if offer.gid.is_some() {
            self.control.get(rtnl).advised = false;
        } else {
            self.advise(rtnl);
        }
        // Without a GID the address has at least the queue pair's number.
        let gid = offer.gid.unwrap_or(Gid::ZERO);
        let Ok(qp) = self.main_qp() else { return };
        let address = HwAddr::new(qp.number(), gid);
        if self.device().address() == address {
            return;
        }
        self.device().set_address(rtnl, &address);
        // The ways from the old GID are no use any more.
        self.forget_destinations();
        let control = self.control.get(rtnl);
        control.receive.update(|receiver| receiver.set_gid(gid));
    }

    /// Tells the administrator once why the link stays down.
    fn advise(&self, rtnl: &mut Rtnl) {
        let control = self.control.get(rtnl);
        if matches!(control.phase, Phase::Up(_)) && !control.advised {
            control.advised = true;
            dev_warn!(
                self.rdma(),
                "{}: port {} has no GID to send from: {}; the link stays down until then\n",
                self.device().name(),
                self.port().get(),
                self.link().gid_advice()
            );
        }
    }

    /// Keeps the MTU within what the port carries, and at its most where it was so before.
    fn follow_mtu(&self, rtnl: &mut Rtnl, offer: &Offer, old: Option<Offer>) {
        let most = payload(offer.mtu);
        let now = self.device().mtu();
        match old {
            None => {
                self.device().store_mtu(most);
                self.note_small_mtu(most);
            }
            Some(old) if now > most || (now == payload(old.mtu) && now != most) => {
                if let Err(error) = self.device().request_mtu(rtnl, most) {
                    let name = self.device().name();
                    dev_warn!(self.rdma(), "{name}: MTU {most} cannot be set: {error:?}\n");
                }
            }
            Some(_) => {}
        }
    }

    /// IPv6 wants more than what Ethernet's usual MTU leaves.
    fn note_small_mtu(&self, mtu: u32) {
        if mtu < IPV6_MIN_MTU {
            dev_info!(
                self.rdma(),
                "port {}: MTU {mtu}, too small for IPv6 ({IPV6_MIN_MTU}): raise the MTU of the \
                 Ethernet device for that, to 9000 if it can\n",
                self.port().get()
            );
        }
    }

    /// Makes the memberships those that the stack wants. Returns whether the broadcast group is
    /// among them.
    fn sync_groups(self: &Arc<Self>, rtnl: &mut Rtnl) -> bool {
        if !matches!(self.control.get(rtnl).phase, Phase::Up(_)) {
            return false;
        }
        match self.try_sync_groups(rtnl) {
            Ok(joined) => joined,
            Err(_) => {
                // No memory: what is joined stays, the rest comes later.
                self.retry_in(1);
                let group = self.link().carrier_group(self.broadcast.gid());
                self.control.get(rtnl).groups.is_member(&group)
            }
        }
    }

    fn try_sync_groups(self: &Arc<Self>, rtnl: &mut Rtnl) -> Result<bool> {
        let broadcast = self.link().carrier_group(self.broadcast.gid());
        let addresses = self.device().multicast_addresses()?;
        let mut wanted = KVec::with_capacity(addresses.len() + 1, GFP_KERNEL)?;
        wanted.push(broadcast, GFP_KERNEL)?;
        for address in &addresses {
            wanted.push(self.link().carrier_group(address.gid()), GFP_KERNEL)?;
        }
        let qp = self.main_qp()?;
        // Out of the control data for the time of the joins, which want the RTNL themselves.
        let mut groups = core::mem::take(&mut self.control.get(rtnl).groups);
        let mut member = Member {
            link: self.link(),
            qp,
            rtnl: &mut *rtnl,
        };
        let now = self.now();
        let result = groups.reconcile(&wanted, now, &mut member);
        let joined = groups.is_member(&broadcast);
        self.statistics().multicast_groups.set(groups.joined());
        self.control.get(rtnl).groups = groups;
        if let Some(at) = result? {
            self.retry_in(at.saturating_sub(now).max(1));
        }
        Ok(joined)
    }

    fn leave_groups(&self, rtnl: &mut Rtnl) {
        let Ok(qp) = self.main_qp() else { return };
        let mut groups = core::mem::take(&mut self.control.get(rtnl).groups);
        groups.leave_all(&mut Member {
            link: self.link(),
            qp,
            rtnl,
        });
        self.statistics().multicast_groups.set(0);
    }

    /// Brings queue pairs that failed back to work, or restarts the interface if `force`d.
    pub(super) fn repair(self: &Arc<Self>, rtnl: &mut Rtnl, force: bool) {
        let mut restart = match self.control.get(rtnl).phase {
            Phase::Down => return,
            Phase::Broken => true,
            Phase::Up(_) => force,
        };
        for qp in &self.queue_pairs {
            restart |= match qp.state() {
                Ok(qp::State::ReadyToSend) => false,
                Ok(qp::State::SendQueueError) => qp.resume().is_err(),
                Ok(qp::State::Error | qp::State::Other) | Err(_) => true,
            };
        }
        if restart {
            self.restart(rtnl);
        }
    }

    /// Takes the interface down and up again, not too often.
    fn restart(self: &Arc<Self>, rtnl: &mut Rtnl) {
        if let Err(seconds) = self.control.get(rtnl).restarts.begin(self.now()) {
            self.stuck.store(true, Ordering::Release);
            self.retry_in(seconds);
            return;
        }
        dev_warn!(
            self.rdma(),
            "{}: a queue pair failed or hangs; restarting\n",
            self.device().name()
        );
        self.take_down(rtnl);
        self.bring_up_again(rtnl);
    }

    /// Brings up what the stack believes to be up; if that fails now, later.
    fn bring_up_again(self: &Arc<Self>, rtnl: &mut Rtnl) {
        if self.bring_up(rtnl).is_err() {
            self.control.get(rtnl).phase = Phase::Broken;
            self.broken.store(true, Ordering::Release);
            self.retry_in(1);
        }
    }

    /// Changes the MTU; see [`Operations::change_mtu`](crate::net::device::Operations).
    pub(super) fn set_mtu(self: &Arc<Self>, rtnl: &mut Rtnl, mtu: u32) -> Result {
        let most = payload(self.link().refresh()?.mtu);
        if mtu > most {
            let name = self.device().name();
            dev_warn!(
                self.rdma(),
                "{name}: MTU {mtu} is beyond the port's {most}: raise the MTU of the device below\n"
            );
            return Err(EINVAL);
        }
        let old = self.device().mtu();
        self.device().store_mtu(mtu);
        let Phase::Up(buffers) = self.control.get(rtnl).phase else {
            return Ok(());
        };
        if mtu > payload(buffers) {
            // Larger buffers are needed.
            self.take_down(rtnl);
            self.bring_up(rtnl).inspect_err(|_| {
                self.device().store_mtu(old);
                self.bring_up_again(rtnl);
            })?;
        }
        Ok(())
    }

    /// Restarts an interface of which a send queue hangs: one that was stopped for the watchdog's time
    /// and ended no packet since its last alarm. A device may be that slow.
    pub(super) fn hangs(self: &Arc<Self>, queue: u32) {
        let Some((statistics, alarm)) = self.transmit_alarm(queue as usize) else {
            return;
        };
        let completions = statistics.tx_completions.get();
        if alarm.swap(completions, Ordering::Relaxed) != completions {
            return;
        }
        dev_warn!(
            self.rdma(),
            "{}: transmit queue {queue} makes no progress\n",
            self.device().name()
        );
        self.restart_soon();
    }
}

/// Smallest MTU of a link that carries IPv6 (RFC 8200 §5).
const IPV6_MIN_MTU: u32 = 1280;

/// The MTU that a port's MTU leaves.
fn payload(mtu: u32) -> u32 {
    mtu.saturating_sub(encap::LEN as u32)
}

#[kernel::prelude::kunit_tests(oxib_control)]
mod tests {
    use super::*;

    #[test]
    fn restarts_back_off() {
        let mut backoff = Backoff::default();
        // (time, waits so long if it has to)
        for (now, wait) in [
            (100, None),
            (100, Some(1)),
            (101, None),
            (102, Some(1)),
            (103, None),
            (107, None),
            (114, Some(1)),
            (115, None),
            (131, None),
            (147, None),
            (162, Some(1)),
            // Quiet for long: from the start.
            (300, None),
            (301, None),
        ] {
            assert_eq!(backoff.begin(now).err(), wait);
        }
    }

    #[test]
    fn encapsulation_is_taken_off() {
        assert_eq!(payload(4096), 4092);
        assert_eq!(payload(0), 0);
    }
}
