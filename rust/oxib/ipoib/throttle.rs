// SPDX-License-Identifier: GPL-2.0-only

//! A limit on the rate of an action for which there may be cause again and again.

/// A limit on the rate of an action, such as a line in the log. The action is allowed at the first
/// cause, at the next one after `FIRST` seconds, then after twice as long, and so on up to `MOST`
/// seconds.
#[derive(Clone, Copy, Default)]
pub(super) struct Throttle<const FIRST: u64, const MOST: u64> {
    /// Time before which the action is not allowed, in seconds.
    until: u64,
    /// The wait before that time, in seconds; 0 if the action was not allowed yet.
    wait: u64,
}

impl<const FIRST: u64, const MOST: u64> Throttle<FIRST, MOST> {
    /// Allows the action at time `now` (seconds), and makes the next one wait, or refuses it.
    /// Returns whether it is allowed.
    pub(super) fn allow(&mut self, now: u64) -> bool {
        if now < self.until {
            return false;
        }
        if now >= self.until + MOST {
            // A good while without a cause: this is another one.
            self.wait = 0;
        }
        self.wait = (2 * self.wait).clamp(FIRST, MOST);
        self.until = now + self.wait;
        true
    }
}

#[kernel::prelude::kunit_tests(oxib_throttle)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_allowed_less_and_less_often() {
        let mut throttle = Throttle::<10, 35>::default();
        for (now, is_allowed) in [
            (0, true),
            (9, false),
            (10, true),
            (29, false),
            (30, true),
            (64, false),
            (65, true),
            // After a good while it is another matter.
            (135, true),
            (144, false),
            (145, true),
        ] {
            assert_eq!(throttle.allow(now), is_allowed);
        }
    }
}
