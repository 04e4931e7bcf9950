// SPDX-License-Identifier: GPL-2.0-only

//! A net device that the world sees.

use core::sync::atomic::Ordering;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    Device,
    Operations, //
};
use crate::bindings;

/// A device that the world sees. Dropping it takes the device down and away.
pub(crate) struct Registration<T: Operations>(Device<T>);

impl<T: Operations> Registration<T> {
    /// Shows `device`, driven by `driver`.
    ///
    /// # Errors
    ///
    /// Whatever the stack says; `EBUSY` if the device was shown before.
    pub(crate) fn new(device: &Device<T>, driver: Arc<T>) -> Result<Self> {
        if device.private().registered.swap(true, Ordering::AcqRel) {
            return Err(EBUSY);
        }
        // SAFETY: Never registered before, so no callback reads the field and nobody else writes it.
        unsafe { *device.private().driver.get() = Some(driver) };
        // SAFETY: The device is complete and not registered.
        let result = unsafe { bindings::register_netdev(device.as_raw()) };
        if let Err(error) = kernel::error::to_result(result) {
            // SAFETY: Not registered.
            unsafe { release_driver(device) };
            return Err(error);
        }
        Ok(Self(device.clone()))
    }
}

/// Breaks the circle of device, driver and device.
///
/// # Safety
///
/// The device is not registered (any more): no callback reads its driver.
unsafe fn release_driver<T: Operations>(device: &Device<T>) {
    // SAFETY: The caller's promise.
    drop(unsafe { (*device.private().driver.get()).take() });
}

impl<T: Operations> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::unregister_netdev(self.0.as_raw()) };
        // SAFETY: No longer registered.
        unsafe { release_driver(&self.0) };
    }
}
