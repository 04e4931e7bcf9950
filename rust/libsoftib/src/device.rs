// SPDX-License-Identifier: GPL-2.0-only

//! Devices and contexts: which devices are this library's, and what is made when a program opens
//! one.

use crate::abi;
use crate::libibverbs::{
    self,
    ib_uverbs_get_context_resp,
    ibv_context,
    ibv_device,
    ibv_get_context,
    verbs_context,
    verbs_device,
    verbs_device_ops,
    verbs_match_ent,
    verbs_sysfs_dev, //
};
use crate::memory;
use crate::verbs;
use std::ffi::{
    c_int,
    c_void, //
};
use std::mem::offset_of;
use std::ptr;

/// The devices of this library: those of softib.ko, which gives them its identifier.
static DEVICES: [verbs_match_ent; 2] = [
    verbs_match_ent {
        driver_data: ptr::null_mut(),
        u: abi::SOFTIB_DRIVER_ID as u64,
        vendor: 0,
        device: 0,
        kind: libibverbs::VERBS_MATCH_DRIVER_ID,
    },
    memory::zeroed(),
];

/// The functions that libibverbs calls for devices.
pub(crate) static OPERATIONS: verbs_device_ops = verbs_device_ops {
    name: c"softib".as_ptr(),
    match_min_abi_version: abi::SOFTIB_ABI_VERSION,
    match_max_abi_version: abi::SOFTIB_ABI_VERSION,
    match_table: DEVICES.as_ptr(),
    static_providers: ptr::null(),
    match_device: None,
    alloc_context: Some(alloc_context),
    import_context: None,
    alloc_device: Some(alloc_device),
    uninit_device: Some(uninit_device),
};

unsafe extern "C" fn alloc_device(_: *mut verbs_sysfs_dev) -> *mut verbs_device {
    memory::allocate()
}

unsafe extern "C" fn uninit_device(device: *mut verbs_device) {
    // SAFETY: libibverbs has it from `alloc_device`, and calls this when nobody uses it any more.
    unsafe { memory::release(device) };
}

unsafe extern "C" fn alloc_context(
    device: *mut ibv_device,
    file: c_int,
    _private: *mut c_void,
) -> *mut verbs_context {
    let mut command = ibv_get_context::new();
    let mut response = ib_uverbs_get_context_resp::new();
    // SAFETY: `device` is a device that libibverbs opens, and `file` its file. The memory asked
    // for is that of a context with nothing before it.
    let context = unsafe {
        libibverbs::_verbs_init_and_alloc_context(
            device,
            file,
            size_of::<verbs_context>(),
            ptr::null_mut(),
            abi::SOFTIB_DRIVER_ID,
        )
    }
    .cast::<verbs_context>();
    if context.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: The context is the one just made. The buffers have the sizes given.
    let error = unsafe {
        libibverbs::ibv_cmd_get_context(
            context,
            &mut command,
            ibv_get_context::SIZE,
            &mut response,
            ib_uverbs_get_context_resp::SIZE,
        )
    };
    if error != 0 {
        // SAFETY: The context is the one just made, which nobody else has been given.
        unsafe { end_context(context) };
        return ptr::null_mut();
    }
    // SAFETY: The context is the one just made; the table is a static, of which libibverbs takes a
    // copy.
    unsafe { libibverbs::verbs_set_ops(context, &verbs::OPERATIONS) };
    context
}

/// Frees a context: the verb `free_context`.
pub(crate) unsafe extern "C" fn free_context(context: *mut ibv_context) {
    // SAFETY: A context of this library is in the memory of a `verbs_context`, see
    // `alloc_context`.
    let context = unsafe { context.byte_sub(offset_of!(verbs_context, context)) };
    // SAFETY: libibverbs calls this for a context that it closes.
    unsafe { end_context(context.cast()) };
}

/// Undoes `_verbs_init_and_alloc_context`, and frees the memory.
///
/// # Safety
///
/// `context` is from there, and nobody uses it any more.
unsafe fn end_context(context: *mut verbs_context) {
    // SAFETY: The caller keeps both conditions; libibverbs has allocated it by `calloc`.
    unsafe {
        libibverbs::verbs_uninit_context(context);
        memory::release(context);
    }
}
