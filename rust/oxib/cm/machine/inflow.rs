// SPDX-License-Identifier: GPL-2.0-only

//! The messages that wait in a lane, and the share of them that one sender has.
//!
//! Messages may come faster than consumers take them, and a message does not tell whether its
//! sender means it. So a lane has room for a number of them, and a sender has at most as much of
//! it as is left for others: one sender alone half, two a third each. A message for which there
//! is no room is dropped, as if the network had lost it: a sender that means it repeats it.
//!
//! While only [a few](FREE) wait, which is nearly always, no sender is counted.

/// The number of messages that are let in without a look at their senders.
pub const FREE: u32 = 64;

/// The number of counts. Senders with hashes that meet have a share together.
const COUNTS: usize = 64;

/// The messages that wait in a lane. Senders are hashes, with a key that no other node knows.
#[derive(Debug)]
pub struct Inflow {
    most: u32,
    waiting: u32,
    counts: [u32; COUNTS],
}

impl Inflow {
    /// The inflow of an empty lane that has room for `most` messages.
    pub const fn new(most: u32) -> Inflow {
        Inflow {
            most,
            waiting: 0,
            counts: [0; COUNTS],
        }
    }

    /// Lets a message in, and tells whether there was room for it.
    pub fn admits(&mut self, sender: impl FnOnce() -> u32) -> bool {
        let left = self.most.saturating_sub(self.waiting);
        if self.waiting >= FREE {
            let count = self.counts.get_mut(sender() as usize % COUNTS);
            match count.filter(|count| **count < left) {
                Some(count) => *count += 1,
                None => return false,
            }
        } else if left == 0 {
            return false;
        }
        self.waiting += 1;
        true
    }

    /// Notes that all messages were taken out of the lane.
    pub fn clear(&mut self) {
        // Up to that number nobody was counted, so the counts are zero already.
        if self.waiting > FREE {
            self.counts = [0; COUNTS];
        }
        self.waiting = 0;
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(oxib_cm_inflow))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    const MOST: u32 = 1024;

    /// Messages of `sender` that are let in one after another.
    fn let_in(inflow: &mut Inflow, sender: u32) -> u32 {
        let mut count = 0;
        while count < 2 * MOST && inflow.admits(|| sender) {
            count += 1;
        }
        count
    }

    #[test]
    fn a_sender_leaves_room_for_others() {
        let mut inflow = Inflow::new(MOST);
        assert_eq!(let_in(&mut inflow, 1), FREE + (MOST - FREE) / 2);
        assert_eq!(let_in(&mut inflow, 2), (MOST - FREE) / 4);
        assert!(inflow.admits(|| 3));
    }

    #[test]
    fn there_is_no_more_than_there_is_room_for() {
        let mut inflow = Inflow::new(MOST);
        let all: u32 = (0..10 * MOST)
            .map(|sender| let_in(&mut inflow, sender))
            .sum();
        assert!((MOST / 2..=MOST).contains(&all));
        let mut small = Inflow::new(1);
        assert_eq!(let_in(&mut small, 1), 1);
    }

    #[test]
    fn an_empty_lane_has_room() {
        let mut inflow = Inflow::new(MOST);
        let first = let_in(&mut inflow, 1);
        inflow.clear();
        assert_eq!(let_in(&mut inflow, 1), first);
    }
}
