// SPDX-License-Identifier: GPL-2.0-only

//! The groups that an interface is, or wants to be, a member of.

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    }, //
};

use super::link::Join;
use crate::wire::gid::Gid;

/// First wait after a failed join, in milliseconds; it doubles up to [`BACKOFF_MAX`].
const BACKOFF_MIN: u32 = 1000;

/// Longest wait, in milliseconds, without the jitter.
const BACKOFF_MAX: u32 = 16_000;

/// State of the membership in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A join is due at `at` (milliseconds); if it fails, the next one comes after `backoff`
    /// more. One that was under way may have failed before: of what it `began` something may be
    /// left.
    Wanted { at: u64, backoff: u32, began: bool },
    /// A join is under way; `backoff` as above.
    Asked { backoff: u32 },
    /// The interface is a member.
    Joined,
}

impl State {
    /// Creates the state of a group that was just asked for.
    fn new(now: u64) -> Self {
        Self::Wanted {
            at: now,
            backoff: BACKOFF_MIN,
            began: false,
        }
    }

    /// Resets the backoff, unless the group is joined: the next join is due at once.
    fn without_backoff(self) -> Self {
        let backoff = BACKOFF_MIN;
        match self {
            Self::Wanted { began, .. } => Self::Wanted {
                at: 0,
                backoff,
                began,
            },
            Self::Asked { .. } => Self::Asked { backoff },
            Self::Joined => self,
        }
    }

    /// Tries to become a member if that is due. Nodes that failed together try again a while apart.
    fn advance(self, group: Gid, now: u64, how: &mut impl Membership) -> Self {
        let (backoff, began) = match self {
            Self::Joined if how.holds(group) => return self,
            Self::Joined => (BACKOFF_MIN, true),
            Self::Wanted { at, .. } if at > now => return self,
            Self::Wanted { backoff, began, .. } => (backoff, began),
            Self::Asked { backoff } => (backoff, true),
        };
        match how.join(group) {
            Ok(Join::Member) => Self::Joined,
            Ok(Join::UnderWay) => Self::Asked { backoff },
            Err(_) => Self::Wanted {
                at: now + u64::from(backoff) + u64::from(how.jitter(backoff / 4)),
                backoff: (backoff * 2).min(BACKOFF_MAX),
                began,
            },
        }
    }
}

/// A group that the stack wants, or wanted in the last round.
struct Group {
    state: State,
    /// The last round in which the stack wanted it.
    round: u32,
}

/// The groups of one interface.
#[derive(Default)]
pub(super) struct Groups {
    table: RBTree<Gid, Group>,
    /// Counts the looks at what the stack wants.
    round: u32,
}

/// Operations that [`Groups`] works with.
pub(super) trait Membership {
    /// Makes the interface a member of `group`.
    ///
    /// # Errors
    ///
    /// Any: it is tried again later.
    fn join(&mut self, group: Gid) -> Result<Join>;

    /// Returns whether a membership has not ended from outside, and the group is heard.
    fn holds(&mut self, group: Gid) -> bool;

    /// A number below `range`, another one each time.
    fn jitter(&mut self, range: u32) -> u32;

    /// Ends a membership, or what is left of a join that was under way.
    fn leave(&mut self, group: Gid);
}

impl Groups {
    /// Returns whether the interface is a member of `group`.
    pub(super) fn is_member(&self, group: &Gid) -> bool {
        let group = self.table.get(group);
        group.is_some_and(|group| group.state == State::Joined)
    }

    /// Returns all groups, and whether the interface is a member of each.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Gid, bool)> {
        self.table
            .iter()
            .map(|(gid, group)| (gid, group.state == State::Joined))
    }

    /// Returns the number of groups that the interface is a member of.
    pub(super) fn joined(&self) -> u64 {
        self.table
            .values()
            .filter(|group| group.state == State::Joined)
            .count() as u64
    }

    /// Makes the memberships those of `wanted`, as far as that works at time `now`
    /// (milliseconds). Returns the time of the next try, if one is due.
    ///
    /// # Errors
    ///
    /// `ENOMEM`: some groups were not even noted, and all stay as they are; call again.
    pub(super) fn reconcile(
        &mut self,
        wanted: &[Gid],
        now: u64,
        how: &mut impl Membership,
    ) -> Result<Option<u64>> {
        self.round = self.round.wrapping_add(1);
        let round = self.round;
        for gid in wanted {
            if let Some(group) = self.table.get_mut(gid) {
                group.round = round;
            } else {
                let node = RBTreeNodeReservation::new(GFP_KERNEL)?;
                let state = State::new(now);
                self.table
                    .insert(node.into_node(*gid, Group { state, round }));
            }
        }
        // Leaves come first: a join that is called off gives its turn to another.
        self.drop_unwanted(how);
        let mut next: Option<u64> = None;
        for (gid, group) in self.table.iter_mut() {
            group.state = group.state.advance(*gid, now, how);
            if let State::Wanted { at, .. } = group.state {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        }
        Ok(next)
    }

    /// Makes the joins that failed due at once, with the first backoff: the subnet has changed.
    pub(super) fn reset_backoff(&mut self) {
        for group in self.table.values_mut() {
            group.state = group.state.without_backoff();
        }
    }

    /// Ends all memberships, in any state.
    pub(super) fn leave_all(&mut self, how: &mut impl Membership) {
        self.round = self.round.wrapping_add(1);
        self.drop_unwanted(how);
    }

    /// Ends the memberships that were not wanted in this round.
    fn drop_unwanted(&mut self, how: &mut impl Membership) {
        let mut cursor = self.table.cursor_front_mut();
        while let Some(current) = cursor {
            let (gid, group) = current.current();
            if group.round == self.round {
                cursor = current.move_next();
                continue;
            }
            if !matches!(group.state, State::Wanted { began: false, .. }) {
                how.leave(*gid);
            }
            (cursor, _) = current.remove_current();
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_multicast)]
mod tests {
    use super::*;

    /// Counts joins and leaves of members; joins are answered by `answer`.
    struct Log {
        joins: u32,
        leaves: u32,
        members: KVec<Gid>,
        answer: Result<Join>,
    }

    impl Membership for Log {
        fn join(&mut self, group: Gid) -> Result<Join> {
            self.joins += 1;
            if self.answer == Ok(Join::Member) {
                self.members.push(group, GFP_KERNEL)?;
            }
            self.answer
        }

        fn holds(&mut self, group: Gid) -> bool {
            self.members.contains(&group)
        }

        fn jitter(&mut self, range: u32) -> u32 {
            range - 1
        }

        fn leave(&mut self, group: Gid) {
            self.leaves += u32::from(self.members.contains(&group));
            self.members.retain(|member| *member != group);
        }
    }

    fn log(answer: Result<Join>) -> Log {
        Log {
            joins: 0,
            leaves: 0,
            members: KVec::new(),
            answer,
        }
    }

    fn group(n: u8) -> Gid {
        Gid::from_ipv4([239, 0, 0, n])
    }

    #[test]
    fn joins_once_and_leaves_once() {
        let (mut groups, mut log) = (Groups::default(), log(Ok(Join::Member)));
        let wanted = [group(1), group(2)];
        for _ in 0..3 {
            assert_eq!(groups.reconcile(&wanted, 5, &mut log), Ok(None));
        }
        assert_eq!((log.joins, log.leaves), (2, 0));
        assert!(groups.is_member(&group(1)));
        assert_eq!(groups.joined(), 2);
        assert_eq!(groups.reconcile(&wanted[1..], 6, &mut log), Ok(None));
        assert_eq!((log.joins, log.leaves), (2, 1));
        assert!(!groups.is_member(&group(1)));
        groups.leave_all(&mut log);
        assert_eq!((log.joins, log.leaves), (2, 2));
        assert_eq!(groups.joined(), 0);
    }

    #[test]
    fn failed_joins_back_off() {
        let (mut groups, mut log) = (Groups::default(), log(Err(EAGAIN)));
        let wanted = [group(1)];
        // (time of the call, joins tried by then, next try)
        for (now, joins, next) in [
            (0, 1, 1249),
            (0, 1, 1249),
            (1249, 2, 3748),
            (3747, 2, 3748),
            (3748, 3, 8747),
            (8747, 4, 18_746),
            (18_746, 5, 38_745),
            (38_745, 6, 58_744),
        ] {
            assert_eq!(groups.reconcile(&wanted, now, &mut log), Ok(Some(next)));
            assert_eq!(log.joins, joins);
            assert!(!groups.is_member(&group(1)));
        }
        log.answer = Ok(Join::Member);
        assert_eq!(groups.reconcile(&wanted, 58_744, &mut log), Ok(None));
        assert!(groups.is_member(&group(1)));
    }

    #[test]
    fn a_reset_backoff_starts_again() {
        let (mut groups, mut log) = (Groups::default(), log(Err(EAGAIN)));
        let wanted = [group(1)];
        for time in [0, 1249, 3748] {
            assert!(groups.reconcile(&wanted, time, &mut log).is_ok());
        }
        assert_eq!(log.joins, 3);
        groups.reset_backoff();
        assert_eq!(groups.reconcile(&wanted, 4000, &mut log), Ok(Some(5249)));
        assert_eq!(log.joins, 4);
    }

    #[test]
    fn a_reset_backoff_keeps_memberships() {
        let (mut groups, mut log) = (Groups::default(), log(Ok(Join::Member)));
        let wanted = [group(1)];
        assert_eq!(groups.reconcile(&wanted, 0, &mut log), Ok(None));
        groups.reset_backoff();
        assert_eq!(groups.reconcile(&wanted, 1, &mut log), Ok(None));
        assert_eq!(log.joins, 1);
    }

    #[test]
    fn a_join_under_way_is_asked_after() -> Result {
        let (mut groups, mut log) = (Groups::default(), log(Ok(Join::UnderWay)));
        let wanted = [group(1)];
        assert_eq!(groups.reconcile(&wanted, 0, &mut log), Ok(None));
        assert!(!groups.is_member(&group(1)));
        // That it failed then is its first failure.
        log.answer = Err(EINVAL);
        assert_eq!(groups.reconcile(&wanted, 500, &mut log), Ok(Some(1749)));
        assert_eq!(log.joins, 2);
        // Something may be left of it.
        log.members.push(group(1), GFP_KERNEL)?;
        assert_eq!(groups.reconcile(&[], 600, &mut log), Ok(None));
        assert_eq!(log.leaves, 1);
        Ok(())
    }

    #[test]
    fn a_membership_that_ended_is_renewed_at_once() {
        let (mut groups, mut log) = (Groups::default(), log(Ok(Join::Member)));
        let wanted = [group(1)];
        assert_eq!(groups.reconcile(&wanted, 0, &mut log), Ok(None));
        log.members.clear();
        log.answer = Ok(Join::UnderWay);
        assert_eq!(groups.reconcile(&wanted, 10, &mut log), Ok(None));
        assert_eq!((log.joins, groups.joined()), (2, 0));
        log.answer = Ok(Join::Member);
        assert_eq!(groups.reconcile(&wanted, 20, &mut log), Ok(None));
        assert_eq!((log.joins, log.leaves, groups.joined()), (3, 0, 1));
    }

    #[test]
    fn never_joined_is_not_left() {
        let (mut groups, mut log) = (Groups::default(), log(Err(EAGAIN)));
        assert_eq!(groups.reconcile(&[group(1)], 0, &mut log), Ok(Some(1249)));
        groups.leave_all(&mut log);
        assert_eq!(log.leaves, 0);
    }
}
