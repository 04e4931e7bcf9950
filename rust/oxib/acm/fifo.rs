// SPDX-License-Identifier: GPL-2.0-only

//! A queue for exchanges and searches that wait for their turn.

use kernel::prelude::*;

/// A first-in, first-out queue.
pub(crate) struct Fifo<T> {
    incoming: KVec<T>,
    /// Items that came before those, in the opposite order.
    outgoing: KVec<T>,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self {
            incoming: KVec::new(),
            outgoing: KVec::new(),
        }
    }
}

impl<T> Fifo<T> {
    /// Adds something at the end; gives it back if there is no memory. Does not sleep.
    pub(crate) fn push(&mut self, item: T) -> core::result::Result<(), T> {
        if self.incoming.reserve(1, GFP_ATOMIC).is_err() {
            return Err(item);
        }
        self.incoming
            .push_within_capacity(item)
            .map_err(|error| error.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.incoming.is_empty() && self.outgoing.is_empty()
    }

    /// Takes the oldest item.
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.outgoing.is_empty() {
            core::mem::swap(&mut self.incoming, &mut self.outgoing);
            self.outgoing.reverse();
        }
        self.outgoing.pop()
    }
}

#[kernel::prelude::kunit_tests(oxib_acm_fifo)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out() {
        let mut fifo = Fifo::default();
        for n in 0..3 {
            assert_eq!(fifo.push(n), Ok(()));
        }
        assert_eq!(fifo.pop(), Some(0));
        assert_eq!(fifo.push(3), Ok(()));
        for n in 1..4 {
            assert_eq!(fifo.pop(), Some(n));
        }
        assert_eq!(fifo.pop(), None);
    }
}
