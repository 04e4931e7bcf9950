// SPDX-License-Identifier: GPL-2.0-only

//! Marks of connections that have received something.
//!
//! A receive completion says which queue pair it is of, as a number that is good for comparing
//! alone. A mark in a small table notes it: no lock, no reference, and nothing has to be there
//! still. Two queue pairs may share a mark, which at worst keeps an idle connection for longer.

use core::sync::atomic::{
    AtomicBool,
    Ordering, //
};

use kernel::prelude::*;

/// Marks; a power of two.
const MARKS: usize = 4096;

/// The table of marks.
pub(super) struct Activity(KVec<AtomicBool>);

impl Activity {
    /// Creates a table without marks.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        let mut marks = KVec::with_capacity(MARKS, GFP_KERNEL)?;
        for _ in 0..MARKS {
            marks.push(AtomicBool::new(false), GFP_KERNEL)?;
        }
        Ok(Self(marks))
    }

    fn mark(&self, queue_pair: usize) -> Option<&AtomicBool> {
        // Multiplicative hashing: the constant is 2^64 divided by the golden ratio.
        let mixed = (queue_pair as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0
            .get((mixed >> (64 - MARKS.trailing_zeros())) as usize)
    }

    /// Notes that a queue pair has received.
    #[inline]
    pub(super) fn note(&self, queue_pair: usize) {
        if let Some(mark) = self.mark(queue_pair) {
            // Most often it is there already, and the line stays clean.
            if !mark.load(Ordering::Relaxed) {
                mark.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Returns whether a queue pair has received since this was last asked.
    pub(super) fn take(&self, queue_pair: usize) -> bool {
        self.mark(queue_pair)
            .is_some_and(|mark| mark.swap(false, Ordering::Relaxed))
    }
}

#[kernel::prelude::kunit_tests(oxib_connected_activity)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_once() -> Result {
        let activity = Activity::new()?;
        let (one, other) = (0xffff_8880_0123_4000, 0xffff_8880_0123_4800);
        activity.note(one);
        activity.note(one);
        assert!(!activity.take(other));
        assert!(activity.take(one));
        assert!(!activity.take(one));
        Ok(())
    }

    #[test]
    fn neighbours_are_told_apart() -> Result {
        let activity = Activity::new()?;
        // Objects of one slab, 2 KiB each: most have a mark of their own.
        let queue_pairs = (0..256).map(|n| 0xffff_8880_0100_0000_usize + n * 2048);
        let mut taken = 0;
        for queue_pair in queue_pairs {
            activity.note(queue_pair);
            taken += u32::from(activity.take(queue_pair + 2048));
        }
        assert!(taken < 16);
        Ok(())
    }
}
