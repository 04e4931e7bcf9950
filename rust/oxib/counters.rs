// SPDX-License-Identifier: GPL-2.0-only

//! Counters that all CPUs count at once, each in a place of its own; and a clock for what expires.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::prelude::*;

use crate::bindings;

/// Names of a set of counters: an enum without data, numbered from 0.
pub(crate) trait Index: Copy {
    /// Number of counters in the set.
    const NUMBER: usize;

    /// The counter's place, less than [`Self::NUMBER`].
    fn place(self) -> usize;
}

/// Counters, one for each `I`.
///
/// # Invariants
///
/// The pointer is that of a per-CPU array of `I::NUMBER` counters.
pub(crate) struct Counters<I>(NonNull<u64>, PhantomData<fn(I)>);

// SAFETY: Each CPU counts in its own place, in one instruction; sums read whole words.
unsafe impl<I> Send for Counters<I> {}
// SAFETY: Shared references count in each CPU's own place, in one instruction, and sum up by
// reading whole words.
unsafe impl<I> Sync for Counters<I> {}

impl<I: Index> Counters<I> {
    /// Makes counters, all zero.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: A plain allocation.
        let raw = unsafe { bindings::oxib_counters_alloc(I::NUMBER as u32) };
        // INVARIANT: Just allocated.
        Ok(Self(NonNull::new(raw).ok_or(ENOMEM)?, PhantomData))
    }

    /// Counts one. Any context.
    #[inline]
    pub(crate) fn count(&self, index: I) {
        self.add(index, 1);
    }

    /// Adds `n`. Any context.
    #[inline]
    pub(crate) fn add(&self, index: I, n: u64) {
        let place = index.place();
        if place < I::NUMBER {
            // SAFETY: By the type invariant; the place was checked.
            unsafe { bindings::oxib_counters_add(self.0.as_ptr(), place as u32, n) };
        }
    }

    /// Takes `n` away, of what counts things that come and go. Any context.
    #[inline]
    pub(crate) fn sub(&self, index: I, n: u64) {
        // The places of all CPUs together are what counts: one may be less than zero.
        self.add(index, n.wrapping_neg());
    }

    /// The sum over all CPUs.
    pub(crate) fn get(&self, index: I) -> u64 {
        let place = index.place();
        if place >= I::NUMBER {
            return 0;
        }
        // SAFETY: By the type invariant; the place was checked.
        unsafe { bindings::oxib_counters_sum(self.0.as_ptr(), place as u32) }
    }
}

impl<I> Drop for Counters<I> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant allocated, and ours.
        unsafe { bindings::oxib_counters_free(self.0.as_ptr()) };
    }
}

/// Seconds since the machine was started; a clock that nobody sets. Any context.
#[inline]
pub(crate) fn seconds() -> u32 {
    // SAFETY: Reads the clock.
    unsafe { bindings::oxib_seconds() }
}

#[kernel::prelude::kunit_tests(oxib_counters)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    enum Fruit {
        Apple,
        Pear,
    }

    impl Index for Fruit {
        const NUMBER: usize = 2;

        fn place(self) -> usize {
            self as usize
        }
    }

    #[test]
    fn each_counts_for_itself() -> Result {
        let counters = Counters::new()?;
        counters.count(Fruit::Apple);
        counters.add(Fruit::Apple, 1 << 40);
        counters.add(Fruit::Pear, 7);
        counters.sub(Fruit::Pear, 3);
        assert_eq!(counters.get(Fruit::Apple), (1 << 40) + 1);
        assert_eq!(counters.get(Fruit::Pear), 4);
        Ok(())
    }
}
