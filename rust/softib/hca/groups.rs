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
    /// Whether the queue pair is a program's.
    of_program: bool,
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
    /// `ENOMEM`, also if the group or the device has as many members as there may be, or as many
    /// of programs; `EINVAL` if this is no group, or if the queue pair is attached to it by another
    /// LID: `ib_core` counts that as two, and keeps a queue pair until both are detached, but a
    /// detachment names the group alone.
    pub(crate) fn attach(&self, queue_pair: &Arc<QueuePair>, gid: Gid, lid: Lid) -> Result {
        if !gid.is_multicast() {
            return Err(EINVAL);
        }
        let of_program = queue_pair.domain.is_of_program();
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
                if !has_room(members, |_| true, limits::GROUPS, of_program)
                    || !has_room(members, |of| *of == gid, limits::GROUP_MEMBERS, of_program)
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
                    of_program,
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

/// Returns whether one more member finds room in the groups that `counts` picks, where `most` may
/// be.
fn has_room(
    members: &[Member],
    counts: impl Fn(&Gid) -> bool,
    most: u32,
    of_program: bool,
) -> bool {
    let (mut all, mut of_programs) = (0, 0);
    for member in members.iter().filter(|member| counts(&member.gid)) {
        all += 1;
        of_programs += u32::from(member.of_program);
    }
    limits::takes_member(all, of_programs, most, of_program)
}

/// Returns whether a member that was attached with that LID takes packets that came to `lid`.
/// Consumers that do not know the LID yet give zero.
fn takes(attached: Lid, lid: Lid) -> bool {
    attached == Lid::ZERO || attached == lid
}
