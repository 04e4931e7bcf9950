// SPDX-License-Identifier: GPL-2.0-only

//! Memory of programs that is pinned: the kernel neither moves it nor gives it to others, and
//! counts it against the program's limit (RLIMIT_MEMLOCK).

use core::ptr::NonNull;

use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::c_void,
    prelude::*, //
};

use super::memory::Memory;
use crate::{
    bindings,
    hca::runs::Runs, //
};

/// Pinned memory. Dropping it unpins it, which sleeps.
///
/// # Invariants
///
/// Points to a `struct ib_umem` that `ib_core` made and that is this value's.
pub(crate) struct UserMemory(NonNull<bindings::ib_umem>);

// SAFETY: Any process may ask about pinned memory, and unpin it (`ib_umem_release`).
unsafe impl Send for UserMemory {}

impl UserMemory {
    /// Pins `length` bytes of the calling process, to be written if `access` says so. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` for no bytes, or for more than there can be; `EFAULT` if the process does not have
    /// them so; `ENOMEM` beyond its limit.
    ///
    /// # Safety
    ///
    /// `device` is one of ours that stays registered until the value is dropped.
    pub(super) unsafe fn new(
        device: *mut bindings::ib_device,
        start: u64,
        length: u64,
        access: i32,
    ) -> Result<Self> {
        // SAFETY: The caller keeps the device; the addresses may be any.
        let umem = unsafe { bindings::softib_umem_get(device, start, length, access) };
        let umem = from_err_ptr(umem)?;
        // INVARIANT: Just made, and nobody else knows it.
        NonNull::new(umem).map(Self).ok_or(ENOMEM)
    }

    /// Returns the runs of pages, in their order.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn runs(&self) -> Result<Runs> {
        // SAFETY: By the type invariant.
        let count = unsafe { bindings::softib_umem_runs(self.0.as_ptr()) };
        let mut runs = Runs::with_room(usize::try_from(count)?)?;
        let place: *mut Runs = &mut runs;
        // SAFETY: By the type invariant; `add_run` is given what it expects.
        let all =
            unsafe { bindings::softib_umem_each_run(self.0.as_ptr(), Some(add_run), place.cast()) };
        to_result(all)?;
        Ok(runs)
    }

    /// Returns the address of the first byte in its process.
    pub(super) fn start(&self) -> u64 {
        // SAFETY: By the type invariant; the field does not change.
        unsafe { (*self.0.as_ptr()).address as u64 }
    }

    /// Returns whether it was pinned to be written.
    pub(crate) fn is_writable(&self) -> bool {
        // SAFETY: By the type invariant; the field does not change.
        unsafe { (*self.0.as_ptr()).writable() != 0 }
    }

    /// Returns whether it is memory of the calling process.
    pub(super) fn is_own(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::softib_is_own_memory(self.0.as_ptr()) }
    }
}

impl Drop for UserMemory {
    fn drop(&mut self) {
        // SAFETY: By the type invariant it is this value's, which ends.
        unsafe { bindings::ib_umem_release(self.0.as_ptr()) };
    }
}

/// Adds a run of pages to a list.
///
/// # Safety
///
/// `context` is a `Runs` that nobody else uses; so many bytes of whole pages at `address` in the
/// direct map are pinned until the list is no longer used.
unsafe extern "C" fn add_run(context: *mut c_void, address: u64, length: u32) -> i32 {
    // SAFETY: The caller gives such a list.
    let runs = unsafe { &mut *context.cast::<Runs>() };
    // INVARIANT: The pages are pinned, so they are mapped, and their owner has given them to the
    // device.
    // SAFETY: The caller keeps them pinned.
    let run = unsafe { Memory::new(address, length as usize) };
    match runs.push(run) {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}
