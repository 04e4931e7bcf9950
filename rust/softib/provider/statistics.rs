// SPDX-License-Identifier: GPL-2.0-only

//! A port's counters, as `rdma statistic` and `hw_counters` in sysfs show them.

use kernel::str::as_char_ptr_in_const_context;

use super::device;
use crate::{
    bindings,
    hca::counters::{
        COUNT,
        NAMES, //
    }, //
};

/// The counters' names, in the form that the kernel wants.
struct Descriptions([bindings::rdma_stat_desc; COUNT]);

// SAFETY: Never written.
unsafe impl Sync for Descriptions {}

static DESCRIPTIONS: Descriptions = Descriptions(describe());

const fn describe() -> [bindings::rdma_stat_desc; COUNT] {
    let mut descriptions = [bindings::rdma_stat_desc {
        name: core::ptr::null(),
        flags: 0,
        priv_: core::ptr::null(),
    }; COUNT];
    let mut place = 0;
    while place < COUNT {
        descriptions[place].name = as_char_ptr_in_const_context(NAMES[place]);
        place += 1;
    }
    descriptions
}

/// Allocates the counters of a port (`alloc_hw_port_stats`).
///
/// # Safety
///
/// No requirements; the function is `unsafe` only by its type in the table of operations.
pub(super) unsafe extern "C" fn allocate(
    _device: *mut bindings::ib_device,
    _port: u32,
) -> *mut bindings::rdma_hw_stats {
    // SAFETY: The descriptions are static, and as many as is said.
    unsafe {
        bindings::rdma_alloc_hw_stats_struct(
            DESCRIPTIONS.0.as_ptr(),
            COUNT as i32,
            bindings::RDMA_HW_STATS_DEFAULT_LIFESPAN as usize,
        )
    }
}

/// Reads the counters of a port (`get_hw_stats`).
///
/// # Safety
///
/// Called by `ib_core` with a device of ours and what [`allocate`] made.
pub(super) unsafe extern "C" fn get(
    device: *mut bindings::ib_device,
    out: *mut bindings::rdma_hw_stats,
    port: u32,
    _index: i32,
) -> i32 {
    // SAFETY: `ib_core` gives a device of ours.
    let hca = unsafe { device::hca(device) };
    for place in 0..COUNT {
        // SAFETY: `allocate` made room for `COUNT` values.
        unsafe {
            let value = (*out).value.as_mut_ptr().add(place);
            value.write(hca.counters.get(port as u8, place));
        }
    }
    COUNT as i32
}
