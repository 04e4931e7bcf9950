// SPDX-License-Identifier: GPL-2.0-only

//! Flow control: queues of the stack that stop for want of slots in a send ring, and wake.

use super::offload::SEGMENTS;
use crate::net::queue::Queue;

/// The share of a ring that must be free before a stopped queue is woken.
pub(super) const WAKE_SHARE: u32 = 4;

/// A queue of the stack that can be stopped and woken.
pub(super) trait Stoppable {
    /// Tells the stack to send no more on this queue.
    fn stop(&self);

    /// Lets the stack send again, if it was stopped.
    fn wake(&self);
}

impl Stoppable for Queue<'_> {
    #[inline]
    fn stop(&self) {
        Queue::stop(self);
    }

    #[inline]
    fn wake(&self) {
        Queue::wake(self);
    }
}

/// Whether the stack was told to stop. Read and written with the lock of the stack's queue held.
pub(super) struct Stopped(bool);

impl Stopped {
    /// Returns the state of a queue that may send.
    pub(super) const fn new() -> Self {
        Self(false)
    }

    /// Returns whether the stack was told to stop.
    #[inline]
    pub(super) fn get(&self) -> bool {
        self.0
    }

    /// Stops `queue`, and notes that.
    #[inline]
    pub(super) fn stop(&mut self, queue: &impl Stoppable) {
        queue.stop();
        self.0 = true;
    }

    /// Wakes `queue` if it was stopped.
    #[inline]
    pub(super) fn wake(&mut self, queue: &impl Stoppable) {
        if self.0 {
            self.0 = false;
            queue.wake();
        }
    }
}

/// Returns whether a ring with `free` slots may be too full for the next packet of the stack, which
/// takes [`SEGMENTS`] slots where it is cut here.
#[inline(always)]
pub(super) fn is_short(free: u32) -> bool {
    free < SEGMENTS
}

/// Returns whether a ring of `capacity` slots has enough of them free for a stopped queue to go on.
#[inline]
pub(super) fn is_roomy(free: u32, capacity: u32) -> bool {
    free >= SEGMENTS.max(capacity / WAKE_SHARE)
}

#[kernel::prelude::kunit_tests(oxib_stopped)]
mod tests {
    use core::cell::Cell;

    use super::*;

    /// Counts of the calls to the stack.
    #[derive(Default)]
    struct Calls {
        stops: Cell<u32>,
        wakes: Cell<u32>,
    }

    impl Stoppable for Calls {
        fn stop(&self) {
            self.stops.set(self.stops.get() + 1);
        }

        fn wake(&self) {
            self.wakes.set(self.wakes.get() + 1);
        }
    }

    #[test]
    fn a_stopped_queue_is_woken_once() {
        let (calls, mut stopped) = (Calls::default(), Stopped::new());
        stopped.wake(&calls);
        assert_eq!(calls.wakes.get(), 0);
        stopped.stop(&calls);
        assert!(stopped.get());
        assert_eq!((calls.stops.get(), calls.wakes.get()), (1, 0));
        stopped.wake(&calls);
        assert!(!stopped.get());
        stopped.wake(&calls);
        assert_eq!((calls.stops.get(), calls.wakes.get()), (1, 1));
    }

    #[test]
    fn the_longest_packet_fits_until_a_queue_is_stopped() {
        assert!(!is_short(SEGMENTS));
        assert!(is_short(SEGMENTS - 1));
    }

    #[test]
    fn a_queue_goes_on_with_a_share_of_the_ring_and_room_for_the_longest_packet() {
        let long = SEGMENTS * WAKE_SHARE * 2;
        assert!(!is_roomy(long / WAKE_SHARE - 1, long));
        assert!(is_roomy(long / WAKE_SHARE, long));
        assert!(!is_roomy(SEGMENTS - 1, SEGMENTS));
        assert!(is_roomy(SEGMENTS, SEGMENTS));
        // What wakes a queue does not stop it again before a packet was sent.
        assert!(!is_short(SEGMENTS.max(long / WAKE_SHARE)));
    }
}
