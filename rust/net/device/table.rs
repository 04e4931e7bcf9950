// SPDX-License-Identifier: GPL-2.0-only

//! The C tables of operations of a net device, and what fills a fresh one.

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::Arc,
    time::msecs_to_jiffies, //
};

use super::{
    private,
    Operations,
    MAX_MTU,
    MIN_MTU, //
};
use crate::{
    bindings,
    net::{
        ethtool,
        queue::Queue,
        rtnl::Rtnl,
        skb::Skb, //
    },
    wire::{
        encap,
        hwaddr::HwAddr, //
    }, //
};

/// How long a queue may be stopped until the watchdog gives alarm, in milliseconds.
const WATCHDOG: u32 = 5000;

/// The driver of a registered device.
///
/// # Safety
///
/// `device` was made by [`Device::<T>::new`](super::Device::new) and is registered; it stays so for `'a`.
#[inline(always)]
pub(super) unsafe fn driver<'a, T: Operations>(
    device: *mut bindings::net_device,
) -> Option<&'a Arc<T>> {
    // SAFETY: By the contract the private area is initialised and shared.
    unsafe { (*(*private::<T>(device)).driver.get()).as_ref() }
}

/// Fills a fresh device.
///
/// # Safety
///
/// `device` is being allocated.
pub(super) unsafe extern "C" fn setup<T: Operations>(device: *mut bindings::net_device) {
    // SAFETY: By the contract the device is valid and nobody else has it.
    let device = unsafe { &mut *device };
    device.netdev_ops = &Table::<T>::NET;
    device.header_ops = &Table::<T>::HEADER;
    device.ethtool_ops = &ethtool::Table::<T>::OPERATIONS;
    device.watchdog_timeo = msecs_to_jiffies(WATCHDOG) as i32;
    device.flags |=
        bindings::net_device_flags_IFF_BROADCAST | bindings::net_device_flags_IFF_MULTICAST;
    device.hard_header_len = encap::HARD_LEN as u16;
    device.addr_len = HwAddr::LEN as u8;
    device.type_ = bindings::ARPHRD_INFINIBAND as u16;
    device.tx_queue_len = 1000;
    device.min_mtu = MIN_MTU;
    device.max_mtu = MAX_MTU;
    // SAFETY: Sets fields that Rust sees as bit fields.
    unsafe { bindings::oxib_netdev_setup(device) };
}

/// The C tables of operations for a driver `T`.
struct Table<T>(core::marker::PhantomData<T>);

impl<T: Operations> Table<T> {
    const NET: bindings::net_device_ops = bindings::net_device_ops {
        ndo_open: Some(Self::open),
        ndo_stop: Some(Self::stop),
        ndo_start_xmit: Some(Self::start_xmit),
        ndo_change_mtu: Some(Self::change_mtu),
        ndo_set_rx_mode: Some(Self::set_rx_mode),
        ndo_tx_timeout: Some(Self::tx_timeout),
        // SAFETY: Null function pointers are `None`, valid for each slot.
        ..unsafe { core::mem::zeroed() }
    };

    const HEADER: bindings::header_ops = bindings::header_ops {
        create: Some(Self::create_header),
        // SAFETY: As above.
        ..unsafe { core::mem::zeroed() }
    };

    /// # Safety
    ///
    /// Called by the stack on a registered device of ours, with the RTNL held.
    unsafe extern "C" fn open(device: *mut bindings::net_device) -> i32 {
        kernel::error::from_result(|| {
            // SAFETY: By the contract, for both.
            let (driver, mut rtnl) = unsafe { (driver::<T>(device), Rtnl::assume_held()) };
            driver.ok_or(ENODEV)?.open(&mut rtnl)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// As [`Self::open`].
    unsafe extern "C" fn stop(device: *mut bindings::net_device) -> i32 {
        // SAFETY: By the contract, for both.
        let (driver, mut rtnl) = unsafe { (driver::<T>(device), Rtnl::assume_held()) };
        if let Some(driver) = driver {
            driver.stop(&mut rtnl);
        }
        0
    }

    /// # Safety
    ///
    /// As [`Self::open`].
    unsafe extern "C" fn change_mtu(device: *mut bindings::net_device, mtu: i32) -> i32 {
        kernel::error::from_result(|| {
            // SAFETY: By the contract, for both.
            let (driver, mut rtnl) = unsafe { (driver::<T>(device), Rtnl::assume_held()) };
            driver.ok_or(ENODEV)?.change_mtu(&mut rtnl, mtu as u32)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Called by the stack on a registered device of ours.
    unsafe extern "C" fn set_rx_mode(device: *mut bindings::net_device) {
        // SAFETY: By the contract.
        if let Some(driver) = unsafe { driver::<T>(device) } {
            driver.multicast_changed();
        }
    }

    /// # Safety
    ///
    /// Called by the stack on a registered device of ours.
    unsafe extern "C" fn tx_timeout(device: *mut bindings::net_device, queue: u32) {
        // SAFETY: By the contract.
        if let Some(driver) = unsafe { driver::<T>(device) } {
            driver.transmit_timeout(queue);
        }
    }

    /// # Safety
    ///
    /// Called by the stack on a registered device of ours, with the lock of the packet's queue
    /// held; the packet is given.
    unsafe extern "C" fn start_xmit(
        skb: *mut bindings::sk_buff,
        device: *mut bindings::net_device,
    ) -> bindings::netdev_tx_t {
        // SAFETY: By the contract the packet is valid and ours now.
        let (packet, index) = unsafe {
            let index = (*skb).queue_mapping as usize;
            (Skb::from_raw(NonNull::new_unchecked(skb)), index)
        };
        // SAFETY: By the contract the private area is initialised, and shared.
        let private = unsafe { &*private::<T>(device) };
        // SAFETY: The device is registered, so the driver is there and stays.
        let driver = unsafe { (*private.driver.get()).as_ref() };
        if let (Some(driver), Some(cell)) = (driver, private.queues.get(index)) {
            // SAFETY: The stack holds the lock of queue `index`, under which alone this is touched.
            if let Some(data) = unsafe { &mut *cell.get() } {
                // SAFETY: The device has that queue; its lock is held until we return.
                let queue = unsafe { Queue::from_raw((*device)._tx.add(index)) };
                driver.transmit(data, queue, packet);
                return bindings::netdev_tx_NETDEV_TX_OK;
            }
        }
        // SAFETY: The device is valid.
        unsafe { bindings::oxib_count_tx_dropped(device) };
        // A packet that found no queue was freed by its drop.
        bindings::netdev_tx_NETDEV_TX_OK
    }

    /// Builds the link-layer header in front of a packet: destination address, then encapsulation.
    ///
    /// # Safety
    ///
    /// Called by the stack; `destination` is 20 bytes or null.
    unsafe extern "C" fn create_header(
        skb: *mut bindings::sk_buff,
        _device: *mut bindings::net_device,
        ethertype: c_ushort,
        destination: *const c_void,
        _source: *const c_void,
        _len: c_uint,
    ) -> i32 {
        let mut header = [0u8; encap::HARD_LEN];
        let (address, rest) = header.split_at_mut(HwAddr::LEN);
        if destination.is_null() {
            // Not complete: the stack does not send it.
            return -(encap::HARD_LEN as i32);
        }
        // SAFETY: By the contract the address has the length of the device's addresses.
        address.copy_from_slice(unsafe { &*destination.cast::<[u8; HwAddr::LEN]>() });
        rest[..2].copy_from_slice(&ethertype.to_be_bytes());
        // SAFETY: The packet is valid; the borrow ends with this function.
        let packet = unsafe {
            &mut *core::mem::ManuallyDrop::new(Skb::from_raw(NonNull::new_unchecked(skb)))
        };
        match packet.push(&header) {
            Ok(()) => encap::HARD_LEN as i32,
            Err(_) => -(encap::HARD_LEN as i32),
        }
    }
}
