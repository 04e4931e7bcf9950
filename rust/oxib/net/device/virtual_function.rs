// SPDX-License-Identifier: GPL-2.0-only

//! Virtual functions of the RDMA device below (`ip link set ib0 vf 0 …`): handed to it as they
//! are.

use kernel::prelude::*;

use super::{
    table,
    Operations, //
};
use crate::{
    bindings,
    wire::hwaddr::HwAddr, //
};

/// Asks the RDMA device and port below of a net device.
///
/// # Safety
///
/// `device` is a registered one of `T`, and stays so.
unsafe fn ask<T: Operations>(
    device: *mut bindings::net_device,
    question: impl FnOnce(*mut bindings::ib_device, u32) -> i32,
) -> i32 {
    // SAFETY: The caller gives a registered device of `T`, which stays so.
    match unsafe { table::driver::<T>(device) } {
        Some(driver) => {
            let (rdma, port) = driver.place();
            question(rdma.as_raw(), port.get())
        }
        None => ENODEV.to_errno(),
    }
}

/// Implements `ndo_set_vf_link_state` by asking the RDMA device.
///
/// # Safety
///
/// Called by the stack with the RTNL held on a registered device of `T`.
pub(super) unsafe extern "C" fn set_link_state<T: Operations>(
    device: *mut bindings::net_device,
    function: i32,
    state: i32,
) -> i32 {
    // SAFETY: The stack calls this on a registered device of `T`, which stays so while the RTNL is
    // held. The RDMA device checks the numbers.
    unsafe {
        ask::<T>(device, |rdma, port| {
            bindings::ib_set_vf_link_state(rdma, function, port, state)
        })
    }
}

/// Implements `ndo_get_vf_config` by asking the RDMA device.
///
/// # Safety
///
/// The requirements of [`set_link_state`] hold; `info` is to be filled.
pub(super) unsafe extern "C" fn configuration<T: Operations>(
    device: *mut bindings::net_device,
    function: i32,
    info: *mut bindings::ifla_vf_info,
) -> i32 {
    // SAFETY: The stack calls this on a registered device of `T`, which stays so while the RTNL is
    // held; `info` is to be filled. The RDMA device checks the numbers.
    let result = unsafe {
        ask::<T>(device, |rdma, port| {
            bindings::ib_get_vf_config(rdma, function, port, info)
        })
    };
    if result == 0 {
        // SAFETY: The stack gives a valid device, and `info` to be filled; an address is shorter
        // than the field.
        unsafe {
            (*info).vf = function as u32;
            core::ptr::copy_nonoverlapping(
                (*device).dev_addr,
                (&raw mut (*info).mac).cast::<u8>(),
                HwAddr::LEN,
            );
        }
    }
    result
}

/// Implements `ndo_get_vf_stats` by asking the RDMA device.
///
/// # Safety
///
/// The requirements of [`configuration`] hold.
pub(super) unsafe extern "C" fn statistics<T: Operations>(
    device: *mut bindings::net_device,
    function: i32,
    statistics: *mut bindings::ifla_vf_stats,
) -> i32 {
    // SAFETY: The stack calls this on a registered device of `T`, which stays so while the RTNL is
    // held; `statistics` is to be filled. The RDMA device checks the numbers.
    unsafe {
        ask::<T>(device, |rdma, port| {
            bindings::ib_get_vf_stats(rdma, function, port, statistics)
        })
    }
}

/// Implements `ndo_get_vf_guid` by asking the RDMA device.
///
/// # Safety
///
/// The requirements of [`configuration`] hold.
pub(super) unsafe extern "C" fn guids<T: Operations>(
    device: *mut bindings::net_device,
    function: i32,
    node: *mut bindings::ifla_vf_guid,
    port_guid: *mut bindings::ifla_vf_guid,
) -> i32 {
    // SAFETY: The stack calls this on a registered device of `T`, which stays so while the RTNL is
    // held; `node` and `port_guid` are to be filled. The RDMA device checks the numbers.
    unsafe {
        ask::<T>(device, |rdma, port| {
            bindings::ib_get_vf_guid(rdma, function, port, node, port_guid)
        })
    }
}

/// Implements `ndo_set_vf_guid` by asking the RDMA device.
///
/// # Safety
///
/// The requirements of [`set_link_state`] hold.
pub(super) unsafe extern "C" fn set_guid<T: Operations>(
    device: *mut bindings::net_device,
    function: i32,
    guid: u64,
    kind: i32,
) -> i32 {
    // SAFETY: The stack calls this on a registered device of `T`, which stays so while the RTNL is
    // held. The RDMA device checks the numbers.
    unsafe {
        ask::<T>(device, |rdma, port| {
            bindings::ib_set_vf_guid(rdma, function, port, guid, kind)
        })
    }
}
