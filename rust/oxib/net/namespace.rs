// SPDX-License-Identifier: GPL-2.0-only

//! Network namespaces, and data that each of them has.

use core::{
    marker::PhantomData,
    ptr::NonNull,
    sync::atomic::{
        AtomicPtr,
        AtomicU32,
        Ordering, //
    }, //
};

use kernel::{
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    sync::{
        new_mutex,
        rcu,
        Arc,
        Mutex, //
    },
    types::Opaque, //
};

use super::device::{
    Device,
    Operations, //
};
use crate::bindings;

/// Data that each network namespace has one of.
pub(crate) trait Member: Send + Sync + Sized + 'static {
    /// Data that the members of all namespaces share.
    type Shared: Send + Sync;

    /// The static that its registration uses.
    fn handle() -> &'static Handle<Self>;

    /// Makes that of a namespace. Sleeps.
    ///
    /// # Errors
    ///
    /// Any: there is no such namespace then.
    fn new(shared: &Self::Shared, namespace: Arc<Namespace>) -> Result<Arc<Self>>;

    /// Waits for the member's own work: the namespace goes, and lookups do not find its member
    /// any more. Sleeps.
    fn leaving(self: &Arc<Self>);
}

/// A network namespace, as its member knows it: until it goes.
///
/// # Invariants
///
/// The pointer is valid as long as it is there.
#[pin_data]
pub(crate) struct Namespace {
    #[pin]
    net: Mutex<Option<Raw>>,
}

/// A pointer to a namespace.
#[derive(Clone, Copy)]
struct Raw(NonNull<bindings::net>);

// SAFETY: Namespaces are used from any thread.
unsafe impl Send for Raw {}

impl Namespace {
    fn new(net: Option<Raw>) -> Result<Arc<Self>> {
        // INVARIANT: The stack takes it back when the namespace goes.
        Arc::pin_init(
            pin_init!(Self {
                net <- new_mutex!(net, "oxib_namespace"),
            }),
            GFP_KERNEL,
        )
    }

    /// Creates a namespace that is gone.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn none() -> Result<Arc<Self>> {
        Self::new(None)
    }

    /// Uses the namespace, if it is there. Sleeps.
    pub(super) fn with(&self, use_it: impl FnOnce(*mut bindings::net)) {
        let net = self.net.lock();
        if let Some(Raw(net)) = *net {
            use_it(net.as_ptr());
        }
    }
}

/// The member of a namespace, as the namespace's slot has it.
struct Entry<M> {
    member: Arc<M>,
    namespace: Arc<Namespace>,
}

/// The place where the members of kind `M` are found: one `static` for each kind.
///
/// # Invariants
///
/// `shared` is null, or what a [`Registration`] holds. `number` is 0, or one that the stack gave,
/// by which each namespace has room for a pointer, null or from [`KBox::into_raw`].
pub(crate) struct Handle<M: Member> {
    operations: Opaque<bindings::pernet_operations>,
    given: AtomicU32,
    number: AtomicU32,
    shared: AtomicPtr<M::Shared>,
}

// SAFETY: The operations are written before they are registered, and by the stack under its lock
// afterwards.
unsafe impl<M: Member> Send for Handle<M> {}
// SAFETY: Shared references use atomics; the operations are written before they are registered,
// and by the stack under its lock afterwards.
unsafe impl<M: Member> Sync for Handle<M> {}

impl<M: Member> Handle<M> {
    /// Creates the handle of a kind that is not registered, for a `static`.
    pub(crate) const fn new() -> Self {
        // INVARIANT: Null, and 0.
        Self {
            operations: Opaque::zeroed(),
            given: AtomicU32::new(0),
            number: AtomicU32::new(0),
            shared: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Returns the place of a namespace's pointer to its member.
    ///
    /// # Safety
    ///
    /// `net` is valid, and its member's room was made and not freed.
    unsafe fn slot<'a>(&self, net: *const bindings::net) -> &'a AtomicPtr<Entry<M>> {
        // SAFETY: The caller guarantees that `net` is valid and that the room was made and not
        // freed; it is as long, and as aligned, as a pointer.
        unsafe {
            &*bindings::oxib_net_generic(net, self.given.load(Ordering::Relaxed))
                .cast::<AtomicPtr<Entry<M>>>()
        }
    }

    /// Uses the member of a namespace, if there is one.
    ///
    /// # Safety
    ///
    /// RCU is held, and `net` is valid as long as it is.
    pub(super) unsafe fn with<R>(
        net: *const bindings::net,
        use_it: impl FnOnce(&Arc<M>) -> R,
    ) -> Option<R> {
        let handle = M::handle();
        if handle.number.load(Ordering::Acquire) == 0 {
            return None;
        }
        // SAFETY: By the type invariant. The room and what is in it go only after a grace period,
        // which begins when the number is 0, or the namespace's last device has left.
        let entry = unsafe { handle.slot(net).load(Ordering::Acquire).as_ref() }?;
        Some(use_it(&entry.member))
    }

    /// Uses the member of a namespace, if there is one, in any context; `use_it` must not sleep.
    ///
    /// # Safety
    ///
    /// `net` is valid.
    pub(crate) unsafe fn find<R>(
        net: *const bindings::net,
        use_it: impl FnOnce(&Arc<M>, &rcu::Guard) -> R,
    ) -> Option<R> {
        let rcu = rcu::read_lock();
        // SAFETY: The caller guarantees that `net` is valid; RCU is held.
        unsafe { Self::with(net, |member| use_it(member, &rcu)) }
    }

    /// Makes the member of a namespace.
    ///
    /// # Safety
    ///
    /// Called by the stack for a new namespace.
    unsafe extern "C" fn init(net: *mut bindings::net) -> i32 {
        from_result(|| {
            let handle = M::handle();
            // SAFETY: By the type invariant; a registration holds it while the stack calls.
            let shared = unsafe { handle.shared.load(Ordering::Acquire).as_ref() }.ok_or(ENODEV)?;
            let namespace = Namespace::new(NonNull::new(net).map(Raw))?;
            let entry = Entry {
                member: M::new(shared, namespace.clone())?,
                namespace,
            };
            let entry = KBox::into_raw(KBox::new(entry, GFP_KERNEL)?);
            // SAFETY: The room was made just before.
            unsafe { handle.slot(net) }.store(entry, Ordering::Release);
            Ok(0)
        })
    }

    /// Takes the namespace away from its member, and waits for the member's own work.
    ///
    /// # Safety
    ///
    /// Called by the stack for a namespace that goes. A time of grace follows, then `exit`.
    unsafe extern "C" fn pre_exit(net: *mut bindings::net) {
        // SAFETY: The stack calls this before `exit`, so the room is there. What is in it is from
        // `KBox::into_raw`, and dropped by `exit` only.
        if let Some(entry) = unsafe { M::handle().slot(net).load(Ordering::Acquire).as_ref() } {
            *entry.namespace.net.lock() = None;
            entry.member.leaving();
        }
    }

    /// Drops the member of a namespace.
    ///
    /// # Safety
    ///
    /// Called by the stack for the same namespace as [`Self::pre_exit`], a grace period later.
    unsafe extern "C" fn exit(net: *mut bindings::net) {
        // SAFETY: The stack calls this for a namespace that goes; its member's room was made, and
        // is freed after this.
        let slot = unsafe { M::handle().slot(net) };
        let entry = slot.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if !entry.is_null() {
            // SAFETY: From `KBox::into_raw`; the namespace has no users any more, and so nobody
            // finds it.
            drop(unsafe { KBox::from_raw(entry) });
        }
    }
}

/// Members of kind `M` in all namespaces. Dropping it drops them; all that could look one up is
/// gone before.
pub(crate) struct Registration<M: Member> {
    _shared: Pin<KBox<M::Shared>>,
    _members: PhantomData<M>,
}

impl<M: Member> Registration<M> {
    /// Makes a member for each namespace. Sleeps.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there is such a registration; those of [`Member::new`].
    pub(crate) fn new(shared: M::Shared) -> Result<Self> {
        let handle = M::handle();
        let shared = KBox::pin(shared, GFP_KERNEL)?;
        let raw = (&raw const *shared).cast_mut();
        handle
            .shared
            .compare_exchange(
                core::ptr::null_mut(),
                raw,
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .map_err(|_| EBUSY)?;
        let operations = handle.operations.get();
        // SAFETY: Not registered, so the structure is ours; it lives as long as the module.
        let result = to_result(unsafe {
            operations.write(bindings::pernet_operations {
                init: Some(Handle::<M>::init),
                pre_exit: Some(Handle::<M>::pre_exit),
                exit: Some(Handle::<M>::exit),
                id: handle.given.as_ptr(),
                size: size_of::<AtomicPtr<Entry<M>>>(),
                ..pin_init::zeroed()
            });
            bindings::register_pernet_subsys(operations)
        });
        if let Err(error) = result {
            handle
                .shared
                .store(core::ptr::null_mut(), Ordering::Release);
            return Err(error);
        }
        // INVARIANT: Every namespace has a member from here on.
        handle
            .number
            .store(handle.given.load(Ordering::Relaxed), Ordering::Release);
        Ok(Self {
            _shared: shared,
            _members: PhantomData,
        })
    }
}

impl<M: Member> Drop for Registration<M> {
    fn drop(&mut self) {
        let handle = M::handle();
        handle.number.store(0, Ordering::Release);
        // SAFETY: Registered by `new`. The call waits for readers between `pre_exit` and `exit`.
        unsafe { bindings::unregister_pernet_subsys(handle.operations.get()) };
        handle
            .shared
            .store(core::ptr::null_mut(), Ordering::Release);
    }
}

impl<T: Operations> Device<T> {
    /// Uses the member of the namespace that the device is in, as long as the device is registered:
    /// what drives it may be held longer than that, and the namespace may have gone then. Any
    /// context; `use_it` must not sleep.
    pub(crate) fn with_member<M: Member, R>(
        &self,
        use_it: impl FnOnce(&Arc<M>, &rcu::Guard) -> R,
    ) -> Option<R> {
        let rcu = rcu::read_lock();
        // SAFETY: The device is valid, and RCU is held.
        let net = unsafe { bindings::oxib_netdev_net_rcu(self.as_raw()) };
        if net.is_null() {
            return None;
        }
        // SAFETY: The device was registered when RCU was held already. It leaves its namespace
        // before that goes, and the stack waits for a grace period in between.
        unsafe { Handle::with(net, |member| use_it(member, &rcu)) }
    }

    /// The member of the namespace that the device is in. Dropping the last reference to it may
    /// sleep.
    pub(crate) fn member<M: Member>(&self) -> Option<Arc<M>> {
        self.with_member(|member: &Arc<M>, _| member.clone())
    }
}
