// SPDX-License-Identifier: GPL-2.0-only

//! Allocations for which the kernel must not write pages out: those may go by an interface that
//! waits for the memory itself, as a swap file on NFS does.

use core::ffi::c_uint;

use kernel::types::NotThreadSafe;

use crate::bindings;

/// A scope in which this task allocates memory without I/O (`GFP_NOIO`), whatever the allocation
/// says, those of the device's driver included.
pub(crate) struct WithoutIo {
    /// Flags of the task that were not set before.
    flags: c_uint,
    _of_this_task: NotThreadSafe,
}

impl WithoutIo {
    /// Begins the scope, which ends with the value.
    pub(crate) fn begin() -> Self {
        Self {
            // SAFETY: Changes a flag of the task that runs here, in any context.
            flags: unsafe { bindings::oxib_memalloc_noio_save() },
            _of_this_task: core::marker::PhantomData,
        }
    }
}

impl Drop for WithoutIo {
    fn drop(&mut self) {
        // SAFETY: `NotThreadSafe` keeps the value in the task whose flags these are.
        unsafe { bindings::oxib_memalloc_noio_restore(self.flags) }
    }
}

#[kernel::prelude::kunit_tests(oxib_reclaim)]
mod tests {
    use super::*;

    #[test]
    fn scopes_nest() {
        let outer = WithoutIo::begin();
        assert!(outer.flags != 0);
        let inner = WithoutIo::begin();
        assert_eq!(inner.flags, 0);
        drop(inner);
        // The end of the inner one left it as it was.
        assert_eq!(WithoutIo::begin().flags, 0);
        drop(outer);
        assert!(WithoutIo::begin().flags != 0);
    }
}
