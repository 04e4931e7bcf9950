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
    virtual_function,
    Operations,
    MAX_MTU,
    MIN_MTU, //
};
use crate::{
    bindings,
    net::{
        ethtool,
        queue::Queue,
        queue_statistics,
        rtnl::Rtnl,
        skb::Skb, //
    },
    wire::{
        encap,
        hwaddr::HwAddr, //
    }, //
};

/// Time that a queue may be stopped until the watchdog reports it, in milliseconds.
const WATCHDOG: u32 = 5000;

/// The driver of a registered device.
///
/// # Safety
///
/// `device` was made by [`Device::<T>::new`](super::Device::new) and is registered; it stays so
/// for `'a`.
#[inline(always)]
pub(super) unsafe fn driver<'a, T: Operations>(
    device: *mut bindings::net_device,
) -> Option<&'a Arc<T>> {
    // SAFETY: The caller gives a device of `T`, so the private area is initialised; while the
    // device is registered, the field is only read.
    unsafe { (*(*private::<T>(device)).driver.get()).as_ref() }
}

/// Returns whether `device` was made for a driver `T`.
///
/// # Safety
///
/// `device` is valid.
pub(super) unsafe fn is_ours<T: Operations>(device: *const bindings::net_device) -> bool {
    // SAFETY: The caller gives a valid device; its operations live as long as it does.
    let operations = unsafe { (*device).netdev_ops.as_ref() };
    let open: unsafe extern "C" fn(*mut bindings::net_device) -> i32 = Table::<T>::open;
    operations
        .and_then(|operations| operations.ndo_open)
        .is_some_and(|theirs| core::ptr::fn_addr_eq(theirs, open))
}

/// Fills a fresh device.
///
/// # Safety
///
/// `device` is being allocated.
pub(in crate::net) unsafe extern "C" fn setup<T: Operations>(device: *mut bindings::net_device) {
    // SAFETY: The stack is allocating the device: it is valid, and nobody else has it.
    let device = unsafe { &mut *device };
    device.netdev_ops = operations::<T>(false);
    device.header_ops = &Table::<T>::HEADER;
    device.ethtool_ops = &ethtool::Table::<T>::OPERATIONS;
    device.stat_ops = &queue_statistics::Table::<T>::OPERATIONS;
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

/// The table of a device, of one with connections or of one without.
pub(super) fn operations<T: Operations>(connected: bool) -> *const bindings::net_device_ops {
    if connected {
        &Table::<T>::NET_CONNECTED
    } else {
        &Table::<T>::NET
    }
}

/// The C tables of operations for a driver `T`.
struct Table<T>(core::marker::PhantomData<T>);

impl<T: Operations> Table<T> {
    const NET: bindings::net_device_ops = bindings::net_device_ops {
        ndo_open: Some(Self::open),
        ndo_stop: Some(Self::stop),
        ndo_start_xmit: Some(Self::start_xmit),
        ndo_uninit: Some(Self::uninit),
        ndo_change_mtu: Some(Self::change_mtu),
        ndo_set_mac_address: Some(Self::set_mac_address),
        ndo_get_iflink: Some(Self::iflink),
        ndo_set_vf_link_state: Some(virtual_function::set_link_state::<T>),
        ndo_get_vf_config: Some(virtual_function::configuration::<T>),
        ndo_get_vf_stats: Some(virtual_function::statistics::<T>),
        ndo_get_vf_guid: Some(virtual_function::guids::<T>),
        ndo_set_vf_guid: Some(virtual_function::set_guid::<T>),
        ndo_set_rx_mode: Some(Self::set_rx_mode),
        ndo_tx_timeout: Some(Self::tx_timeout),
        ndo_features_check: Some(bindings::oxib_features_check),
        ..pin_init::zeroed()
    };

    const NET_CONNECTED: bindings::net_device_ops = bindings::net_device_ops {
        ndo_select_queue: Some(Self::select_queue),
        ndo_fix_features: Some(bindings::oxib_fix_connected_features),
        ..Self::NET
    };

    const HEADER: bindings::header_ops = bindings::header_ops {
        create: Some(Self::create_header),
        ..pin_init::zeroed()
    };

    /// Implements `ndo_open` with `Operations::open`.
    ///
    /// # Safety
    ///
    /// Called by the stack on a registered device of ours, with the RTNL held.
    unsafe extern "C" fn open(device: *mut bindings::net_device) -> i32 {
        kernel::error::from_result(|| {
            // SAFETY: The stack calls this on a registered device of ours, and holds the RTNL
            // meanwhile.
            let (driver, mut rtnl) = unsafe { (driver::<T>(device), Rtnl::assume_held()) };
            driver.ok_or(ENODEV)?.open(&mut rtnl)?;
            Ok(0)
        })
    }

    /// Implements `ndo_stop` with `Operations::stop`.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::open`] hold.
    unsafe extern "C" fn stop(device: *mut bindings::net_device) -> i32 {
        // SAFETY: The stack calls this on a registered device of ours, and holds the RTNL
        // meanwhile.
        let (driver, mut rtnl) = unsafe { (driver::<T>(device), Rtnl::assume_held()) };
        if let Some(driver) = driver {
            driver.stop(&mut rtnl);
        }
        0
    }

    /// Implements `ndo_change_mtu` with `Operations::change_mtu`.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::open`] hold.
    unsafe extern "C" fn change_mtu(device: *mut bindings::net_device, mtu: i32) -> i32 {
        kernel::error::from_result(|| {
            // SAFETY: The stack calls this on a registered device of ours, and holds the RTNL
            // meanwhile.
            let (driver, mut rtnl) = unsafe { (driver::<T>(device), Rtnl::assume_held()) };
            driver.ok_or(ENODEV)?.change_mtu(&mut rtnl, mtu as u32)?;
            Ok(0)
        })
    }

    /// Implements `ndo_uninit` with `Operations::leaving`.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::open`] hold, except that the device may be one that could not
    /// be registered.
    unsafe extern "C" fn uninit(device: *mut bindings::net_device) {
        // SAFETY: The stack calls this on a device of ours, and holds the RTNL meanwhile. The
        // device is registered, or could not be: then `show` still keeps its driver in place.
        let (driver, mut rtnl) = unsafe { (driver::<T>(device), Rtnl::assume_held()) };
        if let Some(driver) = driver {
            driver.leaving(&mut rtnl);
        }
    }

    /// Implements `ndo_set_mac_address` with `Operations::set_mac_address`.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::open`] hold; `address` is a `sockaddr` with room for the
    /// device's addresses.
    unsafe extern "C" fn set_mac_address(
        device: *mut bindings::net_device,
        address: *mut c_void,
    ) -> i32 {
        kernel::error::from_result(|| {
            // SAFETY: The stack calls this on a registered device of ours, and holds the RTNL
            // meanwhile.
            let (driver, mut rtnl) = unsafe { (driver::<T>(device), Rtnl::assume_held()) };
            // SAFETY: The stack gives a `sockaddr` with room for an address of the device, which
            // stands behind the family.
            let bytes = unsafe {
                *address
                    .cast::<u8>()
                    .add(bindings::OXIB_SOCKADDR_DATA as usize)
                    .cast::<[u8; HwAddr::LEN]>()
            };
            driver
                .ok_or(ENODEV)?
                .set_mac_address(&mut rtnl, HwAddr::from_bytes(bytes))?;
            Ok(0)
        })
    }

    /// The number of the parent's interface; a device that is no child is its own.
    ///
    /// # Safety
    ///
    /// Called by the stack on a registered device of ours.
    unsafe extern "C" fn iflink(device: *const bindings::net_device) -> i32 {
        // SAFETY: The stack calls this on a registered device of ours, which stays there until
        // this returns.
        let driver = unsafe { driver::<T>(device.cast_mut()) };
        let below = driver.and_then(|driver| driver.parent());
        let device = below.map_or(device, |parent| parent.device().as_raw().cast_const());
        // SAFETY: The device itself, or its parent, which it holds.
        unsafe { bindings::oxib_netdev_ifindex(device) }
    }

    /// Implements `ndo_set_rx_mode` with `Operations::set_rx_mode`.
    ///
    /// # Safety
    ///
    /// Called by the stack on a registered device of ours.
    unsafe extern "C" fn set_rx_mode(device: *mut bindings::net_device) {
        // SAFETY: The stack calls this on a registered device of ours, which stays there until
        // this returns.
        if let Some(driver) = unsafe { driver::<T>(device) } {
            driver.set_rx_mode();
        }
    }

    /// Implements `ndo_tx_timeout` with `Operations::tx_timeout`.
    ///
    /// # Safety
    ///
    /// Called by the stack on a registered device of ours.
    unsafe extern "C" fn tx_timeout(device: *mut bindings::net_device, queue: u32) {
        // SAFETY: The stack calls this on a registered device of ours, which stays there until
        // this returns.
        if let Some(driver) = unsafe { driver::<T>(device) } {
            driver.tx_timeout(queue);
        }
    }

    /// Chooses the transmit queue of a packet, which begins with its destination's address.
    ///
    /// # Safety
    ///
    /// Called by the stack on a registered device of ours with a valid packet.
    unsafe extern "C" fn select_queue(
        device: *mut bindings::net_device,
        skb: *mut bindings::sk_buff,
        subordinate: *mut bindings::net_device,
    ) -> u16 {
        // SAFETY: The stack gives a valid packet, and keeps it: the borrow ends with this
        // function.
        let packet =
            unsafe { core::mem::ManuallyDrop::new(Skb::from_raw(NonNull::new_unchecked(skb))) };
        // SAFETY: The stack calls this on a registered device of ours, which stays there until
        // this returns.
        let driver = unsafe { driver::<T>(device) };
        match (driver, packet.data().first_chunk()) {
            (Some(driver), Some(address)) => driver.select_queue(HwAddr::from_ref(address)) as u16,
            // SAFETY: The device, the packet and the subordinate device are those that the stack
            // gave.
            _ => unsafe { bindings::oxib_pick_tx(device, skb, subordinate) },
        }
    }

    /// Implements `ndo_start_xmit` with `Operations::transmit`.
    ///
    /// # Safety
    ///
    /// Called by the stack on a registered device of ours, with the lock of the packet's queue
    /// held; the packet is given.
    unsafe extern "C" fn start_xmit(
        skb: *mut bindings::sk_buff,
        device: *mut bindings::net_device,
    ) -> bindings::netdev_tx_t {
        // SAFETY: The stack gives us a valid packet, which is ours now.
        let (packet, index) = unsafe {
            let index = (*skb).queue_mapping as usize;
            (Skb::from_raw(NonNull::new_unchecked(skb)), index)
        };
        // SAFETY: The stack calls this on a registered device of ours: its private area is
        // initialised, and only shared references to it exist.
        let private = unsafe { &*private::<T>(device) };
        // SAFETY: The device is registered, so the driver is there and stays.
        let driver = unsafe { (*private.driver.get()).as_ref() };
        if let (Some(driver), Some(cell)) = (driver, private.queues.get(index)) {
            // SAFETY: The stack holds the lock of queue `index`, under which alone this is
            // touched.
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
        // SAFETY: The stack gives an address of the length of the device's addresses, which is 20
        // bytes.
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
