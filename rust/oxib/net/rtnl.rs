// SPDX-License-Identifier: GPL-2.0-only

//! The RTNL lock as a right that can be passed on.
//!
//! Configuration of net devices is serialised by one mutex, the RTNL. Callbacks of the stack run
//! with it held, work items take it. Both have an [`Rtnl`] to show for it, and data that lives
//! under the lock ([`Locked`]) opens for nothing else.

use core::{
    cell::UnsafeCell,
    marker::PhantomData, //
};

use kernel::types::NotThreadSafe;

use crate::bindings;

/// The right to configure net devices: the RTNL is held by this thread.
///
/// # Invariants
///
/// While a value exists the RTNL is held by the current thread. If a second one exists on it (a
/// function of the stack called back), the first is mutably borrowed for as long.
pub(crate) struct Rtnl(NotThreadSafe);

impl Rtnl {
    /// Makes the right for a callback that the stack runs with the RTNL held.
    ///
    /// # Safety
    ///
    /// The RTNL is held by this thread for as long as the value lives. Any other [`Rtnl`] of the
    /// thread is mutably borrowed until then: all functions of the stack that may call back ask
    /// for `&mut Rtnl`.
    pub(super) unsafe fn assume_held() -> Self {
        // INVARIANT: The caller guarantees that this thread holds the RTNL while the value lives,
        // and that any other `Rtnl` of the thread is mutably borrowed until then.
        Self(PhantomData)
    }
}

/// Shows that the RTNL is held, and opens nothing: for what is done with data of a [`Locked`]
/// that is open.
///
/// # Invariants
///
/// While a value exists the RTNL is held by the current thread.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "softib has no need of it")]
pub(crate) struct Held<'a>(PhantomData<&'a ()>, NotThreadSafe);

/// The RTNL taken by [`lock`]; dropping it releases the RTNL.
pub(crate) struct Guard(Rtnl);

/// Takes the RTNL. Sleeps.
pub(crate) fn lock() -> Guard {
    // SAFETY: Callable from any context that may sleep; the mutex is always initialised.
    unsafe { bindings::rtnl_lock() };
    // INVARIANT: Taken in the line above; RTNL is not recursive, so no other value exists here.
    Guard(Rtnl(PhantomData))
}

/// Takes the RTNL if no other thread holds it.
#[allow(dead_code, reason = "softib has no need of it")]
pub(crate) fn try_lock() -> Option<Guard> {
    // SAFETY: Callable from any context that may sleep; the mutex is always initialised.
    let taken = unsafe { bindings::rtnl_trylock() } != 0;
    // INVARIANT: Taken in the line above. Not made if it was not: its drop would release another
    // thread's lock.
    taken.then(|| Guard(Rtnl(PhantomData)))
}

impl core::ops::Deref for Guard {
    type Target = Rtnl;

    fn deref(&self) -> &Rtnl {
        &self.0
    }
}

impl core::ops::DerefMut for Guard {
    fn deref_mut(&mut self) -> &mut Rtnl {
        &mut self.0
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: By the invariant of `Rtnl` this thread holds the lock.
        unsafe { bindings::rtnl_unlock() }
    }
}

/// Data that is only touched with the RTNL held.
pub(crate) struct Locked<T>(UnsafeCell<T>);

// SAFETY: Access goes through `&mut Rtnl` alone, of which one exists at a time in the whole
// kernel; so the data is only ever touched by one thread, to which `T: Send` lets it go.
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    /// Puts `value` under the protection of the RTNL.
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The data, for as long as the right is lent.
    pub(crate) fn get<'a>(&'a self, _rtnl: &'a mut Rtnl) -> &'a mut T {
        // SAFETY: By the invariant of `Rtnl` no other thread is in here, and the exclusive borrow
        // keeps a second call out while the result lives: here, and in what calls back.
        unsafe { &mut *self.0.get() }
    }

    /// The data, and what shows that the RTNL is held beside it.
    #[allow(dead_code, reason = "softib has no need of it")]
    pub(crate) fn open<'a>(&'a self, rtnl: &'a mut Rtnl) -> (&'a mut T, Held<'a>) {
        // INVARIANT: The right that is lent for `'a` says so.
        (self.get(rtnl), Held(PhantomData, PhantomData))
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_rtnl))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn a_failed_try_lock_does_not_release_the_rtnl() {
        let guard = lock();
        assert!(try_lock().is_none());
        assert!(try_lock().is_none());
        drop(guard);
    }
}
