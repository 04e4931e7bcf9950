// SPDX-License-Identifier: GPL-2.0-only

//! Event counters that cost a plain addition.

use core::sync::atomic::{
    AtomicU64,
    Ordering::Relaxed, //
};

/// A 64-bit counter with one writer at a time and any number of readers.
///
/// A count orders nothing, so relaxed loads and stores are all it needs: on x86-64 these are
/// plain moves. The `kernel` crate's atomics are a function call each outside the tree, and a
/// locked read-modify-write buys nothing where the writer is alone (it holds its TX queue's lock
/// or is the NAPI poll of its queue). A second writer would lose counts, never tear them.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`, wrapping around.
    #[inline(always)]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// Sets the value, for counters that show a size.
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Returns the count, to any number of readers at once.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
