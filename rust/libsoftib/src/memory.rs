// SPDX-License-Identifier: GPL-2.0-only

//! Memory of the objects that programs have pointers to: made with `calloc`, as libibverbs makes
//! contexts, so that all of it is freed alike.

use std::ffi::{
    c_int,
    c_void, //
};
use std::mem::MaybeUninit;
use std::ptr;

extern "C" {
    fn calloc(number: usize, size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

/// A type of libibverbs that is valid with all its bytes zero.
///
/// # Safety
///
/// All bytes zero are a value of the type.
pub(crate) unsafe trait Zeroable {}

/// Returns a zeroed one.
pub(crate) const fn zeroed<T: Zeroable>() -> T {
    // SAFETY: `Zeroable` says that this is a value of the type.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// Allocates a zeroed object. Returns null, with `errno`, if there is no memory.
pub(crate) fn allocate<T: Zeroable>() -> *mut T {
    // SAFETY: `calloc` takes any numbers; the memory is aligned for every type of C.
    unsafe { calloc(1, size_of::<T>()) }.cast()
}

/// Allocates a zeroed object and has the kernel's one made by `make`, which returns an error
/// number. Returns null, with the `errno` of whatever failed, if there is no object.
pub(crate) fn create<T: Zeroable>(make: impl FnOnce(*mut T) -> c_int) -> *mut T {
    let object = allocate::<T>();
    if object.is_null() || make(object) == 0 {
        return object;
    }
    // SAFETY: It is from `allocate`, and nobody else has been given it.
    unsafe { release(object) };
    ptr::null_mut()
}

/// Frees an object unless the kernel's one stays, with the error number given. Returns that.
///
/// # Safety
///
/// The conditions of [`release`] hold where `error` is 0.
pub(crate) unsafe fn destroyed<T>(object: *mut T, error: c_int) -> c_int {
    if error == 0 {
        // SAFETY: The caller keeps the conditions of `release`.
        unsafe { release(object) };
    }
    error
}

/// Frees an object or a context.
///
/// # Safety
///
/// `object` is from [`allocate`], [`create`], or libibverbs' own `calloc`, and nobody uses it any
/// more.
pub(crate) unsafe fn release<T>(object: *mut T) {
    // SAFETY: `calloc` made it, and the caller promises that it is freed this once.
    unsafe { free(object.cast()) };
}
