// SPDX-License-Identifier: GPL-2.0-only

//! The arithmetic of a send ring: what is free, chained, posted and completed.
//!
//! Work requests get consecutive sequence numbers, which wrap. Three of them divide the ring:
//!
//! ```text
//!   tail            posted           head
//!    │ with the device │ chained, not  │ free …
//!    │                 │ yet posted    │
//! ```
//!
//! The last request of each posted chain alone is signalled; its completion stands for all before.

use core::ops::Range;

use super::cq::Status;

/// Positions in a ring of a power-of-two number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ring {
    capacity: u32,
    tail: u32,
    posted: u32,
    head: u32,
}

/// Sequence numbers from `start` up to `end`, wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

/// The fates of the requests that a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fates {
    /// Those that were carried out; they come before the others.
    pub(crate) sent: Span,
    /// Those that failed.
    pub(crate) lost: Span,
}

impl Span {
    /// Number of requests in the span.
    #[inline(always)]
    pub(crate) fn len(self) -> u32 {
        self.end.wrapping_sub(self.start)
    }

    /// Iterates over the sequence numbers of the span, oldest first.
    #[inline(always)]
    pub(crate) fn iter(self) -> impl Iterator<Item = u32> {
        let count: Range<u32> = 0..self.len();
        count.map(move |i| self.start.wrapping_add(i))
    }

    /// Returns the fates of the requests, of which the newest one's completion has that status, on
    /// a reliable connection.
    ///
    /// Requests end in order there, and each one that fails has a completion, asked for or not. So
    /// a failure is that of the newest one: those before it went well.
    #[inline(always)]
    pub(crate) fn fates(self, status: Status) -> Fates {
        let failed = match status {
            Status::Success => 0,
            Status::Flushed | Status::Failed(_) => self.len().min(1),
        };
        let middle = self.end.wrapping_sub(failed);
        Fates {
            sent: Self {
                start: self.start,
                end: middle,
            },
            lost: Self {
                start: middle,
                end: self.end,
            },
        }
    }
}

impl Ring {
    /// An empty ring; `None` if `capacity` is not a power of two.
    pub(crate) fn new(capacity: u32) -> Option<Self> {
        capacity.is_power_of_two().then_some(Self {
            capacity,
            tail: 0,
            posted: 0,
            head: 0,
        })
    }

    /// The slot of a sequence number.
    #[inline(always)]
    pub(crate) fn slot(&self, sequence: u32) -> usize {
        (sequence & (self.capacity - 1)) as usize
    }

    /// Number of slots that are free.
    #[inline(always)]
    pub(crate) fn free(&self) -> u32 {
        self.capacity - self.head.wrapping_sub(self.tail)
    }

    /// Number of slots, free or not; a power of two.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The requests chained and not posted.
    #[inline(always)]
    pub(crate) fn unposted(&self) -> Span {
        Span {
            start: self.posted,
            end: self.head,
        }
    }

    /// The sequence number that the next [`Self::push`] gives.
    #[inline(always)]
    pub(crate) fn next(&self) -> u32 {
        self.head
    }

    /// The sequence number of the next slot for the chain; `None` if the ring is full. It is taken
    /// by [`Self::push`].
    #[inline(always)]
    pub(crate) fn vacancy(&self) -> Option<u32> {
        (self.free() != 0).then_some(self.head)
    }

    /// Takes the slot that [`Self::vacancy`] named; nothing if the ring is full.
    #[inline(always)]
    pub(crate) fn push(&mut self) {
        if self.free() != 0 {
            self.head = self.head.wrapping_add(1);
        }
    }

    /// The chain went to the device: all of it.
    #[inline(always)]
    pub(crate) fn post(&mut self) {
        self.posted = self.head;
    }

    /// The device took `taken` requests of the chain and refused the rest, which is returned and
    /// is free again.
    pub(crate) fn refuse(&mut self, taken: u32) -> Span {
        let taken = core::cmp::min(taken, self.unposted().len());
        self.posted = self.posted.wrapping_add(taken);
        let refused = self.unposted();
        self.head = self.posted;
        refused
    }

    /// Takes the last `count` requests out of the chain again.
    pub(crate) fn withdraw(&mut self, count: u32) -> Span {
        let count = core::cmp::min(count, self.unposted().len());
        let end = self.head;
        self.head = self.head.wrapping_sub(count);
        Span {
            start: self.head,
            end,
        }
    }

    /// The device is done with `sequence` and all before it; returns those, which are free now.
    ///
    /// `None` if `sequence` is not with the device: a completion of an earlier life of the ring.
    #[inline(always)]
    pub(crate) fn complete(&mut self, sequence: u32) -> Option<Span> {
        let pending = self.posted.wrapping_sub(self.tail);
        let done = sequence.wrapping_sub(self.tail);
        if done >= pending {
            return None;
        }
        let span = Span {
            start: self.tail,
            end: sequence.wrapping_add(1),
        };
        self.tail = span.end;
        Some(span)
    }

    /// Forgets everything: returns what was chained or with the device.
    pub(crate) fn clear(&mut self) -> Span {
        let span = Span {
            start: self.tail,
            end: self.head,
        };
        self.tail = self.head;
        self.posted = self.head;
        span
    }

    /// Returns whether all requests before `sequence` are done.
    #[inline(always)]
    pub(crate) fn is_past(&self, sequence: u32) -> bool {
        self.tail.wrapping_sub(sequence) as i32 >= 0
    }
}

#[kernel::prelude::kunit_tests(oxib_ring)]
mod tests {
    use super::*;

    fn ring_at(capacity: u32, start: u32) -> Ring {
        Ring {
            capacity,
            tail: start,
            posted: start,
            head: start,
        }
    }

    #[test]
    fn capacity_is_a_power_of_two() {
        assert!(Ring::new(0).is_none());
        assert!(Ring::new(3).is_none());
        assert!(Ring::new(4).is_some());
    }

    #[test]
    fn one_completion_ends_a_chain() {
        // Also across the wrap of the sequence numbers.
        for start in [0, 7, u32::MAX - 1] {
            let mut ring = ring_at(8, start);
            for _ in 0..5 {
                ring.push();
            }
            assert_eq!(ring.unposted().len(), 5);
            ring.post();
            assert_eq!(ring.unposted().len(), 0);
            assert_eq!(ring.free(), 3);
            let last = start.wrapping_add(4);
            assert_eq!(ring.complete(last).map(Span::len), Some(5));
            assert_eq!(ring.free(), 8);
        }
    }

    #[test]
    fn a_failure_loses_the_newest_request_alone() {
        let (success, flushed, failed) = (Status::Success, Status::Flushed, Status::Failed(12));
        for (start, end, status, sent, lost) in [
            (0, 3, success, 3, 0),
            (0, 3, flushed, 2, 1),
            (0, 3, failed, 2, 1),
            (5, 6, success, 1, 0),
            (5, 6, flushed, 0, 1),
            (5, 5, success, 0, 0),
            (5, 5, failed, 0, 0),
            // Also across the wrap of the sequence numbers.
            (u32::MAX, 0, failed, 0, 1),
            (u32::MAX, 2, success, 3, 0),
            (u32::MAX, 2, failed, 2, 1),
        ] {
            let fates = Span { start, end }.fates(status);
            assert_eq!((fates.sent.len(), fates.lost.len()), (sent, lost));
            assert_eq!((fates.sent.start, fates.lost.end), (start, end));
            assert_eq!(fates.sent.end, fates.lost.start);
        }
    }

    #[test]
    fn full_ring_takes_no_more() {
        let mut ring = ring_at(4, u32::MAX);
        for i in 0..4u32 {
            assert_eq!(ring.vacancy(), Some(u32::MAX.wrapping_add(i)));
            ring.push();
        }
        assert_eq!(ring.vacancy(), None);
        ring.push();
        assert_eq!(ring.free(), 0);
    }

    #[test]
    fn stray_completions_change_nothing() {
        let mut ring = ring_at(8, 100);
        ring.push();
        ring.push();
        ring.post();
        ring.push();
        let before = ring;
        // Before the tail, chained only, never given.
        for stray in [99, 102, 103, 50, 100u32.wrapping_sub(8)] {
            assert_eq!(ring.complete(stray), None);
            assert_eq!(ring, before);
        }
        assert_eq!(ring.complete(101).map(Span::len), Some(2));
        assert_eq!(ring.complete(101), None);
    }

    #[test]
    fn refused_requests_are_free_again() {
        let mut ring = ring_at(8, 0);
        for _ in 0..6 {
            ring.push();
        }
        let refused = ring.refuse(4);
        assert_eq!(refused.len(), 2);
        assert_eq!(refused.iter().next(), Some(4));
        assert_eq!(ring.free(), 4);
        assert_eq!(ring.vacancy(), Some(4));
        // More than there are is all of them.
        let mut ring = ring_at(8, 0);
        ring.push();
        assert_eq!(ring.refuse(9).len(), 0);
    }

    #[test]
    fn what_is_withdrawn_was_never_there() {
        let mut ring = ring_at(8, u32::MAX);
        ring.push();
        ring.post();
        ring.push();
        let before = ring;
        ring.push();
        ring.push();
        let span = ring.withdraw(2);
        assert_eq!((span.len(), span.iter().next()), (2, Some(1)));
        assert_eq!(ring, before);
        // What is with the device stays there.
        assert_eq!(ring.withdraw(5).len(), 1);
        assert_eq!(ring.free(), 7);
        assert_eq!(ring.complete(u32::MAX).map(Span::len), Some(1));
    }

    #[test]
    fn clear_returns_all() {
        let mut ring = ring_at(8, u32::MAX - 2);
        for _ in 0..3 {
            ring.push();
        }
        ring.post();
        ring.push();
        assert_eq!(ring.clear().len(), 4);
        assert_eq!(ring.free(), 8);
        assert_eq!(ring.unposted().len(), 0);
    }

    #[test]
    fn past_is_relative() {
        let mut ring = ring_at(8, u32::MAX);
        ring.push();
        ring.push();
        let mark = ring.next();
        ring.post();
        assert!(!ring.is_past(mark));
        ring.complete(u32::MAX);
        assert!(!ring.is_past(mark));
        ring.complete(0);
        assert!(ring.is_past(mark));
    }
}
