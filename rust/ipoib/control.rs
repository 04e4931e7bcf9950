// SPDX-License-Identifier: GPL-2.0-only

//! How an interface comes up, goes down, and follows its port. All of it with the RTNL held.

use core::sync::atomic::Ordering;

use kernel::{
    prelude::*,
    sync::Arc,
    time::msecs_to_jiffies, //
};

use super::{
    interface::{
        Interface,
        Phase,
        CONTROL, //
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
            *self.device().lock_queue(index as u32)? = Some(queue);
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
        self.device().stop_queues(rtnl);
        self.leave_groups(rtnl);
        for qp in &self.queue_pairs {
            // From Reset there is no way to Error, and no need.
            let _ = qp.fail();
        }
        let control = self.control.get(rtnl);
        control.phase = Phase::Down;
        let receiver = control.receive.disable();
        control
            .reapers
            .iter_mut()
            .for_each(|reaper| drop(reaper.disable()));
        for qp in &self.queue_pairs {
            if let Err(error) = qp.reset() {
                dev_err!(self.rdma(), "queue pair cannot be reset: {error:?}\n");
            }
        }
        // In Reset no device touches their memory any more.
        drop(receiver);
        self.remove_transmit_queues();
        self.queues.receive.discard();
        self.queues.send.iter().for_each(|queue| queue.discard());
        let forgotten = self.destinations.lock().take_all();
        drop(forgotten);
    }

    fn remove_transmit_queues(&self) {
        for index in 0..self.device().queues() {
            let Ok(mut guard) = self.device().lock_queue(index) else {
                continue;
            };
            guard.with_queue(|data, queue| {
                if let Some(data) = data {
                    data.clear(queue);
                }
            });
            let data = guard.take();
            drop(guard);
            drop(data);
        }
    }

    /// Reads the port anew and makes the interface what the port offers.
    pub(super) fn refresh(self: &Arc<Self>, rtnl: &mut Rtnl) {
        let offer = match self.link().refresh() {
            Ok(offer) => offer,
            Err(error) => {
                let port = self.port().get();
                dev_warn!(self.rdma(), "port {port} cannot be queried: {error:?}\n");
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
            None => self.device().store_mtu(most),
            Some(old) if now > most || (now == payload(old.mtu) && now != most) => {
                if let Err(error) = self.device().request_mtu(rtnl, most) {
                    let name = self.device().name();
                    dev_warn!(self.rdma(), "{name}: MTU {most} cannot be set: {error:?}\n");
                }
            }
            Some(_) => {}
        }
    }

    /// Makes the memberships those that the stack wants. Returns whether the broadcast group is
    /// among them.
    fn sync_groups(self: &Arc<Self>, rtnl: &mut Rtnl) -> bool {
        if self.control.get(rtnl).phase == Phase::Down {
            return false;
        }
        match self.try_sync_groups(rtnl) {
            Ok(joined) => joined,
            Err(_) => {
                // No memory: what is joined stays, the rest comes later.
                self.queue
                    .schedule::<_, CONTROL>(self.clone(), msecs_to_jiffies(1000));
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
            let delay = u32::try_from(at.saturating_sub(now))
                .unwrap_or(u32::MAX)
                .min(16);
            let delay = msecs_to_jiffies(delay * 1000 + 1);
            self.queue.schedule::<_, CONTROL>(self.clone(), delay);
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

    /// Brings queue pairs that failed back to work.
    pub(super) fn repair(self: &Arc<Self>, rtnl: &mut Rtnl) {
        if self.control.get(rtnl).phase == Phase::Down {
            return;
        }
        let mut restart = false;
        for qp in &self.queue_pairs {
            restart |= match qp.state() {
                Ok(qp::State::ReadyToSend) => false,
                Ok(qp::State::SendQueueError) => qp.resume().is_err(),
                Ok(qp::State::Error | qp::State::Other) | Err(_) => true,
            };
        }
        if restart {
            self.restart(rtnl, "a queue pair failed");
        }
    }

    /// Takes the interface down and up again.
    fn restart(self: &Arc<Self>, rtnl: &mut Rtnl, why: &str) {
        dev_warn!(self.rdma(), "{}: {why}; restarting\n", self.device().name());
        self.take_down(rtnl);
        // Its errors are in the log.
        let _ = self.bring_up(rtnl);
    }

    /// Changes the MTU; see [`Operations::change_mtu`](crate::net::device::Operations).
    pub(super) fn set_mtu(self: &Arc<Self>, rtnl: &mut Rtnl, mtu: u32) -> Result {
        let offer = self.link().refresh()?;
        let most = payload(offer.mtu);
        if mtu > most {
            let name = self.device().name();
            dev_warn!(
                self.rdma(),
                "{name}: MTU {mtu} is beyond the port's {most}: raise the MTU of the device below\n"
            );
            return Err(EINVAL);
        }
        self.device().store_mtu(mtu);
        if let Phase::Up(buffers) = self.control.get(rtnl).phase {
            if mtu > payload(buffers) {
                self.take_down(rtnl);
                self.bring_up(rtnl)?;
            }
        }
        Ok(())
    }

    /// Says that a send queue hangs.
    pub(super) fn hangs(self: &Arc<Self>, queue: u32) {
        dev_warn!(
            self.rdma(),
            "{}: transmit queue {queue} makes no progress; looking at its queue pair\n",
            self.device().name()
        );
        self.broken.store(true, Ordering::Release);
        self.kick();
    }
}

/// The MTU that a port's MTU leaves.
fn payload(mtu: u32) -> u32 {
    mtu.saturating_sub(encap::LEN as u32)
}
