// SPDX-License-Identifier: GPL-2.0-only

//! A transmit queue of a net device and its byte queue limit.

use core::marker::PhantomData;

use crate::bindings;

/// A transmit queue, seen by the holder of its lock.
///
/// # Invariants
///
/// The pointer is a queue of a net device that lives for `'a`, and the queue's lock is held for
/// `'a`.
#[derive(Clone, Copy)]
pub(crate) struct Queue<'a>(*mut bindings::netdev_queue, PhantomData<&'a ()>);

impl<'a> Queue<'a> {
    /// # Safety
    ///
    /// `queue` belongs to a device that lives for `'a`, and its lock is held for `'a`.
    #[inline(always)]
    pub(super) unsafe fn from_raw(queue: *mut bindings::netdev_queue) -> Self {
        // INVARIANT: The caller's promise is the invariant.
        Self(queue, PhantomData)
    }

    /// Tells the stack to send no more on this queue.
    pub(crate) fn stop(&self) {
        // SAFETY: By the type invariant the queue is valid.
        unsafe { bindings::oxib_tx_stop_queue(self.0) }
    }

    /// Lets the stack send again, if it was stopped.
    #[inline]
    pub(crate) fn wake(&self) {
        // SAFETY: By the type invariant the queue is valid.
        unsafe { bindings::oxib_tx_wake_if_stopped(self.0) }
    }

    /// Reports a packet of `bytes` given to the device, in the transmit of that packet.
    ///
    /// Returns whether the device must be told now: nothing follows, or the limit is reached.
    #[inline(always)]
    pub(crate) fn sent(&self, bytes: u32) -> bool {
        // SAFETY: By the type invariant the queue is valid, and its lock serialises this.
        unsafe { bindings::oxib_tx_sent(self.0, bytes) }
    }

    /// Whether more packets follow at once, in a transmit.
    pub(crate) fn more_follow(&self) -> bool {
        // SAFETY: Reads a flag of this CPU; the lock's holder stays on it.
        unsafe { bindings::oxib_xmit_more() }
    }

    /// Reports that the device is done with `packets` of `bytes` in all.
    #[inline]
    pub(crate) fn completed(&self, packets: u32, bytes: u32) {
        // SAFETY: By the type invariant the queue is valid, and its lock serialises this.
        unsafe { bindings::oxib_tx_completed(self.0, packets, bytes) }
    }

    /// Forgets what was sent: for a queue that was emptied without completions.
    pub(crate) fn reset(&self) {
        // SAFETY: By the type invariant the queue is valid, and its lock serialises this.
        unsafe { bindings::oxib_tx_reset(self.0) }
    }
}
