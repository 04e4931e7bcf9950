// SPDX-License-Identifier: GPL-2.0-only

//! Protection domains, which keep their device.

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::aref::ARef, //
};

use super::device::Device;
use crate::bindings;

/// A protection domain: what address handles and queue pairs of one device belong to.
///
/// # Invariants
///
/// The pointer is a valid protection domain of `device`.
pub(crate) struct ProtectionDomain {
    pd: NonNull<bindings::ib_pd>,
    device: ARef<Device>,
}

// SAFETY: Protection domains are used from all threads.
unsafe impl Send for ProtectionDomain {}
// SAFETY: Verbs are reentrant: threads may use one protection domain at the same time.
unsafe impl Sync for ProtectionDomain {}

impl ProtectionDomain {
    /// Allocates one on `device`.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn new(device: &Device) -> Result<Self> {
        // SAFETY: The device is valid; the name lives forever.
        let pd = unsafe { bindings::__ib_alloc_pd(device.as_raw(), 0, c"oxib".as_char_ptr()) };
        let pd = kernel::error::from_err_ptr(pd)?;
        // INVARIANT: Just allocated on `device`.
        Ok(Self {
            pd: NonNull::new(pd).ok_or(ENOMEM)?,
            device: ARef::from(device),
        })
    }

    pub(super) fn as_raw(&self) -> *mut bindings::ib_pd {
        self.pd.as_ptr()
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The key of all local memory.
    pub(super) fn local_key(&self) -> u32 {
        // SAFETY: A constant of a valid protection domain.
        unsafe { (*self.as_raw()).local_dma_lkey }
    }
}

impl Drop for ProtectionDomain {
    fn drop(&mut self) {
        // SAFETY: By the type invariant valid; all that was made in it holds it and is gone.
        unsafe { bindings::ib_dealloc_pd_user(self.as_raw(), core::ptr::null_mut()) };
    }
}
