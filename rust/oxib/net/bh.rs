// SPDX-License-Identifier: GPL-2.0-only

//! A spin lock for data shared between process context and bottom halves.
//!
//! The `kernel` crate's `SpinLock` leaves bottom halves enabled: a transmit in softirq context
//! that interrupts a holder in process context would spin forever. This backend disables them.

use kernel::sync::lock::{
    Backend,
    Lock, //
};

use crate::bindings;

/// A spin lock that keeps bottom halves disabled while it is held (`spin_lock_bh`).
pub(crate) type SpinLockBh<T> = Lock<T, BhBackend>;

/// The lock's backend: `spinlock_t` taken by `spin_lock_bh`.
pub(crate) struct BhBackend;

// SAFETY: `spinlock_t` gives mutual exclusion between `spin_lock_bh` and `spin_unlock_bh`;
// `relock` is the default one and so takes the lock in the same way.
unsafe impl Backend for BhBackend {
    type State = kernel::bindings::spinlock_t;
    type GuardState = ();

    unsafe fn init(
        ptr: *mut Self::State,
        name: *const kernel::ffi::c_char,
        key: *mut kernel::bindings::lock_class_key,
    ) {
        // SAFETY: The caller gives memory valid for writes, and `name` and `key` live forever.
        unsafe { kernel::bindings::__spin_lock_init(ptr, name, key) }
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: The caller guarantees that `init` ran on `ptr`.
        unsafe { bindings::oxib_spin_lock_bh(ptr) }
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, _state: &Self::GuardState) {
        // SAFETY: The caller owns the lock.
        unsafe { bindings::oxib_spin_unlock_bh(ptr) }
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        // SAFETY: The caller guarantees that `init` ran on `ptr`.
        unsafe { bindings::oxib_spin_trylock_bh(ptr) }.then_some(())
    }

    #[inline]
    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // SAFETY: The caller guarantees that `init` ran on `ptr`.
        unsafe { kernel::bindings::spin_assert_is_held(ptr) }
    }
}

/// Makes a [`SpinLockBh`] with a lock class of its own, as `new_spinlock!` does.
macro_rules! new_spinlock_bh {
    ($inner:expr, $name:literal) => {
        $crate::net::bh::SpinLockBh::new(
            $inner,
            kernel::c_str!($name),
            kernel::static_lock_class!(),
        )
    };
}
pub(crate) use new_spinlock_bh;
