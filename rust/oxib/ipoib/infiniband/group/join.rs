// SPDX-License-Identifier: GPL-2.0-only

//! Requests to join groups: their answers, their turns, and the rounds in which they are made.

use core::sync::atomic::{
    AtomicUsize,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    ipoib::{
        infiniband::{
            answer,
            Port, //
        },
        interface::Interface, //
    },
    net::bh::SpinLockBh,
    rdma::sa::multicast::{
        Answer,
        Membership,
        Role,
        Watcher, //
    },
    wire::gid::Gid, //
};

/// Most joins at a time.
const WINDOW: usize = 16;

/// Most of them that are joins to send, which any program can cause: the stack's own joins do not
/// wait for all of those.
const SENDING_WINDOW: usize = 12;

/// Numbers of requests that are not answered.
#[derive(Default)]
pub(super) struct UnderWay {
    full: AtomicUsize,
    sending: AtomicUsize,
}

impl UnderWay {
    fn of(&self, role: Role) -> &AtomicUsize {
        match role {
            Role::Full => &self.full,
            Role::SendOnly => &self.sending,
        }
    }

    /// Returns whether one more request may begin. Requests begin with the groups' table locked.
    pub(super) fn has_turn(&self, role: Role) -> bool {
        // Relaxed: an end that is missed here has another look follow it.
        let sending = self.sending.load(Ordering::Relaxed);
        let all = sending + self.full.load(Ordering::Relaxed);
        all < WINDOW && (role == Role::Full || sending < SENDING_WINDOW)
    }
}

/// A share in [`UnderWay`], held from a request's beginning to its answer.
pub(super) struct Turn {
    port: Arc<Port>,
    role: Role,
}

impl Turn {
    pub(super) fn new(port: &Arc<Port>, role: Role) -> Self {
        let under_way = port.groups.under_way.of(role);
        under_way.fetch_add(1, Ordering::Relaxed);
        Self {
            port: port.clone(),
            role,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let under_way = self.port.groups.under_way.of(self.role);
        under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Rounds in which memberships are asked for, numbered from 1. A round begins with a request for
/// the broadcast group, and all other groups of the round are asked for like that one.
///
/// Events of the port end all memberships of a round, and `ib_sa` says so of each by itself, in
/// the order of the groups' GIDs: of most before the broadcast group. A group that is asked for
/// like the broadcast group of an earlier round is refused, or is made with parameters that
/// refuse all others.
pub(super) struct Rounds {
    /// The last round that has begun.
    begun: AtomicUsize,
    /// The last round of which a membership has ended from outside.
    ended: AtomicUsize,
}

impl Rounds {
    /// Creates a sequence without a round.
    pub(super) const fn new() -> Self {
        Self {
            begun: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        }
    }

    /// Begins a round and returns its number. Called with the groups' table locked.
    pub(super) fn begin(&self) -> usize {
        self.begun.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the number of the last round that has begun.
    pub(super) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Ends `round`. Any context.
    fn end(&self, round: usize) {
        // Relaxed: the lock of `settle` comes after it, and readers of the outcome take that lock.
        self.ended.fetch_max(round, Ordering::Relaxed);
    }

    /// Returns whether memberships of `round` can hold: no later round has begun, and the round
    /// has not ended.
    fn is_current(&self, round: usize) -> bool {
        round == self.begun() && round > self.ended.load(Ordering::Relaxed)
    }
}

/// Returns whether a membership that was asked for by the GID `joined_from` is to be left for one
/// by `source`, the present source GID. Without one there is nothing to join by.
pub(super) fn has_moved(joined_from: Gid, source: Option<Gid>) -> bool {
    source.is_some_and(|source| source != joined_from)
}

/// Outcome of a request.
pub(super) enum Outcome {
    /// The SA has not answered.
    UnderWay {
        /// Counts the request as under way until the answer.
        _turn: Turn,
    },
    /// The SA has answered.
    Is(Answer),
}

/// A request to join, which is told of its answer.
#[pin_data]
pub(super) struct Request {
    pub(super) interface: Arc<Interface>,
    pub(super) port: Arc<Port>,
    pub(super) group: Gid,
    /// The source GID when it was asked for.
    pub(super) joined_from: Gid,
    pub(super) role: Role,
    /// The round in which the membership is asked for.
    pub(super) round: usize,
    #[pin]
    pub(super) outcome: SpinLockBh<Outcome>,
}

impl Request {
    /// Returns the SA's answer, once there is one. A request of an earlier round has ended,
    /// whatever the answer is or will be, and one by another GID than the source GID once it is
    /// answered.
    pub(super) fn outcome(&self) -> Option<Answer> {
        let has_moved = has_moved(self.joined_from, self.port.source_gid());
        let mut outcome = self.outcome.lock();
        // Until it is answered, `ib_sa` would refuse one by another GID.
        let has_moved = has_moved && matches!(*outcome, Outcome::Is(_));
        if has_moved || !self.port.groups.rounds.is_current(self.round) {
            // Another request may have its turn.
            *outcome = Outcome::Is(Answer::Ended);
        }
        match *outcome {
            Outcome::UnderWay { .. } => None,
            Outcome::Is(answer) => Some(answer),
        }
    }

    /// Returns whether the port is a member by this request.
    pub(super) fn is_granted(&self) -> bool {
        matches!(self.outcome(), Some(Answer::Granted(_)))
    }

    fn settle(&self, answer: Answer) {
        *self.outcome.lock() = Outcome::Is(answer);
    }

    /// Checks that a granted membership is the one that was asked for; other answers stay as they
    /// are.
    fn checked(&self, answer: Answer) -> Answer {
        if let Answer::Granted(record) = answer {
            if let Err(wrong) = answer::check_group(&self.group, &record) {
                self.port.note_wrong(&self.interface, self.group, wrong);
                return Answer::Refused(EINVAL);
            }
        }
        answer
    }

    /// Takes the answer for something past.
    pub(super) fn forget(&self) {
        self.settle(Answer::Ended);
    }
}

impl Watcher for Request {
    fn answered(&self, answer: Answer) {
        if let Answer::Ended = answer {
            // Before anybody can see that this membership has ended, and ask for it.
            self.port.groups.rounds.end(self.round);
        }
        self.settle(self.checked(answer));
        if let (Role::SendOnly, Answer::Ended) = (self.role, answer) {
            // Its address handle is of no use without another one.
            self.interface.invalidate_destination(&self.group);
        }
        // Others may have waited for their turn.
        self.interface.kick();
        self.port.advance_soon();
    }
}

/// A request and what it is about.
pub(super) struct JoinRequest {
    pub(super) request: Arc<Request>,
    /// The request's, as long as the port is a member or wants to be.
    pub(super) membership: Arc<Membership>,
}

#[kernel::prelude::kunit_tests(oxib_infiniband_join)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_over_when_one_of_its_memberships_ends() {
        let rounds = Rounds::new();
        assert!(!rounds.is_current(0));
        let first = rounds.begin();
        assert!(rounds.is_current(first));
        // A group's membership ends before that of the broadcast group, which is asked for then.
        rounds.end(first);
        assert!(!rounds.is_current(first));
        let second = rounds.begin();
        assert_eq!(rounds.begun(), second);
        assert!(rounds.is_current(second) && !rounds.is_current(first));
        // The others of the first round end later.
        rounds.end(first);
        assert!(rounds.is_current(second));
        rounds.end(second);
        rounds.end(first);
        assert!(!rounds.is_current(second));
        // A round that begins again, though nothing was heard of an end.
        let third = rounds.begin();
        let fourth = rounds.begin();
        assert!(rounds.is_current(fourth) && !rounds.is_current(third));
    }

    #[test]
    fn memberships_follow_the_source_gid() {
        let gid = |guid| Gid::from_bytes([guid; 16]);
        for (source, expected) in [(Some(gid(1)), false), (Some(gid(2)), true), (None, false)] {
            assert_eq!(has_moved(gid(1), source), expected);
        }
    }

    #[test]
    fn joins_to_send_leave_room_for_others() {
        let under_way = UnderWay::default();
        // (full, to send; whether one more of each has its turn)
        for (full, sending, turns) in [
            (0, 0, (true, true)),
            (0, SENDING_WINDOW - 1, (true, true)),
            (0, SENDING_WINDOW, (true, false)),
            (WINDOW - SENDING_WINDOW, SENDING_WINDOW, (false, false)),
            (WINDOW - 1, 0, (true, true)),
            (WINDOW, 0, (false, false)),
        ] {
            under_way.of(Role::Full).store(full, Ordering::Relaxed);
            under_way
                .of(Role::SendOnly)
                .store(sending, Ordering::Relaxed);
            let turn = |role| under_way.has_turn(role);
            assert_eq!((turn(Role::Full), turn(Role::SendOnly)), turns);
        }
    }
}
