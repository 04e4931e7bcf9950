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
    page::PAGE_SIZE,
    prelude::*, //
};

use super::memory::Memory;
use crate::bindings;

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

    /// Returns the pages, in their order.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn pages(&self) -> Result<KVVec<Memory>> {
        // SAFETY: By the type invariant.
        let count = unsafe { bindings::softib_umem_pages(self.0.as_ptr()) };
        let mut pages = KVVec::with_capacity(usize::try_from(count)?, GFP_KERNEL)?;
        let place: *mut KVVec<Memory> = &mut pages;
        // SAFETY: By the type invariant; `add_page` is given what it expects.
        let all = unsafe {
            bindings::softib_umem_each_page(self.0.as_ptr(), Some(add_page), place.cast())
        };
        to_result(all)?;
        Ok(pages)
    }

    /// Returns the address of the first byte in its process.
    pub(super) fn start(&self) -> u64 {
        // SAFETY: By the type invariant; the field does not change.
        unsafe { (*self.0.as_ptr()).address as u64 }
    }

    /// Whether it is memory of the calling process.
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

/// Adds a page to a list.
///
/// # Safety
///
/// `context` is a `KVVec<Memory>` that nobody else uses; the page at `address` in the direct map is
/// pinned until the list is no longer used.
unsafe extern "C" fn add_page(context: *mut c_void, address: u64) -> i32 {
    // SAFETY: The caller gives such a list.
    let pages = unsafe { &mut *context.cast::<KVVec<Memory>>() };
    // INVARIANT: The page is pinned, so it is mapped, and its owner has given it to the device.
    // SAFETY: The caller keeps it pinned.
    let page = unsafe { Memory::new(address, PAGE_SIZE) };
    match pages.push_within_capacity(page) {
        Ok(()) => 0,
        Err(_) => ENOMEM.to_errno(),
    }
}
