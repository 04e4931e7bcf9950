// SPDX-License-Identifier: GPL-2.0-only

//! A transmit queue of a net device: its byte queue limit, its lock, the driver's data under it.

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::{
        Deref,
        DerefMut, //
    }, //
};

use super::device::Operations;
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
    /// Wraps a queue with its lock held.
    ///
    /// # Safety
    ///
    /// `queue` belongs to a device that lives for `'a`, and its lock is held for `'a`.
    #[inline(always)]
    pub(super) unsafe fn from_raw(queue: *mut bindings::netdev_queue) -> Self {
        // INVARIANT: The caller guarantees that the device lives for `'a`, and that the queue's
        // lock is held for `'a`.
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

    /// Returns whether more packets follow at once, in a transmit.
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

    /// Lets at least `bytes` be on their way, whatever the byte queue limit learns. A minimum that
    /// an administrator has set stays: one that is not `before`, the driver's own so far. Returns
    /// whether `bytes` is the minimum now.
    pub(crate) fn replace_minimum(&self, before: u32, bytes: u32) -> bool {
        // SAFETY: By the type invariant the queue is valid, and its lock serialises this.
        unsafe { bindings::oxib_tx_replace_min_limit(self.0, before, bytes) }
    }

    /// Forgets what was sent: for a queue that was emptied without completions.
    pub(crate) fn reset(&self) {
        // SAFETY: By the type invariant the queue is valid, and its lock serialises this.
        unsafe { bindings::oxib_tx_reset(self.0) }
    }
}

/// The lock of a transmit queue, and the driver's data of it.
///
/// # Invariants
///
/// The lock of `queue` is held; `cell` is the queue's.
pub(crate) struct QueueGuard<'a, T: Operations> {
    cell: &'a UnsafeCell<Option<T::TxQueue>>,
    queue: *mut bindings::netdev_queue,
    disable_bh: bool,
    _not_send: kernel::types::NotThreadSafe,
}

impl<'a, T: Operations> QueueGuard<'a, T> {
    /// Wraps a queue just after its lock was taken; dropping the value releases it.
    ///
    /// # Safety
    ///
    /// The lock of `queue` is held, and passes to the value; `cell` is the queue's.
    #[inline]
    pub(super) unsafe fn new(
        cell: &'a UnsafeCell<Option<T::TxQueue>>,
        queue: *mut bindings::netdev_queue,
        disable_bh: bool,
    ) -> Self {
        // INVARIANT: The caller holds the queue's lock, which passes to the value, and gives the
        // queue's `cell`.
        Self {
            cell,
            queue,
            disable_bh,
            _not_send: PhantomData,
        }
    }

    /// Uses the driver's data and the stack's side of the queue together.
    #[inline]
    pub(crate) fn with_queue<R>(
        &mut self,
        use_both: impl FnOnce(Option<&mut T::TxQueue>, Queue<'_>) -> R,
    ) -> R {
        // SAFETY: The lock is held while `self` lives.
        let queue = unsafe { Queue::from_raw(self.queue) };
        use_both(self.as_mut(), queue)
    }
}

impl<T: Operations> Deref for QueueGuard<'_, T> {
    type Target = Option<T::TxQueue>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        // SAFETY: By the type invariant the lock is held, and the data is touched under it alone.
        unsafe { &*self.cell.get() }
    }
}

impl<T: Operations> DerefMut for QueueGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: By the type invariant the lock is held, and the data is touched under it alone;
        // `&mut self` keeps other references out.
        unsafe { &mut *self.cell.get() }
    }
}

impl<T: Operations> Drop for QueueGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariant the lock is held.
        unsafe { bindings::oxib_tx_unlock(self.queue, self.disable_bh) }
    }
}
