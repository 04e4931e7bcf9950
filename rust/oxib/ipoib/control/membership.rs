// SPDX-License-Identifier: GPL-2.0-only

//! Membership in the groups that the stack wants. With the RTNL held.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    ipoib::{
        interface::{
            Interface,
            Phase, //
        },
        link::{
            Join,
            QueuePair, //
        },
        multicast::Membership, //
    },
    net::rtnl::Rtnl,
    rdma::management::random,
    wire::{
        gid::Gid,
        mgid, //
    }, //
};

/// An interface that joins and leaves groups.
struct Member<'a> {
    interface: &'a Arc<Interface>,
    qp: &'a QueuePair,
    rtnl: &'a mut Rtnl,
}

impl Membership for Member<'_> {
    fn join(&mut self, group: Gid) -> Result<Join> {
        let link = self.interface.link();
        link.join(self.rtnl, self.interface, self.qp, group)
    }

    fn holds(&mut self, group: Gid) -> bool {
        self.interface.link().holds(self.rtnl, group)
    }

    fn jitter(&mut self, range: u32) -> u32 {
        random().checked_rem(range).unwrap_or(0)
    }

    fn leave(&mut self, group: Gid) {
        let link = self.interface.link();
        link.leave(self.rtnl, self.interface, self.qp, group);
    }
}

impl Interface {
    /// Makes the memberships those that the stack wants. Returns whether the broadcast group is
    /// among them.
    pub(super) fn sync_groups(self: &Arc<Self>, rtnl: &mut Rtnl) -> bool {
        if !matches!(self.control.get(rtnl).phase, Phase::Up { .. }) {
            return false;
        }
        match self.try_sync_groups(rtnl) {
            Ok(joined) => joined,
            Err(_) => {
                // No memory: what is joined stays, the rest comes later.
                self.retry_in(1000);
                let group = self.link().carrier_group(self.broadcast().gid());
                self.control.get(rtnl).groups.is_member(&group)
            }
        }
    }

    fn try_sync_groups(self: &Arc<Self>, rtnl: &mut Rtnl) -> Result<bool> {
        let broadcast = self.link().carrier_group(self.broadcast().gid());
        let addresses = self.device().multicast_addresses()?;
        let mut wanted = KVec::with_capacity(addresses.len() + 1, GFP_KERNEL)?;
        wanted.push(broadcast, GFP_KERNEL)?;
        let own = self.broadcast().gid();
        // Others are no groups of this link, and nobody could be heard there.
        let groups = addresses.iter().map(|address| address.gid());
        for group in groups.filter(|group| mgid::is_of_link(group, &own)) {
            wanted.push(self.link().carrier_group(group), GFP_KERNEL)?;
        }
        let queues = self.queues(rtnl);
        let qp = queues.main()?;
        // Out of the control data for the time of the joins, which want the RTNL themselves.
        let mut groups = core::mem::take(&mut self.control.get(rtnl).groups);
        let mut member = Member {
            interface: self,
            qp,
            rtnl: &mut *rtnl,
        };
        let now = self.now_ms();
        let result = groups.reconcile(&wanted, now, &mut member);
        // A membership that is renewed keeps the carrier: the queue pair stays attached.
        let joined = groups.is_member(&broadcast) || self.link().hears_broadcast();
        self.statistics().multicast_groups.set(groups.joined());
        self.control.get(rtnl).groups = groups;
        if let Some(at) = result? {
            self.retry_in(at.saturating_sub(now).max(1));
        }
        Ok(joined)
    }

    /// Detaches the queue pair from the groups, of which the interface stays a member:
    /// [`Interface::sync_groups`] attaches the one that it is brought up with.
    pub(super) fn detach_groups(&self, rtnl: &mut Rtnl) {
        if let Ok(qp) = self.queues(rtnl).main() {
            self.link().detach_groups(self, qp);
        }
    }

    pub(super) fn leave_groups(self: &Arc<Self>, rtnl: &mut Rtnl) {
        let queues = self.queues(rtnl);
        let Ok(qp) = queues.main() else { return };
        let mut groups = core::mem::take(&mut self.control.get(rtnl).groups);
        groups.leave_all(&mut Member {
            interface: self,
            qp,
            rtnl,
        });
        self.statistics().multicast_groups.set(0);
    }
}
