// SPDX-License-Identifier: GPL-2.0-only

//! Frames that are sent together.

use kernel::types::NotThreadSafe;

use crate::bindings;

/// Frames after which the other ends have a turn, where this CPU takes their frames: far fewer
/// than may wait.
const LENGTH: u32 = 64;

/// A time in which soft interrupts are kept off this CPU: frames that are sent meanwhile are
/// taken in one go at the other end, and not one by one.
///
/// # Invariants
///
/// `deferred` says that soft interrupts were kept off for this one.
pub(crate) struct Burst {
    deferred: bool,
    left: u32,
    _thread: NotThreadSafe,
}

impl Burst {
    /// Begins a burst. Any context; where interrupts are off no frame is taken meanwhile anyway.
    pub(crate) fn begin() -> Self {
        // SAFETY: Reads flags of this CPU.
        let deferred = unsafe { !bindings::softib_in_interrupt() };
        if deferred {
            // SAFETY: The drop enables them again, on this thread.
            unsafe { bindings::softib_bh_disable() };
        }
        // INVARIANT: As just done.
        Self {
            deferred,
            left: LENGTH,
            _thread: NotThreadSafe,
        }
    }

    /// Notes a frame. If they have become many, they are taken now.
    #[inline]
    pub(crate) fn sent_one(&mut self) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.left = LENGTH;
            if self.deferred {
                // SAFETY: By the type invariant kept off by us, and they are so again afterwards.
                unsafe {
                    bindings::softib_bh_enable();
                    bindings::softib_bh_disable();
                }
            }
        }
    }
}

impl Drop for Burst {
    fn drop(&mut self) {
        if self.deferred {
            // SAFETY: By the type invariant `begin` has kept soft interrupts off; a caller that
            // began with interrupts on has them on again.
            unsafe { bindings::softib_bh_enable() };
        }
    }
}
