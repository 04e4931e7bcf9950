// SPDX-License-Identifier: GPL-2.0-only

//! Memory regions.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    device,
    memory::Memory,
    object::Object,
    pd::Domain, //
};
use crate::{
    bindings,
    hca::{
        limits,
        region::{
            Extent,
            Pages,
            Region,
            Rights, //
        }, //
    }, //
};

/// A region of the kernel with ours.
pub(super) type Registered = Object<bindings::ib_mr, Arc<Region>>;

/// The kernel's memory at an address that a peer named, which the consumer opened all of to it.
pub(crate) fn kernel_memory(address: u64, length: usize) -> Option<Memory> {
    // SAFETY: Looks at the address alone.
    if !unsafe { bindings::softib_is_memory(address, length) } {
        return None;
    }
    // INVARIANT: It is mapped, and the consumer gave all memory to the device when it made the region.
    // SAFETY: As above.
    Some(unsafe { Memory::new(address, length) })
}

/// Reads the kernel's access flags.
pub(super) fn rights(flags: u32) -> Rights {
    let has = |bit: bindings::ib_access_flags| flags & bit != 0;
    Rights {
        local_write: has(bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE),
        remote_write: has(bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE),
        remote_read: has(bindings::ib_access_flags_IB_ACCESS_REMOTE_READ),
        remote_atomic: has(bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC),
    }
}

/// Makes the kernel's object of a region.
///
/// # Safety
///
/// `pd` is live.
unsafe fn register(
    pd: *mut bindings::ib_pd,
    valid: bool,
    rights: Rights,
    extent: Extent,
) -> Result<*mut bindings::ib_mr> {
    // SAFETY: The caller's promise.
    let hca = unsafe { device::hca((*pd).device) };
    let region = hca.regions.add(Domain::of(pd), valid, rights, extent)?;
    let key = region.state.with(|state| state.key);
    let mr = Registered::allocate(region).inspect_err(|_| hca.regions.remove(key))?;
    // SAFETY: Just made, and ours.
    unsafe {
        (*mr).lkey = key;
        (*mr).rkey = key;
    }
    Ok(mr)
}

fn pointer_or_error(result: Result<*mut bindings::ib_mr>) -> *mut bindings::ib_mr {
    result.unwrap_or_else(Error::to_ptr)
}

/// `get_dma_mr`: all of the kernel's memory.
///
/// # Safety
///
/// Called by `ib_core` with a live protection domain.
pub(super) unsafe extern "C" fn all_memory(
    pd: *mut bindings::ib_pd,
    access: i32,
) -> *mut bindings::ib_mr {
    // SAFETY: By the contract.
    pointer_or_error(unsafe { register(pd, true, rights(access as u32), Extent::All) })
}

/// `alloc_mr`: a region that work requests give its memory.
///
/// # Safety
///
/// Called by `ib_core` with a live protection domain.
pub(super) unsafe extern "C" fn allocate(
    pd: *mut bindings::ib_pd,
    kind: bindings::ib_mr_type,
    pages: u32,
) -> *mut bindings::ib_mr {
    if kind != bindings::ib_mr_type_IB_MR_TYPE_MEM_REG || pages > limits::REGION_PAGES {
        return EINVAL.to_ptr();
    }
    pointer_or_error(Pages::with_room(pages as usize).and_then(|room| {
        // SAFETY: By the contract.
        unsafe { register(pd, false, Rights::default(), Extent::Pages(room)) }
    }))
}

/// `map_mr_sg`: the memory that the next registration takes.
///
/// # Safety
///
/// Called by `ib_core` with a live region that [`allocate`] made, and a list that is mapped for the device.
pub(super) unsafe extern "C" fn map(
    mr: *mut bindings::ib_mr,
    list: *mut bindings::scatterlist,
    count: i32,
    offset: *mut u32,
) -> i32 {
    // SAFETY: By the contract.
    unsafe {
        Registered::part(mr).mapped.with(|mapped| mapped.clear());
        bindings::ib_sg_to_pages(mr, list, count, offset, Some(map_page))
    }
}

/// Adds a page to those that are mapped.
///
/// # Safety
///
/// Called by [`map`] for each page of the list.
unsafe extern "C" fn map_page(mr: *mut bindings::ib_mr, address: u64) -> i32 {
    // SAFETY: By the contract.
    let (region, size) = unsafe { (Registered::part(mr), (*mr).page_size as usize) };
    // SAFETY: As above; the device is one of ours.
    let base = unsafe { device::hca((*mr).device) }.regions.base();
    // INVARIANT: The consumer mapped the page for the device, until it has taken the registration back.
    // SAFETY: As above.
    let page = unsafe { Memory::new(address.wrapping_add(base), size) };
    let added = region
        .mapped
        .with(|mapped| mapped.push_within_capacity(page));
    if added.is_ok() {
        0
    } else {
        ENOMEM.to_errno()
    }
}

/// `dereg_mr`.
///
/// # Safety
///
/// Called by `ib_core` with a live region, for the last time.
pub(super) unsafe extern "C" fn deregister(
    mr: *mut bindings::ib_mr,
    _: *mut bindings::ib_udata,
) -> i32 {
    // SAFETY: By the contract; each region here came from `allocate`.
    unsafe {
        let hca = device::hca((*mr).device);
        let region = Registered::free(mr);
        let key = region.state.with(|state| {
            state.valid = false;
            state.key
        });
        hca.regions.remove(key);
    }
    0
}

/// `reg_user_mr`: there are no user space consumers.
///
/// # Safety
///
/// None; it is C's to call.
pub(super) unsafe extern "C" fn user_memory(
    _pd: *mut bindings::ib_pd,
    _start: u64,
    _length: u64,
    _address: u64,
    _access: i32,
    _: *mut bindings::ib_dmah,
    _: *mut bindings::ib_udata,
) -> *mut bindings::ib_mr {
    super::unsupported().to_ptr()
}

/// Writes the kernel's access flags.
pub(super) fn flags(rights: Rights) -> u32 {
    let bit = |has: bool, bit: bindings::ib_access_flags| if has { bit } else { 0 };
    bit(
        rights.local_write,
        bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE,
    ) | bit(
        rights.remote_write,
        bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE,
    ) | bit(
        rights.remote_read,
        bindings::ib_access_flags_IB_ACCESS_REMOTE_READ,
    ) | bit(
        rights.remote_atomic,
        bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC,
    )
}
