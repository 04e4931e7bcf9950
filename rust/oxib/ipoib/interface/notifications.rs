// SPDX-License-Identifier: GPL-2.0-only

//! Rounds in which the neighbours are notified which receive queue is theirs.
//!
//! The stack probes each neighbour, which answers. A round goes through the neighbours in steps, as
//! probes and answers of all of them at once would fill the rings.

use kernel::{
    sync::Arc,
    time::msecs_to_jiffies, //
};

use super::{
    works::NOTIFY_WORK,
    Interface, //
};
use crate::net::rtnl::Rtnl;

/// Time until the neighbours are notified, after all heard of the main queue, in milliseconds.
const DELAY_MS: u32 = 10;

/// Time between two rounds, in milliseconds: each asks all neighbours, and any program can have
/// one begin by an announcement. The stack repeats a request that nobody answers as often as that,
/// so all peers have their number most of the time while it does.
const INTERVAL_MS: u32 = 1_000;

/// Time that a round takes for each neighbour at least, in milliseconds: 250 packets a second,
/// however many neighbours there are.
const EACH_MS: u32 = 4;

/// Number of neighbours that are notified in one step: as many probes and as many answers find room
/// in the shortest rings.
const STEP: u32 = 64;

/// Most steps of a round, so that the last one comes long before a queue that is out of use goes.
/// With more than 4096 neighbours the steps are larger.
const MOST_STEPS: u32 = 64;

/// A round that has begun.
#[derive(Clone, Copy)]
struct Round {
    /// Time of its beginning, in milliseconds.
    at: u64,
    /// Number of neighbours then.
    neighbours: u32,
}

impl Round {
    /// Returns the number of steps that the round takes.
    fn steps(self) -> u32 {
        self.neighbours.div_ceil(STEP).clamp(1, MOST_STEPS)
    }

    /// Returns the milliseconds from `now` until another round may begin.
    fn wait(self, now: u64) -> u32 {
        let interval = self.neighbours.saturating_mul(EACH_MS).max(INTERVAL_MS);
        u64::from(interval).saturating_sub(now.saturating_sub(self.at)) as u32
    }
}

/// The rounds of an interface. Times are in milliseconds.
#[derive(Default)]
pub(super) struct Notifications {
    /// The last round, which may go on.
    last: Option<Round>,
    /// The next step of that round, if it goes on.
    step: Option<u32>,
    /// Another round is to follow on the one that goes on.
    again: bool,
}

impl Notifications {
    /// Returns the milliseconds from `now` until a round may begin if none goes on.
    fn delay(&self, now: u64) -> u32 {
        self.last.map_or(0, |last| last.wait(now)).max(DELAY_MS)
    }

    /// Asks for a round at time `now`. Returns the milliseconds until it; `None` if it follows on
    /// the one that goes on.
    fn ask(&mut self, now: u64) -> Option<u32> {
        if self.step.is_some() {
            self.again = true;
            return None;
        }
        Some(self.delay(now))
    }

    /// Begins a round at time `now`, of so many neighbours. Returns its first step, and the number
    /// of its steps.
    fn begin(&mut self, now: u64, neighbours: u32) -> (u32, u32) {
        let round = Round {
            at: now,
            neighbours,
        };
        *self = Self {
            last: Some(round),
            step: Some(0),
            again: false,
        };
        (0, round.steps())
    }

    /// Returns the next step of the round that goes on, and the number of its steps.
    fn next(&self) -> Option<(u32, u32)> {
        Some((self.step?, self.last?.steps()))
    }

    /// Ends a step at time `now`. Returns the milliseconds until the next one, of this round or of
    /// another; `None` if there is none.
    fn end_step(&mut self, now: u64) -> Option<u32> {
        let (step, steps) = self.next()?;
        self.step = Some(step + 1).filter(|next| *next < steps);
        match self.step {
            Some(_) => Some(STEP * EACH_MS),
            None => core::mem::take(&mut self.again).then(|| self.delay(now)),
        }
    }

    /// Breaks off the round that goes on.
    fn stop(&mut self) {
        self.step = None;
        self.again = false;
    }
}

impl Interface {
    /// Notifies the neighbours soon which receive queue is theirs: at once, but not again and
    /// again.
    pub(in crate::ipoib) fn notify_neighbours_soon(self: &Arc<Self>) {
        let mut notifications = self.notifications.lock();
        if let Some(delay) = notifications.ask(self.now_ms()) {
            self.schedule::<NOTIFY_WORK>(msecs_to_jiffies(delay));
        }
    }

    /// Notifies the neighbours which receive queue is theirs, from now on, or once more after the
    /// round that goes on.
    pub(in crate::ipoib) fn notify_neighbours(self: &Arc<Self>, rtnl: &mut Rtnl) {
        let delay = self.notifications.lock().ask(self.now_ms());
        if delay.is_some() {
            self.notify_next(rtnl);
        }
    }

    /// Notifies the neighbours of the next step, or of the first one of a new round.
    pub(super) fn notify_next(self: &Arc<Self>, rtnl: &mut Rtnl) {
        if !self.device.has_carrier() {
            // All are notified when it comes.
            return self.notifications.lock().stop();
        }
        // The RTNL is held: nothing else begins a round or takes a step meanwhile.
        let next = self.notifications.lock().next();
        let step = match next {
            Some(step) => step,
            None => {
                let neighbours = self.device.count_neighbours(rtnl);
                let mut notifications = self.notifications.lock();
                notifications.begin(self.now_ms(), neighbours)
            }
        };
        self.device.verify_neighbours(rtnl, step);
        let mut notifications = self.notifications.lock();
        let delay = notifications.end_step(self.now_ms());
        if let Some(delay) = delay.filter(|_| self.is_alive()) {
            // The work may wait for the time of a round that was asked for before this one. The
            // lock keeps others from scheduling it meanwhile.
            self.works
                .reschedule::<_, NOTIFY_WORK>(self, msecs_to_jiffies(delay));
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_notifications)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_notified_at_once_and_then_now_and_then() {
        let last = |at, neighbours| Some(Round { at, neighbours });
        for (now, last, delay) in [
            (0, None, DELAY_MS),
            (9_000, last(1_000, 200), DELAY_MS),
            (1_999, last(1_000, 200), DELAY_MS),
            (1_000, last(1_000, 200), INTERVAL_MS),
            (1_400, last(1_000, 200), 600),
            // The clock of another CPU.
            (1_000, last(1_001, 200), INTERVAL_MS),
            (9_000, last(1_000, 10_000), 32_000),
            (9_000, last(1_000, u32::MAX), u32::MAX - 8_000),
        ] {
            let mut notifications = Notifications {
                last,
                ..Notifications::default()
            };
            assert_eq!(notifications.ask(now), Some(delay));
        }
    }

    #[test]
    fn a_round_takes_as_many_steps_as_there_are_neighbours_for() {
        for (neighbours, steps) in [
            (0, 1),
            (1, 1),
            (STEP, 1),
            (STEP + 1, 2),
            (STEP * MOST_STEPS, MOST_STEPS),
            (u32::MAX, MOST_STEPS),
        ] {
            let mut notifications = Notifications::default();
            assert_eq!(notifications.begin(0, neighbours), (0, steps));
            for step in 0..steps {
                assert_eq!(notifications.next(), Some((step, steps)));
                let is_last = step + 1 == steps;
                assert_eq!(notifications.end_step(0).is_none(), is_last);
            }
            assert_eq!(notifications.next(), None);
        }
    }

    #[test]
    fn what_is_asked_for_in_a_round_follows_on_it() {
        let mut notifications = Notifications::default();
        notifications.begin(0, 2 * STEP);
        assert_eq!(notifications.ask(1), None);
        assert_eq!(notifications.end_step(1), Some(STEP * EACH_MS));
        assert_eq!(notifications.end_step(300), Some(INTERVAL_MS - 300));
        assert_eq!(notifications.next(), None);
        // Once.
        notifications.begin(1_000, 1);
        assert_eq!(notifications.end_step(1_000), None);
        // Not after one that was broken off.
        notifications.begin(2_000, 2 * STEP);
        assert_eq!(notifications.ask(2_000), None);
        notifications.stop();
        assert_eq!(
            (notifications.next(), notifications.end_step(2_000)),
            (None, None)
        );
    }
}
