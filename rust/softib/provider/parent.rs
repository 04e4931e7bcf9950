// SPDX-License-Identifier: GPL-2.0-only

//! The parent of all HCAs, `/sys/devices/faux/softib`.
//!
//! An adapter sits on a bus, and the kernel's `ib_ipoib` reads the name of its parent device
//! without looking whether there is one (`ipoib_get_drvinfo`, for `ethtool -i` and `-d`).

use core::{
    ptr::null_mut,
    sync::atomic::{
        AtomicPtr,
        Ordering, //
    },
};

use kernel::prelude::*;

use crate::bindings;

/// The device, or null while there is none.
///
/// # Invariants
///
/// Set by [`Registration::new`], and null again before the drop of what that returns destroys the
/// device.
static PARENT: AtomicPtr<bindings::faux_device> = AtomicPtr::new(null_mut());

/// The registration of the parent. It outlives all HCAs.
pub(crate) struct Registration(());

impl Registration {
    /// Registers the parent device.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the kernel does not make the device. The kernel gives no reason, but no other
    /// device has that name.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: The function has no preconditions; the module is being loaded, in process
        // context.
        let parent = unsafe { bindings::softib_parent_create() };
        if parent.is_null() {
            return Err(ENOMEM);
        }
        // INVARIANT: Valid until the drop of the value returned.
        PARENT.store(parent, Ordering::Release);
        Ok(Self(()))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let parent = PARENT.swap(null_mut(), Ordering::AcqRel);
        // SAFETY: By the invariant of `PARENT` the device was made by `new`; no HCA is its child
        // any more.
        unsafe { bindings::softib_parent_destroy(parent) };
    }
}

/// Returns the device; valid while the module has HCAs.
pub(super) fn as_raw() -> *mut bindings::faux_device {
    PARENT.load(Ordering::Acquire)
}

/// Returns the device that memory is mapped for; valid while the module has HCAs.
pub(super) fn dma_device() -> *mut kernel::bindings::device {
    // SAFETY: By the invariant of `PARENT` the device is valid while there are HCAs; callers make
    // one.
    unsafe { bindings::softib_dma_device(as_raw()) }
}
