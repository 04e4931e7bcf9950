// SPDX-License-Identifier: GPL-2.0-only

//! The subnet administrator (SA), asked through the kernel's `ib_sa`.
//!
//! A [`Client`] asks for one port. Answers come in process context, once for each query. A query
//! can be cancelled ([`path::Query::cancel`]); a membership ends with its value
//! ([`multicast::Membership`]).

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        Mutex, //
    },
    types::Opaque, //
};

use super::{
    device::Device,
    port::PortNumber, //
};
use crate::bindings;

pub(crate) mod multicast;
pub(crate) mod path;

/// The client of `ib_sa` that asks the SA on behalf of one port.
///
/// # Invariants
///
/// The C client is registered while `open` says so, and queries begin under that lock alone.
#[pin_data(PinnedDrop)]
pub(crate) struct Client {
    #[pin]
    client: Opaque<bindings::ib_sa_client>,
    #[pin]
    open: Mutex<bool>,
    device: ARef<Device>,
    port: PortNumber,
}

// SAFETY: SA clients are a counter and a completion, used from all threads.
unsafe impl Send for Client {}
// SAFETY: The C client is a counter and a completion, which threads may share; `open` has its
// lock.
unsafe impl Sync for Client {}

impl Client {
    /// A client for `port` of `device`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(device: &Device, port: PortNumber) -> Result<Arc<Self>> {
        let device = ARef::from(device);
        // INVARIANT: Registered in its place, and open.
        let this = pin_init!(Self {
            client <- Opaque::ffi_init(|slot: *mut bindings::ib_sa_client| {
                // SAFETY: The slot is ours, and pinned.
                unsafe { bindings::ib_sa_register_client(slot) }
            }),
            open <- new_mutex!(true, "oxib_sa_client"),
            device,
            port,
        });
        Arc::pin_init(this, GFP_KERNEL)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The port that the SA is asked through.
    pub(crate) fn port(&self) -> PortNumber {
        self.port
    }

    /// Begins no more queries, and waits until the last answer has been taken and the last
    /// membership has ended. Sleeps.
    ///
    /// Not to be called from an answer.
    pub(crate) fn close(&self) {
        let was_open = core::mem::replace(&mut *self.open.lock(), false);
        if was_open {
            // SAFETY: By the type invariant registered until now; nothing begins any more.
            unsafe { bindings::ib_sa_unregister_client(self.client.get()) };
        }
    }

    /// Begins a query with the registered client.
    ///
    /// # Errors
    ///
    /// `ENODEV` if it was closed.
    fn begin<R>(&self, query: impl FnOnce(*mut bindings::ib_sa_client) -> Result<R>) -> Result<R> {
        let open = self.open.lock();
        if *open {
            query(self.client.get())
        } else {
            Err(ENODEV)
        }
    }
}

#[pinned_drop]
impl PinnedDrop for Client {
    fn drop(self: Pin<&mut Self>) {
        self.close();
    }
}

/// The mask that says that component `number` of a record counts (IBTA 15.2.5), as C has it.
const fn component(number: u32) -> u64 {
    (1u64 << number).to_be()
}
