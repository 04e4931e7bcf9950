// SPDX-License-Identifier: GPL-2.0-only

//! Marks of connections that have received something, and the ports that made these connections.
//!
//! A receive completion says which queue pair it is of, as a number that is good for comparing
//! alone. A mark in a small table notes it: no lock, no reference, and nothing has to be there
//! still. Two queue pairs may share a mark, which at worst keeps an idle connection for longer: the
//! time at which a mark was last taken stays beside it, for the other one. They share a source
//! then, too: that of the connection made last.

use core::sync::atomic::{
    AtomicBool,
    AtomicU64,
    Ordering, //
};

use kernel::prelude::*;

use crate::acm::sources::Source;

/// Marks; a power of two.
const MARKS: usize = 4096;

/// The tables of marks, of their times, and of sources.
pub(super) struct Activity {
    marks: KVec<AtomicBool>,
    /// Times at which the marks were last taken, in seconds and plus one; zero if never.
    last_seen: KVec<AtomicU64>,
    /// The numbers of the [`Source`]s.
    sources: KVec<AtomicU64>,
}

impl Activity {
    /// Creates tables without marks and sources.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        let mut marks = KVec::with_capacity(MARKS, GFP_KERNEL)?;
        let mut last_seen = KVec::with_capacity(MARKS, GFP_KERNEL)?;
        let mut sources = KVec::with_capacity(MARKS, GFP_KERNEL)?;
        for _ in 0..MARKS {
            marks.push(AtomicBool::new(false), GFP_KERNEL)?;
            last_seen.push(AtomicU64::new(0), GFP_KERNEL)?;
            sources.push(AtomicU64::new(Source::UNKNOWN.get()), GFP_KERNEL)?;
        }
        Ok(Self {
            marks,
            last_seen,
            sources,
        })
    }

    /// Returns the place of a queue pair in all tables.
    fn place(queue_pair: usize) -> usize {
        // Multiplicative hashing: the constant is 2^64 divided by the golden ratio.
        let mixed = (queue_pair as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - MARKS.trailing_zeros())) as usize
    }

    /// Notes that a queue pair has received.
    #[inline]
    pub(super) fn note(&self, queue_pair: usize) {
        if let Some(mark) = self.marks.get(Self::place(queue_pair)) {
            // Most often it is there already, and the line stays clean.
            if !mark.load(Ordering::Relaxed) {
                mark.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Takes the mark of a queue pair at time `now`, in seconds. Returns the time at which the mark
    /// was last there to be taken, or `None` if it never was.
    ///
    /// Callers take turns, by the lock of the session's members: one that finds no mark finds the
    /// time of the one that has taken it.
    pub(super) fn take(&self, queue_pair: usize, now: u64) -> Option<u64> {
        let place = Self::place(queue_pair);
        let (mark, last_seen) = (self.marks.get(place)?, self.last_seen.get(place)?);
        if mark.swap(false, Ordering::Relaxed) {
            // Callers may have read the clock in another order than that of their turns.
            last_seen.fetch_max(now.saturating_add(1), Ordering::Relaxed);
        }
        last_seen.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Notes that `source` has made the connection of a queue pair.
    pub(super) fn set_source(&self, queue_pair: usize, source: Source) {
        if let Some(place) = self.sources.get(Self::place(queue_pair)) {
            place.store(source.get(), Ordering::Relaxed);
        }
    }

    /// Returns the port that has made the connection of a queue pair.
    pub(super) fn source(&self, queue_pair: usize) -> Source {
        let number = self.sources.get(Self::place(queue_pair));
        number.map_or(Source::UNKNOWN, |number| {
            Source::from_number(number.load(Ordering::Relaxed))
        })
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
        assert_eq!(activity.take(other, 0), None);
        assert_eq!(activity.take(one, 0), Some(0));
        assert_eq!(activity.take(one, 1), Some(0));
        Ok(())
    }

    #[test]
    fn a_mark_counts_for_all_that_share_it() -> Result {
        let activity = Activity::new()?;
        let one = 0xffff_8880_0123_4000_usize;
        let mut others = (1..16 * MARKS).map(|n| one + n * 2048);
        let is_shared = |other: &usize| Activity::place(*other) == Activity::place(one);
        let other = others.find(is_shared).ok_or(EINVAL)?;
        // Whichever of the two receives and whichever is looked at first, both are in use.
        for (receives, first, second, now) in [
            (one, one, other, 10),
            (one, other, one, 20),
            (other, one, other, 30),
            (other, other, one, 40),
        ] {
            activity.note(receives);
            assert_eq!(activity.take(first, now), Some(now));
            assert_eq!(activity.take(second, now + 1), Some(now));
        }
        assert_eq!(activity.take(one, 50), Some(40));
        // A clock that was read before takes nothing back.
        activity.note(one);
        assert_eq!(activity.take(one, 39), Some(40));
        Ok(())
    }

    #[test]
    fn connections_have_the_sources_that_made_them() -> Result {
        let activity = Activity::new()?;
        let (one, other) = (0xffff_8880_0123_4000, 0xffff_8880_0123_4800);
        activity.set_source(one, Source::port(1, 0));
        assert_eq!(activity.source(other), Source::UNKNOWN);
        activity.set_source(other, Source::port(2, 0));
        assert_eq!(activity.source(one), Source::port(1, 0));
        // Another connection has the queue pair's memory now.
        activity.set_source(one, Source::port(3, 0));
        assert_eq!(activity.source(one), Source::port(3, 0));
        assert_eq!(activity.source(other), Source::port(2, 0));
        Ok(())
    }

    #[test]
    fn neighbours_are_told_apart() -> Result {
        let activity = Activity::new()?;
        // Objects of one slab, 2 KiB each: most have a mark of their own.
        let queue_pairs = (0..256).map(|n| 0xffff_8880_0100_0000_usize + n * 2048);
        let mut taken = 0;
        for (queue_pair, now) in queue_pairs.zip(0..) {
            activity.note(queue_pair);
            taken += u32::from(activity.take(queue_pair + 2048, now) == Some(now));
        }
        assert!(taken < 16);
        Ok(())
    }
}
