// SPDX-License-Identifier: GPL-2.0-only

//! States of the sockets that send requests, kept until the sockets are closed.

use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    },
    types::Opaque, //
};

use super::Protocol;
use crate::bindings;

/// The sockets that have something of their own. Dropping it forgets them.
///
/// # Invariants
///
/// The block is registered.
#[pin_data(PinnedDrop)]
pub(super) struct Sockets<P: Protocol> {
    #[pin]
    list: Mutex<KVec<Owned<P>>>,
    #[pin]
    block: Opaque<bindings::notifier_block>,
}

// SAFETY: The list has a lock; the block is the kernel's while it is registered.
unsafe impl<P: Protocol> Send for Sockets<P> {}
// SAFETY: Threads share the list under its lock; the block is the kernel's while it is registered.
unsafe impl<P: Protocol> Sync for Sockets<P> {}

/// The state of a socket, which is identified by its namespace and its port ID there.
struct Owned<P: Protocol> {
    socket: (usize, u32),
    data: Arc<P::Socket>,
}

impl<P: Protocol> Sockets<P> {
    /// Creates an empty list. From now on the states of sockets that are closed are dropped.
    ///
    /// # Errors
    ///
    /// The error of the kernel.
    pub(super) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            list <- new_mutex!(KVec::new(), "oxib_genl_sockets"),
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
    pub(super) fn get(&self, socket: (usize, u32)) -> Result<Arc<P::Socket>> {
        let mut list = self.list.lock();
        if let Some(owned) = list.iter().find(|owned| owned.socket == socket) {
            return Ok(owned.data.clone());
        }
        let data = Arc::pin_init(P::socket(), GFP_KERNEL)?;
        let owned = Owned {
            socket,
            data: data.clone(),
        };
        list.push(owned, GFP_KERNEL)?;
        Ok(data)
    }

    /// Drops the state of a socket that is closed.
    fn forget(&self, socket: (usize, u32)) {
        let gone = {
            let mut list = self.list.lock();
            let place = list.iter().position(|owned| owned.socket == socket);
            place.and_then(|place| list.remove(place).ok())
        };
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
