// SPDX-License-Identifier: GPL-2.0-only

//! The state of a device that the stack keeps and an administrator may change: carrier, addresses,
//! MTU, mode.

use kernel::prelude::*;

use super::{
    table,
    Device,
    Operations, //
};
use crate::{
    bindings,
    net::rtnl::Rtnl,
    wire::hwaddr::HwAddr, //
};

impl<T: Operations> Device<T> {
    /// Returns whether the link can carry packets, as last reported.
    pub(crate) fn has_carrier(&self) -> bool {
        // SAFETY: The device is valid.
        unsafe { bindings::oxib_has_carrier(self.as_raw()) }
    }

    /// Reports whether the link can carry packets.
    pub(crate) fn set_carrier(&self, _rtnl: &mut Rtnl, on: bool) {
        // SAFETY: The device is valid; both calls do nothing if the state is the same.
        unsafe {
            if on {
                bindings::netif_carrier_on(self.as_raw())
            } else {
                bindings::netif_carrier_off(self.as_raw())
            }
        }
    }

    /// Lets the stack send on all queues.
    pub(crate) fn start_queues(&self, _rtnl: &mut Rtnl) {
        // SAFETY: The device is valid.
        unsafe { bindings::oxib_start_queues(self.as_raw()) }
    }

    /// Stops the stack from sending and waits until no transmit is under way.
    pub(crate) fn stop_queues(&self, _rtnl: &mut Rtnl) {
        // SAFETY: The device is valid.
        unsafe { bindings::oxib_stop_queues(self.as_raw()) }
    }

    /// The hardware address that the stack has for the device.
    pub(crate) fn address(&self) -> HwAddr {
        let mut bytes = [0u8; HwAddr::LEN];
        // SAFETY: `dev_addr` of such a device is 20 bytes, and its memory stays while registered.
        unsafe {
            core::ptr::copy_nonoverlapping((*self.as_raw()).dev_addr, bytes.as_mut_ptr(), 20)
        };
        HwAddr::from_bytes(bytes)
    }

    /// Changes the hardware address and tells the stack. A bond that uses the device has its
    /// address, and gets the new one.
    pub(crate) fn set_address(&self, _rtnl: &mut Rtnl, address: &HwAddr) {
        // SAFETY: The device is valid, the RTNL held; the address has the length of the device's.
        unsafe { bindings::oxib_set_address(self.as_raw(), address.as_bytes().as_ptr()) }
    }

    /// Sets the address that reaches all nodes of the link, before the device is registered.
    pub(crate) fn set_broadcast(&self, address: &HwAddr) {
        // SAFETY: `broadcast` is 32 bytes, of which such a device uses 20.
        unsafe {
            core::ptr::copy_nonoverlapping(
                address.as_bytes().as_ptr(),
                (*self.as_raw()).broadcast.as_mut_ptr(),
                HwAddr::LEN,
            )
        }
    }

    /// Changes the broadcast address of the link, of a registered device: the stack makes the
    /// addresses of groups again.
    pub(crate) fn change_broadcast(&self, _rtnl: &mut Rtnl, address: &HwAddr) {
        // SAFETY: The device is registered, the RTNL held; the address has the length of the
        // device's.
        unsafe { bindings::oxib_set_broadcast(self.as_raw(), address.as_bytes().as_ptr()) }
    }

    /// The MTU of the device, in bytes.
    pub(crate) fn mtu(&self) -> u32 {
        // SAFETY: A plain integer at that offset of a valid device; the stack reads it without a
        // lock, too.
        unsafe {
            self.as_raw()
                .cast::<u8>()
                .add(bindings::OXIB_NETDEV_MTU as usize)
                .cast::<u32>()
                .read_volatile()
        }
    }

    /// Switches a device between connected and datagram mode. In connected mode packets are not
    /// to be cut, keep their route (by which their senders are told if they are too large), and
    /// the driver chooses their transmit queue.
    pub(crate) fn set_connected(&self, _rtnl: &mut Rtnl, on: bool) {
        // SAFETY: The device is valid; both tables live forever and differ in the choice of the
        // queue and of features alone, so the stack may use either.
        unsafe {
            bindings::oxib_set_operations(self.as_raw(), table::operations::<T>(on));
            bindings::oxib_set_connected(self.as_raw(), on);
        }
    }

    /// Writes the MTU down, in [`Operations::change_mtu`] or before the device is registered.
    pub(crate) fn store_mtu(&self, mtu: u32) {
        // SAFETY: A plain integer of a valid device, of which the stack reads either value.
        unsafe { bindings::oxib_store_mtu(self.as_raw(), mtu) }
    }

    /// Changes the MTU as an administrator does: [`Operations::change_mtu`] is called, and all
    /// listeners are told.
    ///
    /// # Errors
    ///
    /// The error of that function, or of a listener.
    pub(crate) fn request_mtu(&self, _rtnl: &mut Rtnl, mtu: u32) -> Result {
        // SAFETY: The device is registered, the RTNL held.
        kernel::error::to_result(unsafe { bindings::dev_set_mtu(self.as_raw(), mtu as i32) })
    }

    /// Brings the interface up or takes it down as an administrator does, unless it is so already:
    /// [`Operations::open`] or [`Operations::stop`] is called, and all listeners are told.
    ///
    /// # Errors
    ///
    /// The error of `open`, or of a listener.
    pub(crate) fn set_up(&self, _rtnl: &mut Rtnl, up: bool) -> Result {
        if up {
            // SAFETY: The device is registered, the RTNL held; nobody waits for an explanation.
            return kernel::error::to_result(unsafe {
                bindings::dev_open(self.as_raw(), core::ptr::null_mut())
            });
        }
        // SAFETY: The device is registered, the RTNL held.
        unsafe { bindings::dev_close(self.as_raw()) };
        Ok(())
    }

    /// The multicast addresses that the stack wants, other than the broadcast address.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn multicast_addresses(&self) -> Result<KVec<HwAddr>> {
        let mut list = KVec::new();
        // Sizes it first: no memory is allocated under the address lock.
        // SAFETY: The device is valid.
        let expected = unsafe { bindings::oxib_mc_count(self.as_raw()) } as usize + 16;
        list.reserve(expected, GFP_KERNEL)?;
        // SAFETY: The device is valid; the callback gets the list that it expects, and runs
        // before the call returns.
        unsafe {
            bindings::oxib_for_each_mc(
                self.as_raw(),
                Some(push_address),
                (&raw mut list).cast::<c_void>(),
            )
        };
        Ok(list)
    }
}

/// Collects one address for [`Device::multicast_addresses`].
///
/// # Safety
///
/// `address` is 20 bytes, `list` a `KVec<HwAddr>` that nobody else uses.
unsafe extern "C" fn push_address(list: *mut c_void, address: *const u8) {
    // SAFETY: `multicast_addresses` lends its list, which nobody else uses meanwhile; the stack
    // gives an address of 20 bytes.
    let (list, bytes) = unsafe {
        (
            &mut *list.cast::<KVec<HwAddr>>(),
            *address.cast::<[u8; HwAddr::LEN]>(),
        )
    };
    // Addresses that came since the list was sized are left for the next change's call.
    let _ = list.push_within_capacity(HwAddr::from_bytes(bytes));
}
