// SPDX-License-Identifier: GPL-2.0-only

//! Shared receive queues: one ring of buffers for the queue pairs of many peers.

use core::{
    ptr::NonNull,
    sync::atomic::{
        AtomicU32,
        Ordering, //
    }, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    device::Device,
    pd::ProtectionDomain,
    receive::{
        PostReceive,
        ReceiveTarget, //
    }, //
};
use crate::{
    bindings,
    linux::device_limit, //
};

/// A shared receive queue.
///
/// # Invariants
///
/// The pointer is a valid shared receive queue in `pd`. Each queue pair of it that is not in Reset
/// is counted in `users`.
pub(crate) struct SharedReceiveQueue {
    srq: NonNull<bindings::ib_srq>,
    pd: Arc<ProtectionDomain>,
    /// The number of queue pairs that may write into memory that was posted here, and [`CLOSED`].
    users: AtomicU32,
}

/// The bit of `users` that says that the ring has ended: no queue pair may become a user any more.
const CLOSED: u32 = 1 << 31;

// SAFETY: Shared receive queues are used from all threads.
unsafe impl Send for SharedReceiveQueue {}
// SAFETY: Verbs are reentrant: threads may use one shared receive queue at the same time.
unsafe impl Sync for SharedReceiveQueue {}

impl SharedReceiveQueue {
    /// Makes a queue of `entries` requests of `pieces` pieces of memory each.
    ///
    /// # Errors
    ///
    /// The device's error: `EOPNOTSUPP` if it has no such queues.
    pub(crate) fn new(pd: &Arc<ProtectionDomain>, entries: u32, pieces: u32) -> Result<Arc<Self>> {
        let mut attributes: bindings::ib_srq_init_attr = pin_init::zeroed();
        attributes.srq_type = bindings::ib_srq_type_IB_SRQT_BASIC;
        attributes.attr.max_wr = entries;
        attributes.attr.max_sge = pieces;
        // SAFETY: The protection domain is valid and outlives the queue.
        let srq = unsafe {
            bindings::ib_create_srq_user(
                pd.as_raw(),
                &mut attributes,
                core::ptr::null_mut(),
                core::ptr::null_mut(),
            )
        };
        let srq = NonNull::new(kernel::error::from_err_ptr(srq)?).ok_or(ENOMEM)?;
        // INVARIANT: Just created in `pd`.
        Ok(Arc::new(
            Self {
                srq,
                pd: pd.clone(),
                users: AtomicU32::new(0),
            },
            GFP_KERNEL,
        )?)
    }

    pub(super) fn as_raw(&self) -> *mut bindings::ib_srq {
        self.srq.as_ptr()
    }

    /// Notes a queue pair that leaves Reset.
    ///
    /// # Errors
    ///
    /// `ENODEV` if there is no memory for it any more.
    pub(super) fn enter(&self) -> Result {
        let before = self.users.fetch_add(1, Ordering::AcqRel);
        if before & CLOSED != 0 {
            self.leave();
            return Err(ENODEV);
        }
        Ok(())
    }

    /// Notes that a queue pair which has entered is in Reset again, or gone.
    pub(super) fn leave(&self) {
        self.users.fetch_sub(1, Ordering::AcqRel);
    }
}

// SAFETY: The queue is valid as long as the value lives. Only queue pairs that have left Reset
// receive, and `users` counts those (type invariant). `quiesce` sets `CLOSED`, after which `enter`
// lets no queue pair become a user, and `takes_receives` is false.
unsafe impl ReceiveTarget for SharedReceiveQueue {
    type Raw = bindings::ib_srq;

    fn as_raw(&self) -> *mut bindings::ib_srq {
        self.as_raw()
    }

    fn post_receive(&self) -> Option<PostReceive<bindings::ib_srq>> {
        // SAFETY: The operations of a valid device do not change.
        unsafe { (*self.pd.device().as_raw()).ops.post_srq_recv }
    }

    fn local_key(&self) -> u32 {
        self.pd.local_key()
    }

    fn takes_receives(&self) -> bool {
        self.users.load(Ordering::Acquire) & CLOSED == 0
    }

    fn quiesce(&self) -> bool {
        self.users.fetch_or(CLOSED, Ordering::AcqRel) & !CLOSED == 0
    }

    fn report_left(&self, requests: usize) {
        self.pd.device().report_left("shared receives", requests);
    }
}

impl Drop for SharedReceiveQueue {
    fn drop(&mut self) {
        // SAFETY: By the type invariant valid; the queue pairs that use it hold it and are gone.
        let result = unsafe { bindings::ib_destroy_srq_user(self.as_raw(), core::ptr::null_mut()) };
        if result != 0 {
            // It is there still, and netlink shows the protection domain that it names. With the
            // domain the device stays, too.
            core::mem::forget(self.pd.clone());
            self.pd
                .device()
                .report_undead("shared receive queue", result);
        }
    }
}

impl Device {
    /// Most pieces of memory of a request in a shared receive queue; 0 if it has none.
    pub(crate) fn max_shared_pieces(&self) -> u32 {
        // SAFETY: A constant of a valid device.
        device_limit(unsafe { (*self.as_raw()).attrs.max_srq_sge })
    }

    /// Most requests of a shared receive queue.
    pub(crate) fn max_shared_requests(&self) -> u32 {
        // SAFETY: A constant of a valid device.
        device_limit(unsafe { (*self.as_raw()).attrs.max_srq_wr })
    }
}
