// SPDX-License-Identifier: GPL-2.0-only

//! Registration of a net device with the stack, and its end.
//!
//! ```text
//!  show ──▶ Operations::shown … Operations::leaving ──▶ (stack lets go) ──▶ Operations::gone
//! ```
//!
//! The end may come from [`remove`] or from the stack, when a link is deleted. `leaving` runs
//! with the RTNL held; `gone` runs when it was released and nobody uses the device any more.

use core::sync::atomic::Ordering;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    private,
    Device,
    Operations, //
};
use crate::{
    bindings,
    net::rtnl::Rtnl, //
};

impl<T: Operations> Device<T> {
    /// Shows the device to the world, driven by `driver`. Its namespace, place and kind were set.
    ///
    /// # Errors
    ///
    /// Whatever the stack says; `EBUSY` if the device was shown before.
    pub(crate) fn show(&self, rtnl: &mut Rtnl, driver: Arc<T>) -> Result {
        if self.private().shown.swap(true, Ordering::AcqRel) {
            return Err(EBUSY);
        }
        let raw = self.as_raw();
        // SAFETY: Never registered before, so no callback reads the fields and nobody else writes
        // them.
        unsafe {
            *self.private().driver.get() = Some(driver.clone());
            (*raw).priv_destructor = Some(destroy::<T>);
        }
        // SAFETY: The device is complete and not registered; the RTNL is held.
        let result = unsafe { bindings::register_netdevice(raw) };
        if let Err(error) = kernel::error::to_result(result) {
            // SAFETY: Not registered, or not any more: the stack at most ends what it began.
            let driver = unsafe {
                (*raw).priv_destructor = None;
                (*self.private().driver.get()).take()
            };
            if let Some(driver) = driver {
                driver.leaving(rtnl);
                driver.gone();
            }
            return Err(error);
        }
        // From here on the memory is ours to free: nothing makes the stack do so.
        self.0.lent.store(false, Ordering::Release);
        self.spread();
        driver.shown(rtnl);
        Ok(())
    }
}

/// Takes devices away, all at once: when the RTNL is released they are gone.
pub(crate) fn remove<'a, T: Operations>(
    _rtnl: &mut Rtnl,
    devices: impl Iterator<Item = &'a Device<T>>,
) {
    let mut head = bindings::list_head::default();
    let list = &raw mut head;
    // SAFETY: The list is ours and stays where it is until it is empty again, in the last of the
    // calls; the RTNL is held, and with it registered devices stay so.
    unsafe {
        (*list).next = list;
        (*list).prev = list;
        for device in devices {
            if u32::from((*device.as_raw()).reg_state)
                == bindings::netdev_reg_state_NETREG_REGISTERED
            {
                bindings::unregister_netdevice_queue(device.as_raw(), list);
            }
        }
        bindings::unregister_netdevice_many(list);
    }
}

/// Ends the driver's side of a device and breaks the circle of device, driver and device.
///
/// # Safety
///
/// Called by the stack with a device of `T` that was registered, once, when nobody uses it any
/// more: no callback comes.
unsafe extern "C" fn destroy<T: Operations>(device: *mut bindings::net_device) {
    // SAFETY: The stack calls this once, for a device of `T` that was registered, so the private
    // area is there; no callback comes any more, so nobody else reads the field.
    let driver = unsafe { (*(*private::<T>(device)).driver.get()).take() };
    if let Some(driver) = driver {
        driver.gone();
    }
}
