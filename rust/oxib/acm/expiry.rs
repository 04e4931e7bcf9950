// SPDX-License-Identifier: GPL-2.0-only

//! Forgetting entries that are too old.
//!
//! Look-ups ignore them from the second on in which they end; this gives their memory back. A table
//! is searched when the first of its entries ends, but the larger it is, the less often.

use kernel::{
    sync::Arc,
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

use super::{
    cache::{
        Cache,
        State, //
    },
    Counter, //
};
use crate::{
    counters::seconds,
    work, //
};

/// Time of the next expiry run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) enum Plan {
    /// No run is planned, as no entry ends.
    #[default]
    Never,
    /// A run is planned for this second ([`seconds`]).
    At(u32),
}

/// Entries that a look may cost for each second that passes between two of them.
const ENTRIES_PER_SECOND: usize = 20_000;

/// The longest time to the next look, in seconds, so that the timer's number of milliseconds is
/// one.
const LONGEST: u32 = 86_400;

/// Returns the second of the next run, if the first entry ends in second `first`.
fn due(first: u32, now: u32, entries: usize) -> u32 {
    let rest = 1 + (entries / ENTRIES_PER_SECOND) as u32;
    let wait = first.saturating_sub(now).clamp(rest.min(LONGEST), LONGEST);
    now.saturating_add(wait)
}

impl Cache {
    /// Plans a run for an entry that ends in second `ends`, with the lock held.
    pub(super) fn expect_end(self: &Arc<Self>, state: &mut State, ends: u32, now: u32) {
        let due = due(ends, now, self.entries().len());
        match state.plan {
            Plan::At(planned) if planned <= due => {}
            _ => self.plan(state, due, now),
        }
    }

    fn plan(self: &Arc<Self>, state: &mut State, due: u32, now: u32) {
        state.plan = Plan::At(due);
        // A work that waits cannot be queued for an earlier time: it is taken out first.
        work::cancel(self);
        let delay = msecs_to_jiffies(due.saturating_sub(now).saturating_mul(1000));
        // Refused if the namespace is leaving.
        let _ = work::shared().enqueue_delayed(self.clone(), delay);
    }

    /// Takes out what is too old.
    pub(super) fn expire(self: &Arc<Self>) {
        let now = seconds();
        let mut first: Option<u32> = None;
        let mut writer = self.entries().write();
        writer.retain(
            |_, stored| match stored.ends_at() {
                None => true,
                Some(ends) if ends > now => {
                    first = Some(first.map_or(ends, |first| first.min(ends)));
                    true
                }
                Some(_) => false,
            },
            |state, gone| {
                self.counters().count(Counter::Expired);
                self.removed(state, gone);
            },
        );
        let state = writer.state();
        // This run is over: as a plan it would keep `expect_end` from the next one.
        state.plan = Plan::Never;
        if let Some(first) = first {
            self.expect_end(state, first, now);
        }
    }
}

impl WorkItem for Cache {
    type Pointer = Arc<Cache>;

    fn run(this: Arc<Cache>) {
        this.expire();
    }
}

#[kernel::prelude::kunit_tests(oxib_acm_expiry)]
mod tests {
    use super::*;

    #[test]
    fn large_tables_are_looked_through_less_often() {
        for (first, now, entries, expected) in [
            (110, 100, 5, 110),
            (100, 100, 5, 101),
            (90, 100, 5, 101),
            (101, 100, 1_000_000, 151),
            (1000, 100, 1_000_000, 1000),
            (u32::MAX, 100, 5, 100 + LONGEST),
        ] {
            assert_eq!(due(first, now, entries), expected);
        }
    }
}
