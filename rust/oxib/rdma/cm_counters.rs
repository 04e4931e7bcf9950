// SPDX-License-Identifier: GPL-2.0-only

//! The counters of a port's communication manager, as sysfs shows them below
//! `/sys/class/infiniband/DEVICE/ports/PORT/`.

use core::ptr::NonNull;

use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

use super::{
    device::Device,
    port::PortNumber, //
};
use crate::{
    bindings,
    wire::cm::kind::Kind, //
};

/// The groups of counters, each with one counter for each kind of message; a group is a directory
/// in sysfs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Group {
    /// Messages that were sent, repetitions included.
    Sent = bindings::OXIB_CM_TX_MSGS,
    /// Repetitions of messages that were sent before.
    Repeated = bindings::OXIB_CM_TX_RETRIES,
    /// Messages that were received.
    Received = bindings::OXIB_CM_RX_MSGS,
    /// Messages that were received once more.
    Duplicate = bindings::OXIB_CM_RX_DUPLICATES,
}

/// The reasons for which a message is dropped or rejected without a report to its consumer; each
/// is a file in sysfs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Cause {
    /// The datagram is no message of the CM class.
    Malformed = bindings::OXIB_CM_DROP_MALFORMED,
    /// There was no memory for it.
    NoMemory = bindings::OXIB_CM_DROP_NO_MEMORY,
    /// The message names a communication ID that does not exist.
    UnknownId = bindings::OXIB_CM_DROP_UNKNOWN_ID,
    /// The connection's state does not take it.
    Unexpected = bindings::OXIB_CM_DROP_UNEXPECTED,
    /// Its sender is not the one that the connection is with.
    WrongPeer = bindings::OXIB_CM_DROP_WRONG_PEER,
    /// The message names another queue pair than the connection's.
    WrongQpn = bindings::OXIB_CM_DROP_WRONG_QPN,
    /// No listener has the service ID.
    NoListener = bindings::OXIB_CM_DROP_NO_LISTENER,
    /// The listener has too many unfinished connections.
    HalfOpen = bindings::OXIB_CM_DROP_HALF_OPEN,
    /// Its queue pair belongs to another connection.
    Stale = bindings::OXIB_CM_DROP_STALE,
    /// Its transport or its addresses are not valid here.
    Invalid = bindings::OXIB_CM_DROP_INVALID,
    /// More messages wait for their turn than there is room for, or more of its sender's.
    Busy = bindings::OXIB_CM_DROP_BUSY,
    /// The Ethernet address of its sender did not become known in time, or more messages wait for
    /// such an address than there is room for.
    Unresolved = bindings::OXIB_CM_DROP_UNRESOLVED,
}

/// The counters of a port. They count as long as there is a reference to them; sysfs shows them
/// while there is a [`Shown`].
///
/// # Invariants
///
/// The counts are allocated.
pub(crate) struct Counters(NonNull<bindings::oxib_cm_counts>);

// SAFETY: The counts are per CPU, and used by each in one instruction.
unsafe impl Send for Counters {}
// SAFETY: Threads share counts that are per CPU, each used in one instruction.
unsafe impl Sync for Counters {}

impl Counters {
    /// Makes counters, all zero.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        // SAFETY: A plain allocation.
        let counts = NonNull::new(unsafe { bindings::oxib_cm_counters_alloc() }).ok_or(ENOMEM)?;
        // INVARIANT: Just allocated.
        Ok(Arc::new(Self(counts), GFP_KERNEL)?)
    }

    /// Adds `n` to the counter of a kind of messages. Any context.
    #[inline]
    pub(crate) fn add(&self, group: Group, kind: Kind, n: u32) {
        // SAFETY: By the type invariant the counts are allocated; both numbers are in range.
        unsafe { bindings::oxib_cm_counters_add(self.0.as_ptr(), group as u32, place(kind), n) };
    }

    /// Counts a message that was dropped. Any context.
    pub(crate) fn count_dropped(&self, cause: Cause) {
        let (group, cause) = (bindings::OXIB_CM_RX_DROPS, cause as u32);
        // SAFETY: As in `add`: there is a count for each cause.
        unsafe { bindings::oxib_cm_counters_add(self.0.as_ptr(), group, cause, 1) };
    }
}

/// Returns the place of a kind's counter in each group: the kinds follow each other in the order
/// of their attribute IDs.
fn place(kind: Kind) -> u32 {
    const {
        assert!(Kind::ALL.len() == bindings::OXIB_CM_MESSAGES as usize);
    }
    u32::from(kind.get() - Kind::Req.get())
}

impl Drop for Counters {
    fn drop(&mut self) {
        // SAFETY: By the type invariant allocated; what shows them has a reference.
        unsafe { bindings::oxib_cm_counters_free(self.0.as_ptr()) };
    }
}

/// Counters in sysfs. Dropping it removes the files, and waits for their readers.
pub(crate) struct Shown {
    device: ARef<Device>,
    port: PortNumber,
    _counters: Arc<Counters>,
}

impl Shown {
    /// Shows `counters` for `port`. Sleeps.
    ///
    /// Only for a port with its management class in our hands: where another communication
    /// manager shows its own, sysfs complains in the log.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there are such files; `ENOMEM`.
    pub(crate) fn new(device: &Device, port: PortNumber, counters: Arc<Counters>) -> Result<Self> {
        // SAFETY: The device is registered and has that port; the counts live until they are
        // hidden.
        to_result(unsafe {
            bindings::oxib_cm_counters_show(device.as_raw(), port.get(), counters.0.as_ptr())
        })?;
        Ok(Self {
            device: ARef::from(device),
            port,
            _counters: counters,
        })
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // SAFETY: Shown by `new`; the reference to the device keeps it registered.
        unsafe { bindings::oxib_cm_counters_hide(self.device.as_raw(), self.port.get()) };
    }
}
