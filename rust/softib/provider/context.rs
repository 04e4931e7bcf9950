// SPDX-License-Identifier: GPL-2.0-only

//! Contexts: what a program has of a device from opening to closing it.

use kernel::error::from_result;

use super::udata;
use crate::bindings;

/// Makes nothing (`alloc_ucontext`): `ib_uverbs` keeps the objects of a context, and destroys
/// them when it is closed.
///
/// # Safety
///
/// Called by `ib_uverbs` with the data of its command.
pub(super) unsafe extern "C" fn alloc(
    _context: *mut bindings::ib_ucontext,
    data: *mut bindings::ib_udata,
) -> i32 {
    // SAFETY: `ib_uverbs` gives the data of its command.
    from_result(|| unsafe { udata::refuse(data) }.map(|()| 0))
}

/// Has nothing to free (`dealloc_ucontext`).
///
/// # Safety
///
/// Has no preconditions.
pub(super) unsafe extern "C" fn dealloc(_context: *mut bindings::ib_ucontext) {}

/// Has nothing to take away (`disassociate_ucontext`): programs map no memory of a device. With
/// this operation, a device goes or changes its network namespace while programs have it open,
/// and they are told `EIO`.
///
/// # Safety
///
/// Has no preconditions.
pub(super) unsafe extern "C" fn disassociate(_context: *mut bindings::ib_ucontext) {}
