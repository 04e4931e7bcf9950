// SPDX-License-Identifier: GPL-2.0-only

//! Protection domains: known by the address of the kernel's object.

use crate::bindings;

/// Nothing is to be made.
///
/// # Safety
///
/// None; it is C's to call.
pub(super) unsafe extern "C" fn alloc(
    _pd: *mut bindings::ib_pd,
    _: *mut bindings::ib_udata,
) -> i32 {
    0
}

/// Nothing is to be given up.
///
/// # Safety
///
/// None; it is C's to call.
pub(super) unsafe extern "C" fn dealloc(
    _pd: *mut bindings::ib_pd,
    _: *mut bindings::ib_udata,
) -> i32 {
    0
}

/// Names a protection domain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Domain(usize);

impl Domain {
    pub(super) fn of(pd: *const bindings::ib_pd) -> Self {
        Self(pd as usize)
    }
}
