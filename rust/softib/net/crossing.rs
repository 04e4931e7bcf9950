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
