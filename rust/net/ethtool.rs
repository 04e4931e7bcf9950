// SPDX-License-Identifier: GPL-2.0-only

//! What `ethtool` shows: driver, rings, queues, statistics.

use core::marker::PhantomData;

use super::device::{
    Device,
    Operations, //
};
use crate::bindings;

/// Lengths of the rings, in packets.
#[derive(Clone, Copy)]
pub(crate) struct Rings {
    /// Of each send ring.
    pub(crate) send: u32,
    /// Of the receive ring.
    pub(crate) receive: u32,
    /// The largest that either can have.
    pub(crate) max: u32,
}

/// The C table of operations for a driver `T`.
pub(super) struct Table<T>(PhantomData<T>);

impl<T: Operations> Table<T> {
    pub(super) const OPERATIONS: bindings::ethtool_ops = bindings::ethtool_ops {
        get_drvinfo: Some(Self::drvinfo),
        get_link: Some(bindings::ethtool_op_get_link),
        get_ringparam: Some(Self::ringparam),
        get_channels: Some(Self::channels),
        get_strings: Some(Self::strings),
        get_sset_count: Some(Self::count),
        get_ethtool_stats: Some(Self::statistics),
        // SAFETY: Null function pointers are `None`, zero numbers mean "nothing special".
        ..unsafe { core::mem::zeroed() }
    };

    /// # Safety
    ///
    /// Called by the stack on a registered device of ours; `info` is valid.
    unsafe extern "C" fn drvinfo(
        device: *mut bindings::net_device,
        info: *mut bindings::ethtool_drvinfo,
    ) {
        // SAFETY: By the contract.
        let (info, parent) = unsafe { (&mut *info, Device::<T>::parent_name(device)) };
        copy_text(&mut info.driver, b"oxib");
        copy_text(&mut info.version, bindings::OXIB_VERSION);
        copy_text(&mut info.bus_info, parent.to_bytes());
    }

    /// # Safety
    ///
    /// As [`Self::drvinfo`].
    unsafe extern "C" fn ringparam(
        device: *mut bindings::net_device,
        rings: *mut bindings::ethtool_ringparam,
        _kernel_rings: *mut bindings::kernel_ethtool_ringparam,
        _extack: *mut bindings::netlink_ext_ack,
    ) {
        // SAFETY: By the contract.
        let (out, driver) = unsafe { (&mut *rings, Device::<T>::driver_of(device)) };
        if let Some(driver) = driver {
            let rings = driver.rings();
            out.tx_pending = rings.send;
            out.rx_pending = rings.receive;
            out.tx_max_pending = rings.max;
            out.rx_max_pending = rings.max;
        }
    }

    /// # Safety
    ///
    /// As [`Self::drvinfo`].
    unsafe extern "C" fn channels(
        device: *mut bindings::net_device,
        channels: *mut bindings::ethtool_channels,
    ) {
        // SAFETY: By the contract.
        let (out, queues) = unsafe { (&mut *channels, (*device).real_num_tx_queues) };
        out.max_tx = queues;
        out.tx_count = queues;
        out.max_rx = 1;
        out.rx_count = 1;
    }

    /// # Safety
    ///
    /// As [`Self::drvinfo`]; `data` has room for what [`Self::count`] said.
    unsafe extern "C" fn strings(_device: *mut bindings::net_device, set: u32, data: *mut u8) {
        if set != bindings::ethtool_stringset_ETH_SS_STATS {
            return;
        }
        const LEN: usize = bindings::ETH_GSTRING_LEN as usize;
        for (i, name) in T::STATISTICS.iter().enumerate() {
            // SAFETY: By the contract there are `LEN` bytes per name.
            let slot = unsafe { &mut *data.add(i * LEN).cast::<[u8; LEN]>() };
            copy_text(slot, name.to_bytes());
        }
    }

    /// # Safety
    ///
    /// As [`Self::drvinfo`].
    unsafe extern "C" fn count(_device: *mut bindings::net_device, set: i32) -> i32 {
        if set as u32 == bindings::ethtool_stringset_ETH_SS_STATS {
            T::STATISTICS.len() as i32
        } else {
            -(bindings::EOPNOTSUPP as i32)
        }
    }

    /// # Safety
    ///
    /// As [`Self::drvinfo`]; `values` has room for what [`Self::count`] said.
    unsafe extern "C" fn statistics(
        device: *mut bindings::net_device,
        _stats: *mut bindings::ethtool_stats,
        values: *mut u64,
    ) {
        // SAFETY: By the contract.
        let (values, driver) = unsafe {
            (
                core::slice::from_raw_parts_mut(values, T::STATISTICS.len()),
                Device::<T>::driver_of(device),
            )
        };
        if let Some(driver) = driver {
            driver.statistics(values);
        }
    }
}

/// Copies text into a fixed field, cut to fit and NUL-terminated.
fn copy_text(field: &mut [u8], text: &[u8]) {
    let len = core::cmp::min(text.len(), field.len().saturating_sub(1));
    let (head, tail) = field.split_at_mut(len);
    head.copy_from_slice(&text[..len]);
    tail.fill(0);
}
