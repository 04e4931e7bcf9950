// SPDX-License-Identifier: GPL-2.0-only

//! Events of net devices, from the network stack: one notifier for all cables.
//!
//! A notifier for each cable would deadlock. Registering or unregistering a notifier of net
//! devices takes the lock under which network namespaces end (`pernet_ops_rwsem`). A namespace
//! that ends waits there for each RDMA device in turn (`rdma_dev_change_netns`), and an RDMA
//! device that ends takes out its cables: they would wait for each other.

use core::ptr::NonNull;

use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

use super::rtnl::{
    Locked,
    Rtnl, //
};
use crate::bindings;

/// A consumer of the events of a net device.
pub(super) trait Listener: Send + Sync + 'static {
    /// Handles an event of the net device, a number of `enum netdev_cmd`. The RTNL lock is held.
    fn event(&self, event: u32);
}

/// A listener in the list.
///
/// # Invariants
///
/// The listener is valid until it is taken out.
struct Entry {
    device: *mut bindings::net_device,
    listener: NonNull<dyn Listener>,
}

// SAFETY: Listeners are `Sync`; the device's address is compared only.
unsafe impl Send for Entry {}

static LISTENERS: Locked<KVec<Entry>> = Locked::new(KVec::new());

/// Tells `listener` of what happens to `device` from now on.
///
/// # Errors
///
/// `ENOMEM`.
///
/// # Safety
///
/// [`ignore`] is called for the listener before its end.
pub(super) unsafe fn listen(
    rtnl: &mut Rtnl,
    device: *mut bindings::net_device,
    listener: &dyn Listener,
) -> Result {
    // INVARIANT: The caller's promise.
    let entry = Entry {
        device,
        listener: NonNull::from(listener),
    };
    Ok(LISTENERS.get(rtnl).push(entry, GFP_KERNEL)?)
}

/// Takes a listener out of the list: it is told of no event from now on.
pub(super) fn ignore(rtnl: &mut Rtnl, listener: &dyn Listener) {
    let wanted = NonNull::from(listener).cast::<()>();
    LISTENERS
        .get(rtnl)
        .retain(|entry| entry.listener.cast::<()>() != wanted);
}

/// The notifier's block, which the network stack has in a list.
struct Block(Opaque<bindings::notifier_block>);

// SAFETY: The list has a lock of its own; the rest is never written.
unsafe impl Sync for Block {}

static BLOCK: Block = Block(Opaque::new(bindings::notifier_block {
    notifier_call: Some(notified),
    next: core::ptr::null_mut(),
    priority: 0,
}));

/// The registration of the notifier: a part of the module that outlives all cables.
pub(crate) struct Registration(());

impl Registration {
    /// Registers the notifier. One at a time. Sleeps.
    ///
    /// # Errors
    ///
    /// The error that the network stack returns.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: Static, and unregistered before the module goes.
        to_result(unsafe { bindings::register_netdevice_notifier(BLOCK.0.get()) })?;
        Ok(Self(()))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::unregister_netdevice_notifier(BLOCK.0.get()) };
        // Statics are not dropped with the module: the memory of the list would be lost.
        *LISTENERS.get(&mut super::rtnl::lock()) = KVec::new();
    }
}

/// Finds the listener of a net device.
///
/// # Safety
///
/// Called by the network stack with a net device's event, the RTNL lock held.
unsafe extern "C" fn notified(
    _: *mut bindings::notifier_block,
    event: usize,
    info: *mut c_void,
) -> i32 {
    // SAFETY: The network stack gives the `info` of a net device's event, which names the device.
    let device = unsafe { bindings::softib_notified_device(info) };
    let found = {
        // SAFETY: The network stack calls this with the RTNL lock held; nobody on this thread
        // uses data under it while calling the network stack (`Cable::plug`, `Cable::unplug`).
        let mut rtnl = unsafe { Rtnl::assume_held() };
        let mut entries = LISTENERS.get(&mut rtnl).iter();
        entries
            .find(|entry| entry.device == device)
            .map(|entry| entry.listener)
    };
    if let Some(listener) = found {
        // SAFETY: By the invariant of `Entry` the listener is valid: it was in the list, and
        // taking it out needs the lock that is held.
        unsafe { listener.as_ref() }.event(event as u32);
    }
    bindings::NOTIFY_DONE as i32
}
