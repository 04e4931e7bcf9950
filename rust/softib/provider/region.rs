// SPDX-License-Identifier: GPL-2.0-only

//! Memory regions, as `ib_core` registers and deregisters them.

use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

use super::{
    device,
    memory::Memory,
    object::Object,
    pd::Domain,
    udata,
    user_memory::UserMemory, //
};
use crate::{
    bindings,
    hca::{
        limits,
        region::{
            Extent,
            Pages,
            Pinned,
            Region,
            Rights, //
        }, //
    }, //
};

/// A region of the kernel with ours.
pub(super) type Registered = Object<bindings::ib_mr, Part>;

/// The device's part of a region of the kernel.
pub(super) struct Part {
    pub(super) region: Arc<Region>,
}

/// The kernel's memory at an address that a peer named, which the consumer opened all of to it.
pub(crate) fn kernel_memory(address: u64, length: usize) -> Option<Memory> {
    // SAFETY: Looks at the address alone.
    if !unsafe { bindings::softib_is_memory(address, length) } {
        return None;
    }
    // INVARIANT: The bytes are mapped, and the consumer gave all memory to the device when it
    // made the region.
    // SAFETY: `softib_is_memory` found the bytes mapped, and the consumer opened them to the peer.
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
/// # Errors
///
/// `ENOMEM`; `EIO` from a device that has failed.
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
    // SAFETY: The caller keeps `pd`, and with it its device.
    let (hca, domain) = unsafe { (device::hca((*pd).device), Domain::of(pd)) };
    hca.check()?;
    // Not to be used before it has the memory for good.
    let region = hca.regions.add(domain, false, rights, extent)?;
    let key = region.state.with(|state| state.key);
    let part = Part {
        region: region.clone(),
    };
    let mr = Registered::allocate(part).inspect_err(|_| {
        let _ = region.end();
        hca.regions.remove(key);
    })?;
    region.state.with(|state| state.valid = valid);
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

/// Registers all of the kernel's memory (`get_dma_mr`).
///
/// # Safety
///
/// Called by `ib_core` with a live protection domain.
pub(super) unsafe extern "C" fn all_memory(
    pd: *mut bindings::ib_pd,
    access: i32,
) -> *mut bindings::ib_mr {
    // SAFETY: `ib_core` gives a live protection domain.
    pointer_or_error(unsafe { register(pd, true, rights(access as u32), Extent::All) })
}

/// Makes a region that work requests give its memory (`alloc_mr`).
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
        // SAFETY: `ib_core` gives a live protection domain.
        unsafe { register(pd, false, Rights::default(), Extent::Pages(room)) }
    }))
}

/// Maps the memory that the next registration takes (`map_mr_sg`).
///
/// # Safety
///
/// Called by `ib_core` with a live region that [`allocate`] made, and a list that is mapped for
/// the device.
pub(super) unsafe extern "C" fn map(
    mr: *mut bindings::ib_mr,
    list: *mut bindings::scatterlist,
    count: i32,
    offset: *mut u32,
) -> i32 {
    // SAFETY: `mr` is live and was made by `allocate`; `list` has `count` entries that are mapped
    // for the device.
    unsafe {
        let region = &Registered::part(mr).region;
        region.mapped.with(|mapped| mapped.clear());
        bindings::ib_sg_to_pages(mr, list, count, offset, Some(map_page))
    }
}

/// Adds a page to those that are mapped.
///
/// # Safety
///
/// Called by [`map`] for each page of the list.
unsafe extern "C" fn map_page(mr: *mut bindings::ib_mr, address: u64) -> i32 {
    // SAFETY: `map` gives the live region that it was called with, whose page size is set.
    let (region, size) = unsafe { (&Registered::part(mr).region, (*mr).page_size as usize) };
    // SAFETY: A live region names its device, which is one of ours.
    let base = unsafe { device::hca((*mr).device) }.regions.base();
    // INVARIANT: The consumer mapped the page for the device, until it has taken the registration
    // back.
    // SAFETY: The page is mapped for the device, so there is memory at its address for as long.
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

/// Deregisters and frees a region (`dereg_mr`).
///
/// # Safety
///
/// Called by `ib_core` with a live region, for the last time.
pub(super) unsafe extern "C" fn deregister(
    mr: *mut bindings::ib_mr,
    _: *mut bindings::ib_udata,
) -> i32 {
    // SAFETY: `mr` is live, was made by `register`, and is not used after this call.
    unsafe {
        let hca = device::hca((*mr).device);
        let part = Registered::free(mr);
        let (extent, key) = part.region.end();
        hca.regions.remove(key);
        // Unpins memory of a program, which nothing reaches any more.
        drop(extent);
    }
    0
}

/// The access flags that a program may ask for. Those that are optional change nothing here. The
/// addresses in a region are those of the program: none begins at 0 (`IB_ZERO_BASED`).
const OF_PROGRAMS: u32 = bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE
    | bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE
    | bindings::ib_access_flags_IB_ACCESS_REMOTE_READ
    | bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC
    | bindings::ib_access_flags_IB_ACCESS_HUGETLB
    | bindings::ib_access_flags_IB_ACCESS_OPTIONAL;

/// Pins and registers memory of a program (`reg_user_mr`).
///
/// # Safety
///
/// Called by `ib_core` with a live protection domain, for the process that has the memory.
pub(super) unsafe extern "C" fn register_user(
    pd: *mut bindings::ib_pd,
    start: u64,
    length: u64,
    address: u64,
    access: i32,
    dma_hints: *mut bindings::ib_dmah,
    data: *mut bindings::ib_udata,
) -> *mut bindings::ib_mr {
    // SAFETY: `ib_core` gives the data of the command.
    if let Err(error) = unsafe { udata::refuse(data) } {
        return error.to_ptr();
    }
    if !dma_hints.is_null() {
        return super::unsupported().to_ptr();
    }
    // SAFETY: `ib_core` keeps `pd`, and with it its device, during the call. Nobody else has the
    // new object yet; `ib_core` does not always fill these in.
    pointer_or_error(unsafe {
        pin((*pd).device, start, length, address, access).and_then(|pinned| {
            let mr = register(pd, true, rights(access as u32), Extent::Pinned(pinned))?;
            (*mr).iova = address;
            (*mr).length = length;
            Ok(mr)
        })
    })
}

/// Pins memory of the calling process.
///
/// # Safety
///
/// `device` is one of ours that stays registered until the memory is no longer pinned.
unsafe fn pin(
    device: *mut bindings::ib_device,
    start: u64,
    length: u64,
    address: u64,
    access: i32,
) -> Result<Pinned> {
    if access as u32 & !OF_PROGRAMS != 0 {
        return Err(super::unsupported());
    }
    address.checked_add(length).ok_or(EINVAL)?;
    // SAFETY: The caller keeps the device.
    let memory = unsafe { UserMemory::new(device, start, length, access)? };
    Ok(Pinned {
        runs: memory.runs()?,
        address,
        offset: start as usize & (PAGE_SIZE - 1),
        length,
        memory,
    })
}

/// Changes the memory, the rights and the domain of a region, under the same key
/// (`rereg_user_mr`). If something is refused, the region stays as it was.
///
/// # Safety
///
/// Called by `ib_core` with live objects: a region that [`register_user`] made, and its protection
/// domain or another one.
pub(super) unsafe extern "C" fn change(
    mr: *mut bindings::ib_mr,
    flags: i32,
    start: u64,
    length: u64,
    address: u64,
    access: i32,
    pd: *mut bindings::ib_pd,
    data: *mut bindings::ib_udata,
) -> *mut bindings::ib_mr {
    // SAFETY: `ib_core` gives the data of the command.
    if let Err(error) = unsafe { udata::refuse(data) } {
        return error.to_ptr();
    }
    // SAFETY: `ib_core` keeps `pd`, and with it its device, during the call.
    if let Err(error) = unsafe { device::hca((*pd).device) }.check() {
        return error.to_ptr();
    }
    let changes = |bit: i32| flags & bit != 0;
    let translation = changes(bindings::ib_mr_rereg_flags_IB_MR_REREG_TRANS as i32)
        .then_some((start, length, address));
    let access = changes(bindings::ib_mr_rereg_flags_IB_MR_REREG_ACCESS as i32).then_some(access);
    // SAFETY: `ib_core` keeps `mr` during the call.
    let region = unsafe { &Registered::part(mr).region };
    let now = region.state.with(|state| match &state.extent {
        Extent::Pinned(pinned) => Some((
            flags_of(state.rights) as i32,
            (pinned.memory.start(), pinned.length, pinned.address),
            pinned.memory.is_own(),
        )),
        _ => None,
    });
    let Some((access_now, translation_now, is_own)) = now else {
        return EINVAL.to_ptr();
    };
    let access = access.unwrap_or(access_now);
    // SAFETY: `ib_core` keeps `pd` during the call.
    let domain = unsafe { Domain::of(pd) };
    // Other memory may be at the addresses by now, and the key goes on naming the pinned one.
    let stays = translation.is_none() && access as u32 & !OF_PROGRAMS == 0;
    if stays && region.permit(domain, rights(access as u32)) {
        return core::ptr::null_mut();
    }
    // The same addresses may be others' memory in another process.
    if translation.is_none() && !is_own {
        return EINVAL.to_ptr();
    }
    let (start, length, address) = translation.unwrap_or(translation_now);
    // SAFETY: `ib_core` keeps `pd`, and with it its device, during the call.
    match unsafe { pin((*pd).device, start, length, address, access) } {
        Ok(pinned) => {
            // Unpins the memory that was replaced.
            drop(region.change(domain, rights(access as u32), Extent::Pinned(pinned)));
            core::ptr::null_mut()
        }
        Err(error) => error.to_ptr(),
    }
}

/// Writes the kernel's access flags.
pub(super) fn flags_of(rights: Rights) -> u32 {
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
