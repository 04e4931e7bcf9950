// SPDX-License-Identifier: GPL-2.0-only

//! The counters of a port's communication manager, as sysfs shows them below
//! `/sys/class/infiniband/DEVICE/ports/PORT/`.

use core::ptr::NonNull;

use kernel::{
    error::to_result,
    prelude::*,
    sync::aref::ARef, //
};

use super::{
    device::Device,
    port::PortNumber, //
};
use crate::bindings;

/// What is counted of each kind of message: a directory in sysfs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Group {
    /// Messages that were sent, repetitions included.
    Sent = bindings::OXIB_CM_TX_MSGS,
    /// Repetitions of messages.
    Repeated = bindings::OXIB_CM_TX_RETRIES,
    /// Messages that were received.
    Received = bindings::OXIB_CM_RX_MSGS,
    /// Messages that were received once more.
    Duplicate = bindings::OXIB_CM_RX_DUPLICATES,
}

/// The attribute id of the first kind of message, a REQ (IBTA 16.7.1); the other ten follow.
const FIRST_ATTRIBUTE: u16 = 0x0010;

/// The counters of a port. Dropping them takes them out of sysfs, and waits for who reads there.
///
/// # Invariants
///
/// The counts are allocated, and shown for the port of the device.
pub(crate) struct Counters {
    counts: NonNull<bindings::oxib_cm_counts>,
    device: ARef<Device>,
    port: PortNumber,
}

// SAFETY: The counts are per CPU, and used by each in one instruction.
unsafe impl Send for Counters {}
// SAFETY: As above.
unsafe impl Sync for Counters {}

impl Counters {
    /// Shows counters for `port`, all zero. Sleeps.
    ///
    /// Only for a port whose management class is ours: where another communication manager shows
    /// its own, sysfs complains in the log.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there are such files; `ENOMEM`.
    pub(crate) fn register(device: &Device, port: PortNumber) -> Result<Self> {
        // SAFETY: A plain allocation.
        let counts = NonNull::new(unsafe { bindings::oxib_cm_counters_alloc() }).ok_or(ENOMEM)?;
        // SAFETY: The device is registered and has that port; the counts live until they are hidden.
        let shown = to_result(unsafe {
            bindings::oxib_cm_counters_show(device.as_raw(), port.get(), counts.as_ptr())
        });
        if let Err(error) = shown {
            // SAFETY: Allocated above, and not shown.
            unsafe { bindings::oxib_cm_counters_free(counts.as_ptr()) };
            return Err(error);
        }
        // INVARIANT: Just allocated and shown.
        Ok(Self {
            counts,
            device: ARef::from(device),
            port,
        })
    }

    /// Adds `n` to the counter of the messages with this attribute id. Others than the eleven of
    /// the communication manager are not counted. Any context.
    #[inline]
    pub(crate) fn add(&self, group: Group, attribute: u16, n: u32) {
        if let Some(message) = message(attribute) {
            // SAFETY: By the type invariant the counts are allocated; both numbers are in range.
            unsafe {
                bindings::oxib_cm_counters_add(self.counts.as_ptr(), group as u32, message, n);
            }
        }
    }

    /// What a counter shows.
    pub(crate) fn sum(&self, group: Group, attribute: u16) -> u64 {
        message(attribute).map_or(0, |message| {
            // SAFETY: As in `add`.
            unsafe { bindings::oxib_cm_counters_sum(self.counts.as_ptr(), group as u32, message) }
        })
    }
}

/// Where the messages with an attribute id are in each group.
fn message(attribute: u16) -> Option<u32> {
    let message = u32::from(attribute.checked_sub(FIRST_ATTRIBUTE)?);
    (message < bindings::OXIB_CM_MESSAGES).then_some(message)
}

impl Drop for Counters {
    fn drop(&mut self) {
        // SAFETY: By the type invariant shown, and allocated; after they are hidden nobody reads them.
        unsafe {
            bindings::oxib_cm_counters_hide(self.device.as_raw(), self.port.get());
            bindings::oxib_cm_counters_free(self.counts.as_ptr());
        }
    }
}
