// SPDX-License-Identifier: GPL-2.0-only

//! A queue for exchanges and searches that wait for their turn.

use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    }, //
};

/// A first-in, first-out queue. Each item has an allocation of its own: thousands may wait, and
/// where nothing may sleep, there is often no memory for all of them in one piece.
pub(crate) struct Fifo<T> {
    /// The items, by number.
    items: RBTree<u64, T>,
    /// Number of the item that was added last.
    last: u64,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self {
            items: RBTree::new(),
            last: 0,
        }
    }
}

impl<T> Fifo<T> {
    /// Adds something at the end; gives it back if there is no memory. Does not sleep.
    pub(crate) fn push(&mut self, item: T) -> core::result::Result<(), T> {
        const {
            // With the number and the links of the tree it is less than a page.
            assert!(size_of::<T>() <= PAGE_SIZE / 2);
        }
        let Ok(node) = RBTreeNodeReservation::new(GFP_ATOMIC) else {
            return Err(item);
        };
        self.last += 1;
        self.items.insert(node.into_node(self.last, item));
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Takes the oldest item.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let (_, node) = self.items.cursor_front_mut()?.remove_current();
        let (_, item) = node.to_key_value();
        Some(item)
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

    #[test]
    fn more_than_a_page_waits_in_order() {
        let count = 2 * PAGE_SIZE / size_of::<usize>();
        let mut fifo = Fifo::default();
        for n in 0..count {
            assert_eq!(fifo.push(n), Ok(()));
        }
        for n in 0..count {
            assert_eq!(fifo.pop(), Some(n));
            assert_eq!(fifo.push(count + n), Ok(()));
        }
        for n in count..2 * count {
            assert!(!fifo.is_empty());
            assert_eq!(fifo.pop(), Some(n));
        }
        assert!(fifo.is_empty());
    }
}
