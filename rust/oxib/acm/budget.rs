// SPDX-License-Identifier: GPL-2.0-only

//! Budgets for queries to the subnet administrator (SA) that the port's own node does not ask for.
//!
//! Any node may tell all others at once that a neighbour is elsewhere. Each node that
//! looks for itself asks the SA, so one packet costs the SA as many queries as there are nodes.

/// A rate at which something may be done.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    /// Number of times at once.
    pub(crate) most: u32,
    /// Milliseconds after which there may be one more.
    pub(crate) every: u64,
}

/// The rate at which neighbours are looked for that are reported to have moved.
pub(crate) const MOVE_HINTS: Rate = Rate {
    most: 8,
    every: 30_000,
};

/// The rate at which a port looks for paths that are stale, or were looked for in vain.
pub(crate) const STALE_PATHS: Rate = Rate {
    most: 8,
    every: 125,
};

/// The rate at which a port finds out whether there is an SA, after refusals.
pub(crate) const SA_CHECKS: Rate = Rate {
    most: 1,
    every: 1000,
};

/// Longest time until one is followed up, in milliseconds: not all nodes ask at the same moment.
pub(crate) const SPREAD: u32 = 500;

/// Rest of a rate (a token bucket).
#[derive(Clone, Copy)]
pub(crate) struct Left {
    left: u32,
    /// Time up to which the rate is credited, in milliseconds.
    since: u64,
}

impl Left {
    /// Creates a full bucket.
    pub(crate) const fn new(rate: Rate) -> Self {
        Self {
            left: rate.most,
            since: 0,
        }
    }

    /// Takes one of `rate`, if one is left at time `now` (milliseconds).
    pub(crate) fn take(&mut self, rate: Rate, now: u64) -> bool {
        let added = now.saturating_sub(self.since) / rate.every;
        self.since += added * rate.every;
        let added = u32::try_from(added).unwrap_or(rate.most).min(rate.most);
        self.left = (self.left + added).min(rate.most);
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        true
    }
}

/// Rest of a port's queries for one purpose.
pub(crate) struct Budget {
    rate: Rate,
    left: Left,
}

impl Budget {
    /// Creates a budget of which all is left.
    pub(crate) const fn new(rate: Rate) -> Self {
        Self {
            rate,
            left: Left::new(rate),
        }
    }

    /// Takes one, if one is left at time `now` (milliseconds).
    pub(crate) fn take(&mut self, now: u64) -> bool {
        self.left.take(self.rate, now)
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(oxib_acm_budget))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    const MOST: u32 = MOVE_HINTS.most;
    const EVERY: u64 = MOVE_HINTS.every;

    #[test]
    fn it_ends_and_comes_back() {
        let (mut budget, now) = (Budget::new(MOVE_HINTS), 1_000_000);
        for _ in 0..MOST {
            assert!(budget.take(now));
        }
        assert!(!budget.take(now));
        assert!(!budget.take(now + 1));
        assert!(budget.take(now + EVERY));
        assert!(!budget.take(now + EVERY));
        // In half a minute and another one there are two, whenever they are taken.
        assert!(budget.take(now + 3 * EVERY));
        assert!(budget.take(now + 3 * EVERY));
        assert!(!budget.take(now + 3 * EVERY));
    }

    #[test]
    fn it_does_not_grow_without_bound() {
        let mut budget = Budget::new(MOVE_HINTS);
        let later = 1 << 60;
        let taken = (0..100).filter(|_| budget.take(later)).count();
        assert_eq!(taken, MOST as usize);
    }

    #[test]
    fn a_clock_that_goes_back_adds_nothing() {
        let mut budget = Budget::new(MOVE_HINTS);
        for _ in 0..MOST {
            assert!(budget.take(1_000_000));
        }
        assert!(!budget.take(0));
    }
}
