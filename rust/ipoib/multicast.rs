// SPDX-License-Identifier: GPL-2.0-only

//! The groups that an interface is, or wants to be, a member of.

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    }, //
};

use crate::wire::gid::Gid;

/// First wait after a failed join, in seconds; it doubles up to [`BACKOFF_MAX`].
const BACKOFF_MIN: u32 = 1;

/// Longest wait, in seconds.
const BACKOFF_MAX: u32 = 16;

/// A group's membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A join is due at `at` (seconds); if it fails, the next one comes after `backoff` more.
    Wanted { at: u64, backoff: u32 },
    /// A member.
    Joined,
}

impl State {
    /// Of a group that was just asked for.
    fn new(now: u64) -> Self {
        Self::Wanted {
            at: now,
            backoff: BACKOFF_MIN,
        }
    }

    /// Tries to become a member if that is due.
    fn advance(self, now: u64, join: impl FnOnce() -> Result) -> Self {
        match self {
            Self::Wanted { at, backoff } if at <= now => match join() {
                Ok(()) => Self::Joined,
                Err(_) => Self::Wanted {
                    at: now + u64::from(backoff),
                    backoff: (backoff * 2).min(BACKOFF_MAX),
                },
            },
            other => other,
        }
    }
}

/// The groups of one interface.
#[derive(Default)]
pub(super) struct Groups(RBTree<Gid, State>);

/// What [`Groups`] does its work with.
pub(super) trait Membership {
    /// Becomes a member.
    ///
    /// # Errors
    ///
    /// Any: it is tried again later.
    fn join(&mut self, group: Gid) -> Result;

    /// Ends a membership.
    fn leave(&mut self, group: Gid);
}

impl Groups {
    /// Whether the interface is a member of `group`.
    pub(super) fn is_member(&self, group: &Gid) -> bool {
        self.0.get(group) == Some(&State::Joined)
    }

    /// How many groups the interface is a member of.
    pub(super) fn joined(&self) -> u64 {
        self.0
            .values()
            .filter(|state| **state == State::Joined)
            .count() as u64
    }

    /// Makes the memberships those of `wanted`, as far as that works at time `now` (seconds).
    /// Returns the time of the next try, if one is due.
    ///
    /// # Errors
    ///
    /// `ENOMEM`: some groups were not even noted; call again.
    pub(super) fn reconcile(
        &mut self,
        wanted: &[Gid],
        now: u64,
        how: &mut impl Membership,
    ) -> Result<Option<u64>> {
        self.drop_unwanted(wanted, how);
        for group in wanted {
            if self.0.get(group).is_none() {
                let node = RBTreeNodeReservation::new(GFP_KERNEL)?;
                self.0.insert(node.into_node(*group, State::new(now)));
            }
        }
        let mut next: Option<u64> = None;
        for (group, state) in self.0.iter_mut() {
            *state = state.advance(now, || how.join(*group));
            if let State::Wanted { at, .. } = *state {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        }
        Ok(next)
    }

    /// Ends all memberships.
    pub(super) fn leave_all(&mut self, how: &mut impl Membership) {
        self.drop_unwanted(&[], how);
    }

    fn drop_unwanted(&mut self, wanted: &[Gid], how: &mut impl Membership) {
        let mut cursor = self.0.cursor_front_mut();
        while let Some(current) = cursor {
            let (group, state) = current.current();
            if wanted.contains(group) {
                cursor = current.move_next();
                continue;
            }
            if *state == State::Joined {
                how.leave(*group);
            }
            (cursor, _) = current.remove_current();
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_multicast)]
mod tests {
    use super::*;

    /// Counts joins and leaves; joins fail while `broken`.
    struct Log {
        joins: u32,
        leaves: u32,
        broken: bool,
    }

    impl Membership for Log {
        fn join(&mut self, _group: Gid) -> Result {
            self.joins += 1;
            if self.broken {
                return Err(EAGAIN);
            }
            Ok(())
        }

        fn leave(&mut self, _group: Gid) {
            self.leaves += 1;
        }
    }

    fn log(broken: bool) -> Log {
        Log {
            joins: 0,
            leaves: 0,
            broken,
        }
    }

    fn group(n: u8) -> Gid {
        Gid::from_ipv4([239, 0, 0, n])
    }

    #[test]
    fn joins_once_and_leaves_once() {
        let (mut groups, mut log) = (Groups::default(), log(false));
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
        let (mut groups, mut log) = (Groups::default(), log(true));
        let wanted = [group(1)];
        // (time of the call, joins tried by then, next try)
        for (now, joins, next) in [
            (0, 1, 1),
            (0, 1, 1),
            (1, 2, 3),
            (2, 2, 3),
            (3, 3, 7),
            (7, 4, 15),
            (15, 5, 31),
            (31, 6, 47),
            (47, 7, 63),
        ] {
            assert_eq!(groups.reconcile(&wanted, now, &mut log), Ok(Some(next)));
            assert_eq!(log.joins, joins);
            assert!(!groups.is_member(&group(1)));
        }
        log.broken = false;
        assert_eq!(groups.reconcile(&wanted, 63, &mut log), Ok(None));
        assert!(groups.is_member(&group(1)));
    }

    #[test]
    fn never_joined_is_not_left() {
        let (mut groups, mut log) = (Groups::default(), log(true));
        assert_eq!(groups.reconcile(&[group(1)], 0, &mut log), Ok(Some(1)));
        groups.leave_all(&mut log);
        assert_eq!(log.leaves, 0);
    }
}
