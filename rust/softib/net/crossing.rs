// SPDX-License-Identifier: GPL-2.0-only

//! The crossing of frames from one end of a cable to the other, where both are in this kernel.

use kernel::{
    error::to_result,
    prelude::*, //
};

use crate::bindings;

/// The crossing while it is open: a part of the module that outlives all cables and all frames.
pub(crate) struct Crossing(());

impl Crossing {
    /// Opens the crossing. One at a time. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: Ended by the drop.
        to_result(unsafe { bindings::softib_crossing_begin() })?;
        Ok(Self(()))
    }
}

impl Drop for Crossing {
    fn drop(&mut self) {
        // SAFETY: Begun by `new`; there are no cables any more.
        unsafe { bindings::softib_crossing_end() };
    }
}

#[kernel::prelude::kunit_tests(softib_crossing)]
mod tests {
    use super::*;

    /// Returns the bit of the queue to a queue pair at the end of that address.
    fn queue(end: usize, pair: u32) -> u64 {
        // SAFETY: The function computes with the address, and reads nothing there.
        let number = unsafe { bindings::softib_crossing_queue(end as *const _, pair) };
        1 << number
    }

    #[test]
    fn management_has_queues_of_its_own() {
        let (mut management, mut data) = (0u64, 0u64);
        for end in (0..64).map(|number| number << 12) {
            management |= queue(end, 0);
            for pair in 1..64 {
                data |= queue(end, pair);
            }
        }
        assert_eq!(management & data, 0);
        // Each of both kinds has several.
        assert!(management.count_ones() > 1);
        assert!(data.count_ones() > 1);
    }
}
