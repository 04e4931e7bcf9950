// SPDX-License-Identifier: GPL-2.0-only

//! An identifier as its consumer in C has it.

use core::{
    any::Any,
    mem::ManuallyDrop,
    ptr::{
        addr_of,
        addr_of_mut,
        null_mut, //
    },
    sync::atomic::{
        AtomicPtr,
        Ordering, //
    }, //
};

use kernel::{
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

use super::events;
use crate::{
    bindings,
    cm::{
        Consumer,
        Id,
        Notice,
        Shown, //
    },
    rdma::device::Device,
    wire::qpn::Qpn, //
};

/// A consumer in C, with the `struct ib_cm_id` that it knows the identifier by.
///
/// The consumer has a reference to the identifier and the identifier has one to the consumer,
/// until the identifier is destroyed: by `oxib_cm_destroy_id`, or by what the handler returns. So
/// the C structure exists for exactly as long as the consumer may use it.
///
/// # Invariants
///
/// The fields `cm_handler` and `context` of the C structure are the consumer's: it writes them
/// when it makes the identifier, and later only in its handler. So is `remote_cm_qpn`, at any
/// time, in one store. The rest is written by us alone. The device is registered: consumers let
/// go of all their identifiers before it goes.
///
/// `id` is null, or comes from `Arc::into_raw`: from `attach` to `detach`, which is called after
/// the consumer has let go, the value has that reference.
#[pin_data]
#[repr(C)]
pub(super) struct CmId {
    #[pin]
    seen: Opaque<bindings::ib_cm_id>,
    id: AtomicPtr<Id>,
}

// SAFETY: The pointers in the C structure are the consumer's, which is called from any thread; each
// access to the fields is one load or one store.
unsafe impl Send for CmId {}
// SAFETY: Each access to the fields of the C structure is one load or one store, and `id` is an
// atomic pointer, so threads may share a reference.
unsafe impl Sync for CmId {}

impl CmId {
    /// Makes one that has no identifier yet.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(
        device: &Device,
        handler: bindings::ib_cm_handler,
        context: *mut c_void,
    ) -> Result<Arc<Self>> {
        let seen = bindings::ib_cm_id {
            cm_handler: handler,
            context,
            device: device.as_raw(),
            remote_cm_qpn: Qpn::GENERAL_SERVICES.get(),
            ..bindings::ib_cm_id::default()
        };
        Arc::pin_init(
            pin_init!(Self {
                seen: Opaque::new(seen),
                // INVARIANT: Null.
                id: AtomicPtr::new(null_mut()),
            }),
            GFP_KERNEL,
        )
    }

    /// The one that a consumer means by `raw`.
    ///
    /// # Safety
    ///
    /// `raw` came from [`CmId::as_raw`], and the consumer has not let go of it during `'a`.
    pub(super) unsafe fn borrow<'a>(raw: *mut bindings::ib_cm_id) -> &'a Self {
        // SAFETY: The C structure is the first field of a `repr(C)` type, and valid by the
        // contract.
        unsafe { &*raw.cast::<Self>() }
    }

    /// The consumer of `id`, if that is one in C.
    pub(super) fn of(id: &Id) -> Option<&Self> {
        id.consumer().as_any().downcast_ref()
    }

    /// The consumer's handle of the identifier.
    pub(super) fn as_raw(&self) -> *mut bindings::ib_cm_id {
        // The pointer to the whole, which `borrow` turns back.
        core::ptr::from_ref(self).cast_mut().cast()
    }

    /// Runs `using` with the identifier.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it has ended; the errors of `using`.
    ///
    /// # Safety
    ///
    /// The consumer does not let go of the identifier meanwhile: neither by `using` nor by
    /// another thread.
    pub(super) unsafe fn with_id<R>(&self, using: impl FnOnce(&Arc<Id>) -> Result<R>) -> Result<R> {
        let id = self.id.load(Ordering::Acquire);
        if id.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: By the type invariant it comes from `Arc::into_raw`. The reference is the
        // value's until the consumer has let go, which the caller rules out; it is not given up
        // here.
        let id = ManuallyDrop::new(unsafe { Arc::from_raw(id) });
        using(&id)
    }

    /// Gives the value another identifier, or none, and takes the one that it had.
    fn replace(&self, id: Option<Arc<Id>>) -> Option<Arc<Id>> {
        let new = id.map_or(null_mut(), |id| Arc::into_raw(id).cast_mut());
        // INVARIANT: Null, or just taken from `Arc::into_raw`.
        let old = self.id.swap(new, Ordering::AcqRel);
        // SAFETY: By the type invariant it comes from `Arc::into_raw`, with a reference that was
        // the value's, and is no longer in it.
        (!old.is_null()).then(|| unsafe { Arc::from_raw(old) })
    }

    /// The device that the consumer made it on.
    pub(super) fn device(&self) -> &Device {
        // SAFETY: By the type invariant nobody writes it, and the device is registered.
        unsafe { Device::from_raw((*self.seen.get()).device) }
    }

    fn handler(&self) -> bindings::ib_cm_handler {
        // SAFETY: By the type invariant valid; perhaps written by the consumer, in one store.
        unsafe { addr_of!((*self.seen.get()).cm_handler).read_volatile() }
    }

    fn context(&self) -> *mut c_void {
        // SAFETY: As in `handler`.
        unsafe { addr_of!((*self.seen.get()).context).read_volatile() }
    }

    /// Calls the consumer's handler; what it says.
    pub(super) fn call(&self, event: &bindings::ib_cm_event) -> i32 {
        match self.handler() {
            // SAFETY: The consumer's own function, which gets what it knows the identifier by, and
            // an event that is complete.
            Some(handler) => unsafe { handler(self.as_raw(), event) },
            None => 0,
        }
    }
}

impl Consumer for CmId {
    fn event(&self, id: &Arc<Id>, notice: &Notice) -> Result {
        match events::tell(self, id, notice) {
            0 => Ok(()),
            answer if answer == ENOMEM.to_errno() => Err(ENOMEM),
            // All others mean the same.
            _ => Err(EINVAL),
        }
    }

    fn accept(&self) -> Result<Arc<dyn Consumer>> {
        Ok(Self::new(self.device(), self.handler(), self.context())?)
    }

    fn attach(&self, id: &Arc<Id>) {
        let before = self.replace(Some(id.clone()));
        drop(before);
    }

    fn detach(&self) {
        // The caller has the identifier, and the identifier has this.
        let id = self.replace(None);
        drop(id);
    }

    fn show(&self, shown: &Shown) {
        let seen = self.seen.get();
        // SAFETY: By the type invariant valid, and these fields are written by us alone, with the
        // identifier's lock held or before the identifier is attached. Consumers read them at any
        // time.
        unsafe {
            addr_of_mut!((*seen).state).write_volatile(shown.state.number().into());
            addr_of_mut!((*seen).lap_state).write_volatile(shown.lap.number().into());
            addr_of_mut!((*seen).local_id).write_volatile(shown.local.get().to_be());
            addr_of_mut!((*seen).remote_id).write_volatile(shown.remote.get().to_be());
            addr_of_mut!((*seen).service_id).write_volatile(shown.service.get().to_be());
        }
    }

    fn remote_manager(&self) -> Qpn {
        // SAFETY: As in `handler`.
        let qpn = unsafe { addr_of!((*self.seen.get()).remote_cm_qpn).read_volatile() };
        Qpn::new(qpn).unwrap_or(Qpn::GENERAL_SERVICES)
    }

    fn is_shared_by(&self, handler: usize) -> bool {
        self.handler().is_some_and(|own| own as usize == handler) && self.context().is_null()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
