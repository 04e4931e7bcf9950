// SPDX-License-Identifier: GPL-2.0-only

//! `rdma link add … type softib netdev …` and `rdma link delete`.

use kernel::{
    error::from_result,
    ffi::c_char,
    prelude::*,
    types::Opaque, //
};

use super::device;
use crate::{
    bindings,
    configfs::options,
    net::cable::NetDevice, //
};

/// The operations, of which `ib_core` keeps a list.
struct Operations(Opaque<bindings::rdma_link_ops>);

// SAFETY: The list has a lock of its own; the rest is never written.
unsafe impl Sync for Operations {}

static OPERATIONS: Operations = Operations(Opaque::new(bindings::rdma_link_ops {
    list: bindings::list_head {
        next: core::ptr::null_mut(),
        prev: core::ptr::null_mut(),
    },
    type_: kernel::str::as_char_ptr_in_const_context(c"softib"),
    newlink: Some(add),
    // `ib_core` unregisters the device by itself.
    dellink: None,
}));

/// The operations, for devices.
pub(super) fn operations() -> *const bindings::rdma_link_ops {
    OPERATIONS.0.get()
}

/// The registration of the link type. Dropping it ends all devices.
pub(crate) struct Registration(());

impl Registration {
    /// Registers the type. One at a time.
    pub(crate) fn new() -> Self {
        // SAFETY: Static, and unregistered before the module goes.
        unsafe { bindings::rdma_link_register(OPERATIONS.0.get()) };
        Self(())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`. No device is made afterwards, so that those that exist can
        // be ended.
        unsafe {
            bindings::rdma_link_unregister(OPERATIONS.0.get());
            bindings::ib_unregister_driver(super::operations::DRIVER);
        }
    }
}

/// Makes a device with its net devices as cables (`rdma link add`).
///
/// # Safety
///
/// Called by `ib_core` with a name and a net device that it holds.
unsafe extern "C" fn add(name: *const c_char, device: *mut bindings::net_device) -> i32 {
    from_result(|| {
        // SAFETY: `ib_core` gives a name that ends in zero, and holds the net device during the
        // call.
        let (name, device) = unsafe { (CStr::from_char_ptr(name), NetDevice::from_raw(device)?) };
        let (options, taken) = options::take(name)?;
        let second = match &options.port2 {
            None => None,
            Some(second) => Some(NetDevice::find(second).map_err(|_| {
                pr_err!(
                    "hca {name}: there is no net device {} here for its second port: name another \
                     in `port2`\n",
                    &**second
                );
                EINVAL
            })?),
        };
        let mut devices = KVec::with_capacity(2, GFP_KERNEL)?;
        devices.push(device, GFP_KERNEL)?;
        if let Some(second) = second {
            devices.push(second, GFP_KERNEL)?;
        }
        for (device, port) in devices.iter().zip(1..) {
            device.check().map_err(|unfit| {
                let why = unfit.why();
                pr_err!("hca {name}: the net device of port {port} {why}\n");
                unfit.error()
            })?;
        }
        device::add(name, options, taken, &devices)?;
        Ok(0)
    })
}
