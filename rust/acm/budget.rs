// SPDX-License-Identifier: GPL-2.0-only

//! How often strangers may have us ask the subnet administrator (SA).
//!
//! Anybody may say of a neighbour that it is elsewhere, to all nodes at once. Each node that looks for
//! itself asks the SA, so one packet costs the SA as many queries as there are nodes.

/// Doubts that are followed up at once.
const MOST: u32 = 8;

/// Milliseconds after which there may be one more.
const EVERY: u64 = 30_000;

/// Longest time until one is followed up, in milliseconds: not all nodes ask at the same moment.
pub(crate) const SPREAD: u32 = 500;

/// What is left to strangers of a port's queries (a token bucket).
pub(crate) struct Budget {
    left: u32,
    /// When the last one was added.
    since: u64,
}

impl Budget {
    /// All are left.
    pub(crate) const fn new() -> Self {
        Self {
            left: MOST,
            since: 0,
        }
    }

    /// Takes one, if one is left at time `now` (milliseconds).
    pub(crate) fn take(&mut self, now: u64) -> bool {
        let added = now.saturating_sub(self.since) / EVERY;
        self.since += added * EVERY;
        let added = u32::try_from(added).unwrap_or(MOST).min(MOST);
        self.left = (self.left + added).min(MOST);
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        true
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(oxib_acm_budget))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn it_ends_and_comes_back() {
        let (mut budget, now) = (Budget::new(), 1_000_000);
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
        let mut budget = Budget::new();
        let later = 1 << 60;
        let taken = (0..100).filter(|_| budget.take(later)).count();
        assert_eq!(taken, MOST as usize);
    }

    #[test]
    fn a_clock_that_goes_back_adds_nothing() {
        let mut budget = Budget::new();
        for _ in 0..MOST {
            assert!(budget.take(1_000_000));
        }
        assert!(!budget.take(0));
    }
}
