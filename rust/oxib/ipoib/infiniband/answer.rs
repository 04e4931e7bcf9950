// SPDX-License-Identifier: GPL-2.0-only

//! Whether the SA's answers are about what it was asked.
//!
//! The kernel's `ib_sa` matches an answer to its query by the number alone. One that is about
//! something else is taken for none: no packet goes by it.

use kernel::{
    fmt,
    prelude::*, //
};

use super::{
    Interface,
    Port, //
};
use crate::{
    ipoib::{
        control::News,
        throttle::Throttle, //
    },
    rdma::{
        path::PathRecord,
        sa::multicast::Record, //
    },
    wire::{
        gid::Gid,
        pkey::Pkey, //
    }, //
};

/// LIDs of ports and of groups (IBTA 4.1.3).
const UNICAST: core::ops::RangeInclusive<u32> = 1..=0xbfff;
const MULTICAST: core::ops::RangeInclusive<u16> = 0xc000..=0xfffe;

/// Seconds in which one wrong answer is logged.
const LOG_INTERVAL: u64 = 10;

/// Lines about groups that the port may not join. A subnet that has no room for more groups refuses
/// them for good, and the subnet administrator is asked all the same; so the first line is followed
/// by one after 10 seconds at the earliest, and in the end by one an hour. All groups have the
/// lines in common: programs may join very many.
#[derive(Default)]
pub(super) struct RefusalLines {
    throttle: Throttle<10, 3600>,
    /// The group that the last line was about.
    group: Option<Gid>,
}

impl RefusalLines {
    /// Notes at time `now` (seconds) that the port may not join `group`. Returns whether that is to
    /// be logged.
    fn note(&mut self, group: Gid, now: u64) -> bool {
        let is_allowed = self.throttle.allow(now);
        if is_allowed {
            self.group = Some(group);
        }
        is_allowed
    }

    /// Notes that the port has joined `group`. If the last line was about it, its cause is over,
    /// and the next refusal is logged at once.
    fn joined(&mut self, group: &Gid) {
        if self.group.as_ref() == Some(group) {
            *self = Self::default();
        }
    }
}

/// Reason for not using an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wrong {
    /// A path to another port.
    Destination,
    /// A path from another port.
    Source,
    /// A path in another partition, with this P_Key.
    Pkey(u16),
    /// A LID that is none of a port.
    Lid(u32),
    /// Membership in another group.
    Group,
    /// A LID that is none of a group.
    GroupLid(u16),
    /// Membership without an MTU.
    Mtu,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Destination => f.write_str("it is a path to another GID"),
            Self::Source => f.write_str("it is a path from another GID"),
            Self::Pkey(pkey) => write!(f, "its P_Key is {pkey:#06x}"),
            Self::Lid(lid) => write!(f, "LID {lid:#06x} is none of a port"),
            Self::Group => f.write_str("it is about another group"),
            Self::GroupLid(lid) => write!(f, "LID {lid:#06x} is none of a group"),
            Self::Mtu => f.write_str("it has no MTU"),
        }
    }
}

/// Checks whether `path` is one that was asked for by `wanted`.
pub(super) fn check_path(wanted: &PathRecord, path: &PathRecord) -> Result<(), Wrong> {
    let same_partition = Pkey::new(path.pkey()).base() == Pkey::new(wanted.pkey()).base();
    if !is_port(&wanted.dgid(), &path.dgid()) {
        Err(Wrong::Destination)
    } else if !is_port(&wanted.sgid(), &path.sgid()) {
        Err(Wrong::Source)
    } else if !same_partition {
        Err(Wrong::Pkey(path.pkey()))
    } else if !UNICAST.contains(&path.dlid()) {
        Err(Wrong::Lid(path.dlid()))
    } else {
        Ok(())
    }
}

/// Returns whether `found` is a GID of the port that was asked for by `wanted`. Of a link-local
/// one the SA may say the GID with the subnet's prefix: each port has both (IBTA 4.1.1).
fn is_port(wanted: &Gid, found: &Gid) -> bool {
    let guid = |gid: &Gid| u128::from_be_bytes(gid.bytes()) as u64;
    found == wanted || wanted.is_link_local() && guid(found) == guid(wanted)
}

/// Checks whether `record` makes its reader a member of `group`. The rest of the request has been
/// compared by `ib_sa`.
pub(super) fn check_group(group: &Gid, record: &Record) -> Result<(), Wrong> {
    if record.mgid() != *group {
        Err(Wrong::Group)
    } else if !MULTICAST.contains(&record.mlid()) {
        Err(Wrong::GroupLid(record.mlid()))
    } else if record.mtu().is_none() {
        Err(Wrong::Mtu)
    } else {
        Ok(())
    }
}

/// Returns whether a message is to be left out of the log now; if not, the next ones are for a
/// while.
fn keep_quiet(quiet_until: &mut u64, now: u64) -> bool {
    let is_quiet = now < *quiet_until;
    if !is_quiet {
        *quiet_until = now + LOG_INTERVAL;
    }
    is_quiet
}

impl Port {
    /// Counts a wrong answer to a question about `gid`, and says so, not too often.
    pub(super) fn note_wrong(&self, interface: &Interface, gid: Gid, wrong: Wrong) {
        let mut quiet_until = self.quiet_until.lock();
        // Under the lock, which makes this the only writer.
        interface.statistics().sa_answers_wrong.add(1);
        let is_quiet = keep_quiet(&mut quiet_until, interface.now());
        drop(quiet_until);
        if !is_quiet {
            dev_warn!(
                self.device().as_dev(),
                "{}: the subnet administrator's answer about {gid:?} is not used: {wrong}\n",
                interface.device().name()
            );
        }
    }

    /// Logs that the port may not join a group other than the broadcast group, ever less often.
    pub(super) fn tell_refused(&self, interface: &Interface, group: Gid, error: Error) {
        if self.refusal_lines.lock().note(group, interface.now()) {
            dev_warn!(
                self.device().as_dev(),
                "{}: the subnet administrator does not let port {} join {group:?}: {error:?}; it \
                 is asked again\n",
                interface.device().name(),
                self.number.get()
            );
        }
    }

    /// Notes that the port has joined a group, for the lines about groups that it may not join.
    pub(super) fn note_joined(&self, group: &Gid) {
        self.refusal_lines.lock().joined(group);
    }

    /// Lets the next refusal of a group be logged at once: the subnet has changed, or another
    /// manager has it.
    pub(super) fn log_refusals_again(&self) {
        *self.refusal_lines.lock() = RefusalLines::default();
    }

    /// Logs that the port may not join the broadcast group, without which the link stays down, or
    /// that it may again.
    pub(super) fn tell_of_broadcast(&self, interface: &Interface, news: Option<News>) {
        let name = interface.device().name();
        let (number, pkey) = (self.number.get(), self.pkey().get());
        match news {
            Some(News::Fails(error)) => dev_warn!(
                self.device().as_dev(),
                "{name}: port {number} cannot join the broadcast group of P_Key {pkey:#06x}: \
                 {error:?}; the link stays down, and the subnet administrator is asked again: is \
                 there a subnet manager, has its partition `ipoib`, and this port as a full \
                 member?\n"
            ),
            Some(News::Over) => dev_info!(
                self.device().as_dev(),
                "{name}: port {number} has joined the broadcast group of P_Key {pkey:#06x}\n"
            ),
            None => {}
        }
    }
    /// Logs that the queue pair cannot be attached to the broadcast group, without which the link
    /// stays down, or that it is.
    pub(super) fn tell_of_attachment(&self, interface: &Interface, news: Option<News>) {
        let name = interface.device().name();
        match news {
            Some(News::Fails(error)) => dev_warn!(
                self.device().as_dev(),
                "{name}: the queue pair cannot be attached to the broadcast group: {error:?}; the \
                 link stays down, and it is tried again\n"
            ),
            Some(News::Over) => dev_info!(
                self.device().as_dev(),
                "{name}: the queue pair is attached to the broadcast group\n"
            ),
            None => {}
        }
    }

    /// Logs that the queue pair cannot be attached to a group other than the broadcast group, not
    /// too often.
    pub(super) fn tell_not_attached(&self, interface: &Interface, group: Gid, error: Error) {
        if !keep_quiet(&mut self.quiet_until.lock(), interface.now()) {
            dev_warn!(
                self.device().as_dev(),
                "{}: the queue pair cannot be attached to {group:?}: {error:?}; it is tried \
                 again\n",
                interface.device().name()
            );
        }
    }

    /// Logs that the queue pair cannot be detached from a group, not too often. Returns whether it
    /// did.
    pub(super) fn tell_not_detached(
        &self,
        interface: &Interface,
        group: Gid,
        error: Error,
    ) -> bool {
        let is_quiet = keep_quiet(&mut self.quiet_until.lock(), interface.now());
        if !is_quiet {
            dev_warn!(
                self.device().as_dev(),
                "{}: the queue pair cannot be detached from {group:?}: {error:?}; that of other \
                 groups is not logged\n",
                interface.device().name()
            );
        }
        !is_quiet
    }
}

#[kernel::prelude::kunit_tests(oxib_infiniband_answer)]
mod tests {
    use super::*;
    use crate::rdma::{
        path::PathKind,
        sa::multicast::Role, //
    };

    const NEAR: Gid = Gid::from_bytes([0xfd; 16]);
    const FAR: Gid = Gid::from_bytes([0xfe; 16]);
    const GROUP: Gid = Gid::from_bytes([0xff; 16]);

    fn path(sgid: Gid, dgid: Gid, pkey: u16, dlid: u16) -> PathRecord {
        let mut path = PathRecord::new(PathKind::Infiniband);
        path.set_sgid(sgid);
        path.set_dgid(dgid);
        path.set_pkey(pkey);
        path.set_dlid(dlid);
        path
    }

    #[test]
    fn paths_are_what_was_asked_for() {
        let wanted = path(NEAR, FAR, 0x8001, 0);
        for (sgid, dgid, pkey, dlid, expected) in [
            (NEAR, FAR, 0x8001, 1, Ok(())),
            (NEAR, FAR, 0x0001, 0xbfff, Ok(())),
            (NEAR, NEAR, 0x8001, 1, Err(Wrong::Destination)),
            (FAR, FAR, 0x8001, 1, Err(Wrong::Source)),
            (NEAR, FAR, 0xffff, 1, Err(Wrong::Pkey(0xffff))),
            (NEAR, FAR, 0x8001, 0, Err(Wrong::Lid(0))),
            (NEAR, FAR, 0x8001, 0xc000, Err(Wrong::Lid(0xc000))),
            (NEAR, FAR, 0x8001, 0xffff, Err(Wrong::Lid(0xffff))),
        ] {
            assert_eq!(check_path(&wanted, &path(sgid, dgid, pkey, dlid)), expected);
        }
    }

    #[test]
    fn ports_have_link_local_gids_too() {
        let gid = |prefix: u8, guid: u8| {
            let mut bytes = [0; 16];
            [bytes[0], bytes[1], bytes[15]] = [0xfe, prefix, guid];
            Gid::from_bytes(bytes)
        };
        let (local, other) = (gid(0x80, 1), gid(0xc0, 1));
        for (wanted, found, expected) in [
            (local, other, true),
            (local, local, true),
            (local, gid(0xc0, 2), false),
            (local, gid(0x80, 2), false),
            (other, local, false),
            (other, gid(0xd0, 1), false),
        ] {
            assert_eq!(is_port(&wanted, &found), expected);
        }
    }

    #[test]
    fn a_group_that_is_joined_after_all_ends_the_silence() {
        let mut lines = RefusalLines::default();
        assert!(lines.note(GROUP, 0));
        // Joining another group says nothing about the cause.
        lines.joined(&FAR);
        assert!(!lines.note(FAR, 1));
        lines.joined(&FAR);
        assert!(!lines.note(GROUP, 2));
        lines.joined(&GROUP);
        assert!(lines.note(FAR, 3));
        assert!(!lines.note(GROUP, 4));
    }

    #[test]
    fn groups_are_what_was_asked_for() {
        for (mgid, lid, mtu, expected) in [
            (GROUP, 0xc000, 5, Ok(())),
            (GROUP, 0xfffe, 1, Ok(())),
            (FAR, 0xc000, 5, Err(Wrong::Group)),
            (GROUP, 0xbfff, 5, Err(Wrong::GroupLid(0xbfff))),
            (GROUP, 0xffff, 5, Err(Wrong::GroupLid(0xffff))),
            (GROUP, 0, 5, Err(Wrong::GroupLid(0))),
            (GROUP, 0xc000, 0, Err(Wrong::Mtu)),
            (GROUP, 0xc000, 6, Err(Wrong::Mtu)),
        ] {
            let mut record = Record::new(mgid, NEAR, Pkey::DEFAULT, Role::Full);
            record.set_answer(lid, mtu);
            assert_eq!(check_group(&GROUP, &record), expected);
        }
    }
}
