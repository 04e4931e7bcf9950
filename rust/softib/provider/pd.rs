// SPDX-License-Identifier: GPL-2.0-only

//! Protection domains: known by the address of the kernel's object.

use kernel::error::from_result;

use super::{
    device,
    udata, //
};
use crate::bindings;

/// Makes nothing (`alloc_pd`): the kernel's object is all there is. A device that has failed has
/// no domains to give, and programs have a limited number.
///
/// # Safety
///
/// Called by `ib_core` with a new domain, and the data of a program's command, or null.
pub(super) unsafe extern "C" fn alloc(
    pd: *mut bindings::ib_pd,
    data: *mut bindings::ib_udata,
) -> i32 {
    from_result(|| {
        // SAFETY: `ib_core` gives the data of the command, or null.
        unsafe { udata::refuse(data) }?;
        // SAFETY: `ib_core` has filled in the domain's device, one of ours, and who has the domain.
        let (hca, domain) = unsafe { (device::hca((*pd).device), Domain::of(pd)) };
        hca.check()?;
        if domain.is_of_program() {
            hca.domains.take()?.keep();
        }
        Ok(0)
    })
}

/// Has nothing to free (`dealloc_pd`).
///
/// # Safety
///
/// Called by `ib_core` with a live domain, for the last time.
pub(super) unsafe extern "C" fn dealloc(
    pd: *mut bindings::ib_pd,
    _: *mut bindings::ib_udata,
) -> i32 {
    // SAFETY: The domain is live, and names its device, which is one of ours.
    let (hca, domain) = unsafe { (device::hca((*pd).device), Domain::of(pd)) };
    if domain.is_of_program() {
        hca.domains.give_back();
    }
    0
}

/// The name of a protection domain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Domain {
    address: usize,
    of_program: bool,
}

impl Domain {
    /// Returns the name of a protection domain.
    ///
    /// # Safety
    ///
    /// `pd` is live.
    pub(super) unsafe fn of(pd: *const bindings::ib_pd) -> Self {
        Self {
            address: pd as usize,
            // SAFETY: The caller keeps the domain alive; `ib_core` sets the field before the device
            // sees the domain.
            of_program: unsafe { !(*pd).uobject.is_null() },
        }
    }

    /// Returns whether a program has it. Its work requests name memory by keys of regions alone:
    /// the key of all memory is the kernel's.
    #[inline]
    pub(crate) fn is_of_program(self) -> bool {
        self.of_program
    }
}
