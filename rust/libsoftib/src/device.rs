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
    c_void,
    CStr,
    OsStr, //
};
use std::fs;
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// The table of devices: it knows none. libibverbs looks into that of each library for the numbers
/// of other drivers, so there has to be one.
static NO_DEVICES: verbs_match_ent = verbs_match_ent {
    driver_data: ptr::null_mut(),
    u: 0,
    vendor: 0,
    device: 0,
    kind: 0,
};

/// The functions that libibverbs calls for devices.
pub(crate) static OPERATIONS: verbs_device_ops = verbs_device_ops {
    name: c"softib".as_ptr(),
    match_min_abi_version: abi::SOFTIB_ABI_VERSION,
    match_max_abi_version: abi::SOFTIB_ABI_VERSION,
    match_table: &raw const NO_DEVICES,
    static_providers: ptr::null(),
    match_device: Some(match_device),
    alloc_context: Some(alloc_context),
    import_context: None,
    alloc_device: Some(alloc_device),
    uninit_device: Some(uninit_device),
};

/// Whether a device with such a link to its parent is softib's. The kernel has no number for this
/// driver, but all its devices are children of the same one.
fn is_softib(parent: &Path) -> bool {
    parent.file_name() == Some(OsStr::new("softib"))
}

unsafe extern "C" fn match_device(device: *mut verbs_sysfs_dev) -> bool {
    // SAFETY: libibverbs has a device, whose path it has ended with a zero.
    let path = unsafe { CStr::from_ptr((&raw const (*device).ibdev_path).cast()) };
    let link = Path::new(OsStr::from_bytes(path.to_bytes())).join("device");
    fs::read_link(link).is_ok_and(|parent| is_softib(&parent))
}

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
            libibverbs::RDMA_DRIVER_UNKNOWN,
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
    // SAFETY: As above; the table is a static, of which libibverbs takes a copy.
    unsafe { libibverbs::verbs_set_ops(context, &verbs::OPERATIONS) };
    context
}

/// The verb `free_context`.
pub(crate) unsafe extern "C" fn free_context(context: *mut ibv_context) {
    // SAFETY: A context of this library is in the memory of a `verbs_context`, see
    // `alloc_context`.
    let context = unsafe { context.byte_sub(offset_of!(verbs_context, context)) };
    // SAFETY: libibverbs calls this for a context that it closes.
    unsafe { end_context(context.cast()) };
}

/// Undoes `_verbs_init_and_alloc_context`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_softib_are_known() {
        assert!(is_softib(Path::new("../../../softib")));
        for other in [
            "../../../softib0",
            "../../../rxe",
            "../softib/rxe0",
            "",
            "..",
        ] {
            assert!(!is_softib(Path::new(other)), "{other}");
        }
    }
}
