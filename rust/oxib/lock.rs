// SPDX-License-Identifier: GPL-2.0-only

//! A spin lock for data that is used with interrupts on and with interrupts off.
//!
//! The consumers of the connection manager call with locks of their own held, interrupts
//! disabled; the `kernel` crate's `SpinLock` leaves interrupts as they are.

use kernel::{
    prelude::*,
    sync::{
        lock::{
            Backend,
            Lock, //
        },
        LockClassKey, //
    }, //
};

use crate::bindings;

/// Returns whether interrupts are off on this CPU, as while an [`IrqLock`] is held. For tests.
#[cfg(all(KUNIT_OF_SHARED, CONFIG_KUNIT = "y"))]
pub(crate) fn interrupts_are_off() -> bool {
    // SAFETY: The function reads a flag of this CPU and has no requirements.
    unsafe { bindings::oxib_irqs_disabled() }
}

/// A spin lock that keeps interrupts disabled while it is held (`spin_lock_irqsave`).
///
/// Closures alone hold it, so locks taken inside each other are released in the opposite
/// order, and each restores the interrupt state that it found.
#[pin_data]
pub(crate) struct IrqLock<T> {
    #[pin]
    lock: Lock<T, IrqBackend>,
}

impl<T> IrqLock<T> {
    /// Creates the lock for [`new_irq_lock!`], which supplies its name and lockdep class.
    pub(crate) fn new(
        value: impl PinInit<T>,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            lock <- Lock::new(value, name, key),
        })
    }

    /// Runs `critical` with the lock held and interrupts disabled.
    #[inline]
    pub(crate) fn with<R>(&self, critical: impl FnOnce(&mut T) -> R) -> R
    where
        T: Unpin,
    {
        critical(&mut self.lock.lock())
    }
}

/// The lock's backend: `spinlock_t` taken by `spin_lock_irqsave`.
struct IrqBackend;

// SAFETY: `spinlock_t` gives mutual exclusion between `spin_lock_irqsave` and
// `spin_unlock_irqrestore`; `relock` is the default one and so takes the lock in the same way.
unsafe impl Backend for IrqBackend {
    type State = kernel::bindings::spinlock_t;
    type GuardState = usize;

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
        unsafe { bindings::oxib_spin_lock_irqsave(ptr) }
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, flags: &Self::GuardState) {
        // SAFETY: The caller owns the lock, and `flags` are what `lock` returned to it.
        unsafe { bindings::oxib_spin_unlock_irqrestore(ptr, *flags) }
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        let mut flags = 0;
        // SAFETY: The caller guarantees that `init` ran on `ptr`.
        unsafe { bindings::oxib_spin_trylock_irqsave(ptr, &mut flags) }.then_some(flags)
    }

    #[inline]
    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // Without lockdep it asserts nothing, but is a call for each time that the lock is taken.
        #[cfg(CONFIG_LOCKDEP)]
        // SAFETY: The caller guarantees that `init` ran on `ptr`.
        unsafe {
            kernel::bindings::spin_assert_is_held(ptr)
        }
        #[cfg(not(CONFIG_LOCKDEP))]
        let _ = ptr;
    }
}

/// Makes an [`IrqLock`] with a lock class of its own, as `new_spinlock!` does.
macro_rules! new_irq_lock {
    ($inner:expr, $name:literal) => {
        $crate::lock::IrqLock::new($inner, kernel::c_str!($name), kernel::static_lock_class!())
    };
}
pub(crate) use new_irq_lock;

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_lock))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_off_inside_alone() -> Result {
        let outer = KBox::pin_init(new_irq_lock!(1, "oxib_test_outer"), GFP_KERNEL)?;
        let inner = KBox::pin_init(new_irq_lock!(2, "oxib_test_inner"), GFP_KERNEL)?;
        assert!(!interrupts_are_off());
        let sum = outer.with(|one| {
            let sum = inner.with(|two| {
                *two += *one;
                assert!(interrupts_are_off());
                *two
            });
            // The inner lock was taken with interrupts off, and leaves them so.
            assert!(interrupts_are_off());
            sum
        });
        assert!(!interrupts_are_off());
        assert_eq!(sum, 3);
        Ok(())
    }
}
