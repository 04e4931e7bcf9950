// SPDX-License-Identifier: GPL-2.0-only

//! States of the sockets that send requests, kept until the sockets are closed.

use kernel::{
    error::to_result,
    prelude::*,
    rbtree::RBTree,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    },
    types::Opaque, //
};

use super::Protocol;
use crate::bindings;

/// The states of sockets. Dropping it forgets them. Any user may have as many sockets as there is
/// room for in a namespace of its own: the states are charged to it, and others' are found as fast.
///
/// # Invariants
///
/// The block is registered.
#[pin_data(PinnedDrop)]
pub(super) struct Sockets<P: Protocol> {
    #[pin]
    states: Mutex<RBTree<Key, Arc<P::Socket>>>,
    #[pin]
    block: Opaque<bindings::notifier_block>,
}

// SAFETY: The states have a lock; the block is the kernel's while it is registered.
unsafe impl<P: Protocol> Send for Sockets<P> {}
// SAFETY: Threads share the states under their lock; the block is the kernel's while it is
// registered.
unsafe impl<P: Protocol> Sync for Sockets<P> {}

/// A socket: its namespace, and its port ID there.
type Key = (usize, u32);

impl<P: Protocol> Sockets<P> {
    /// Creates an empty list. From now on the states of sockets that are closed are dropped.
    ///
    /// # Errors
    ///
    /// The error of the kernel.
    pub(super) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            states <- new_mutex!(RBTree::new(), "oxib_genl_sockets"),
            block <- Opaque::try_ffi_init(|slot: *mut bindings::notifier_block| {
                // SAFETY: The slot is ours.
                unsafe { slot.write(pin_init::zeroed()) };
                // SAFETY: The slot is ours, and was written in the line above.
                unsafe { (*slot).notifier_call = Some(happened::<P>) };
                // SAFETY: The structure is complete, pinned, and unregistered before its end.
                to_result(unsafe { bindings::netlink_register_notifier(slot) })
            }),
        })
    }

    /// Returns the state of a socket, which is made on its first request. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn get(&self, socket: Key) -> Result<Arc<P::Socket>> {
        let mut states = self.states.lock();
        if let Some(state) = states.get(&socket) {
            return Ok(state.clone());
        }
        let state = Arc::pin_init(P::socket(), GFP_KERNEL_ACCOUNT)?;
        states.try_create_and_insert(socket, state.clone(), GFP_KERNEL_ACCOUNT)?;
        Ok(state)
    }

    /// Drops the state of a socket that is closed.
    fn forget(&self, socket: Key) {
        let gone = self.states.lock().remove(&socket);
        // Without the lock.
        drop(gone);
    }
}

#[pinned_drop]
impl<P: Protocol> PinnedDrop for Sockets<P> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant registered. The call waits for those that are under way.
        unsafe { bindings::netlink_unregister_notifier(self.block.get()) };
    }
}

/// Finds out whether a socket of generic netlink is closed.
///
/// # Safety
///
/// Called by the kernel with an event and what it is about.
unsafe extern "C" fn happened<P: Protocol>(
    _: *mut bindings::notifier_block,
    event: usize,
    subject: *mut c_void,
) -> i32 {
    let mut net = core::ptr::null_mut();
    let mut number = 0;
    // SAFETY: The kernel gives an event and what it is about; the results are written to places of
    // ours.
    let closed = unsafe { bindings::oxib_genl_closed(event, subject, &mut net, &mut number) };
    if closed {
        if let Some(sockets) = P::family().sockets() {
            sockets.forget((net.addr(), number));
        }
    }
    bindings::NOTIFY_DONE as i32
}
