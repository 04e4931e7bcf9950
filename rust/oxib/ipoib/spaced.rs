// SPDX-License-Identifier: GPL-2.0-only

//! Something that there may be cause for again and again, and that is done ever less often then.

/// Turns of something that is done at the first cause, at the next one after `FIRST` seconds, then
/// after twice as long, and so on up to `MOST` seconds.
#[derive(Clone, Copy, Default)]
pub(super) struct Spaced<const FIRST: u64, const MOST: u64> {
    /// Time before which there is no turn, in seconds.
    until: u64,
    /// The wait before that time, in seconds; 0 if there was no turn yet.
    wait: u64,
}

impl<const FIRST: u64, const MOST: u64> Spaced<FIRST, MOST> {
    /// Takes a turn at time `now` (seconds). Returns whether there is one.
    pub(super) fn take(&mut self, now: u64) -> bool {
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

#[kernel::prelude::kunit_tests(oxib_spaced)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_less_and_less_often() {
        let mut spaced = Spaced::<10, 35>::default();
        for (now, has_turn) in [
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
            assert_eq!(spaced.take(now), has_turn);
        }
    }
}
