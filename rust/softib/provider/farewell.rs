// SPDX-License-Identifier: GPL-2.0-only

//! The end of a device's answers to management datagrams, before the kernel takes the device apart.
//!
//! `ib_core` answers Get() and Set() from the completion queue of a port's management
//! (`agent_send_response`). When the device goes, it frees the agent that it answers with while
//! that queue still runs: an answer under way then uses freed memory (Linux 7.2, 7.3). It may take
//! an address handle's time, so that a question in that time is no rarity. A client that comes
//! after `ib_core`'s own is told first that a device goes: from then on there is nothing to
//! answer.

use core::ptr::null_mut;

use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

use super::{
    device,
    link, //
};
use crate::bindings;

/// The client, of which `ib_core` keeps a list.
struct Client(Opaque<bindings::ib_client>);

// SAFETY: `ib_core` has locks of its own for what it writes there; the rest is never written.
unsafe impl Sync for Client {}

static CLIENT: Client = Client(Opaque::zeroed());

/// The registration of the client. Dropping it ends it.
pub(crate) struct Registration(());

impl Registration {
    /// Registers the client. One at a time, before there are devices.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        let client = CLIENT.0.get();
        // SAFETY: Static; nobody else has it before it is registered, nor after `drop`.
        unsafe {
            client.write(bindings::ib_client {
                name: c"softib".as_char_ptr(),
                add: Some(add),
                remove: Some(remove),
                ..Default::default()
            });
            to_result(bindings::ib_register_client(client))?;
        }
        Ok(Self(()))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::ib_unregister_client(CLIENT.0.get()) };
    }
}

/// Lets a device of ours answer, also one that came back from another network namespace.
///
/// # Safety
///
/// Called by `ib_core` with a registered device.
unsafe extern "C" fn add(device: *mut bindings::ib_device) -> i32 {
    // SAFETY: `ib_core` gives a registered device; one that has our operations is ours.
    unsafe {
        if (*device).link_ops != link::operations() {
            return ENODEV.to_errno();
        }
        device::hca(device).begin_answers();
        bindings::ib_set_client_data(device, CLIENT.0.get(), null_mut());
    }
    0
}

/// Ends the answers of a device that goes. Sleeps.
///
/// # Safety
///
/// Called by `ib_core` with a device that [`add`] took; its management still works.
unsafe extern "C" fn remove(device: *mut bindings::ib_device, _: *mut c_void) {
    // SAFETY: `add` took none but devices of ours.
    unsafe { device::hca(device) }.end_answers();
}
