// SPDX-License-Identifier: GPL-2.0-only

//! Counts the completion queues on each completion vector.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

/// Vectors that are counted; what is on later ones is not.
const MOST: usize = 64;

/// The number of completion queues on each vector.
pub(crate) struct Vectors([AtomicU32; MOST]);

impl Vectors {
    /// Makes one for no completion queues.
    pub(super) const fn new() -> Self {
        Self([const { AtomicU32::new(0) }; MOST])
    }

    /// Notes a completion queue on a vector.
    pub(crate) fn add(&self, vector: u32) {
        if let Some(count) = self.0.get(vector as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that one is gone.
    pub(crate) fn remove(&self, vector: u32) {
        if let Some(count) = self.0.get(vector as usize) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The numbers of the first `count` vectors.
    pub(crate) fn counts(&self, count: u32) -> impl Iterator<Item = u32> + '_ {
        let counts = self.0.iter().take(count as usize);
        counts.map(|count| count.load(Ordering::Relaxed))
    }
}
