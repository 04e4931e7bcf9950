// SPDX-License-Identifier: GPL-2.0-only

//! Multicast groups, and the queue pairs that take their packets (IBTA 10.5).

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    limits,
    queue_pair::QueuePair, //
};
use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    wire::{
        gid::Gid,
        lid::Lid,
        qpn::Qpn, //
    }, //
};

/// A queue pair that is attached to a group.
struct Member {
    gid: Gid,
    lid: Lid,
    queue_pair: Arc<QueuePair>,
}

/// The groups of a device: all members, in no order.
#[pin_data]
pub(crate) struct Groups {
    #[pin]
    members: IrqLock<KVec<Member>>,
}

impl Groups {
    /// Creates a table without members.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            members <- new_irq_lock!(KVec::new(), "softib_groups"),
        })
    }

    /// Lets a queue pair take a group's packets. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also if the group or the device has as many members as there may be; `EINVAL` if
    /// this is no group, or if the queue pair is attached to it by another LID: `ib_core` counts
    /// that as two, and keeps a queue pair until both are detached, but a detachment names the
    /// group alone.
    pub(crate) fn attach(&self, queue_pair: &Arc<QueuePair>, gid: Gid, lid: Lid) -> Result {
        if !gid.is_multicast() {
            return Err(EINVAL);
        }
        loop {
            // Made before the lock is taken.
            let wanted = self.members.with(|members| members.len() + 1);
            let mut larger = KVec::with_capacity(wanted.next_power_of_two(), GFP_KERNEL)?;
            let done = self.members.with(|members| {
                let known = |member: &&Member| {
                    member.gid == gid && Arc::ptr_eq(&member.queue_pair, queue_pair)
                };
                if let Some(member) = members.iter().find(known) {
                    return if member.lid == lid {
                        Ok(true)
                    } else {
                        Err(EINVAL)
                    };
                }
                let of_group = members.iter().filter(|member| member.gid == gid).count();
                if members.len() as u32 >= limits::GROUPS
                    || of_group as u32 >= limits::GROUP_MEMBERS
                {
                    return Err(ENOMEM);
                }
                if members.len() == members.capacity() {
                    if larger.capacity() <= members.len() {
                        return Ok(false);
                    }
                    for member in members.drain_all() {
                        // There is room for all, as was just seen.
                        let _ = larger.push_within_capacity(member);
                    }
                    // The old memory is freed behind the loop's closure, without the lock.
                    core::mem::swap(members, &mut larger);
                }
                let queue_pair = queue_pair.clone();
                let member = Member {
                    gid,
                    lid,
                    queue_pair,
                };
                let _ = members.push_within_capacity(member);
                Ok(true)
            })?;
            if done {
                return Ok(());
            }
        }
    }

    /// Detaches a queue pair from a group.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the queue pair was not attached to the group.
    pub(crate) fn detach(&self, number: Qpn, gid: Gid) -> Result {
        self.take(|member| member.gid == gid && member.queue_pair.number == number)
            .map(drop)
            .ok_or(EINVAL)
    }

    /// Detaches a queue pair from all groups.
    pub(crate) fn detach_all(&self, number: Qpn) {
        while self
            .take(|member| member.queue_pair.number == number)
            .is_some()
        {}
    }

    /// Takes out one member, to be dropped without the lock.
    fn take(&self, wanted: impl Fn(&Member) -> bool) -> Option<Member> {
        self.members.with(|members| {
            let place = members.iter().position(wanted)?;
            members.remove(place).ok()
        })
    }

    /// Returns the first member at or behind a place that takes the group's packets, and the
    /// place behind it.
    pub(crate) fn next(&self, from: usize, gid: &Gid, lid: Lid) -> Option<(Arc<QueuePair>, usize)> {
        self.members.with(|members| {
            let (place, member) = members
                .iter()
                .enumerate()
                .skip(from)
                .find(|(_, member)| member.gid == *gid && takes(member.lid, lid))?;
            // A reference of its own: the member may be detached as soon as the lock is released.
            Some((member.queue_pair.clone(), place + 1))
        })
    }
}

/// Returns whether a member that was attached with that LID takes packets that came to `lid`.
/// Consumers that do not know the LID yet give zero.
fn takes(attached: Lid, lid: Lid) -> bool {
    attached == Lid::ZERO || attached == lid
}
