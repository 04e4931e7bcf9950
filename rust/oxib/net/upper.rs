// SPDX-License-Identifier: GPL-2.0-only

//! Lookup of the net device that an IP address belongs to: one of ours, or one that stands on it
//! (a bond).

use core::ptr::NonNull;

use kernel::sync::rcu;

use super::device::{
    Device,
    Operations, //
};
use crate::bindings;

/// An IP address, network byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Address {
    /// An IPv4 address (`AF_INET`).
    V4([u8; 4]),
    /// An IPv6 address (`AF_INET6`).
    V6([u8; 16]),
}

impl Address {
    /// Takes the address out of a C socket address; `None` if it is null or of another family.
    ///
    /// # Safety
    ///
    /// Null, or valid, and as long as its family says.
    pub(crate) unsafe fn from_raw(raw: *const bindings::sockaddr) -> Option<Self> {
        // SAFETY: The caller gives null, or a valid address.
        let family = u32::from(unsafe { raw.as_ref() }?.sa_family);
        match family {
            // SAFETY: The caller guarantees that the address is as long as its family says, so it
            // is of this type; the field is four plain bytes.
            bindings::AF_INET => Some(Self::V4(unsafe {
                (*raw.cast::<bindings::sockaddr_in>())
                    .sin_addr
                    .s_addr
                    .to_ne_bytes()
            })),
            // SAFETY: The caller guarantees that the address is as long as its family says, so it
            // is of this type; the union is sixteen plain bytes.
            bindings::AF_INET6 => Some(Self::V6(unsafe {
                (&raw const (*raw.cast::<bindings::sockaddr_in6>()).sin6_addr)
                    .cast::<[u8; 16]>()
                    .read()
            })),
            _ => None,
        }
    }
}

/// A net device of any driver, with a reference of ours.
///
/// # Invariants
///
/// The pointer is valid, and a reference to it is ours.
pub(crate) struct Held(NonNull<bindings::net_device>);

impl Held {
    /// Takes a reference to `device`; `None` if it is null, or not registered: then nobody may wait
    /// for the end of references to it.
    ///
    /// # Safety
    ///
    /// `device` is null, or valid while RCU is held.
    unsafe fn new(device: *mut bindings::net_device, _rcu: &rcu::Guard) -> Option<Self> {
        let device = NonNull::new(device)?;
        // SAFETY: The caller gives a device that is valid while RCU is held (`_rcu`).
        if unsafe { bindings::oxib_netdev_net_rcu(device.as_ptr()) }.is_null() {
            return None;
        }
        // SAFETY: The device is valid. It was registered when RCU was held already: the stack waits
        // for a grace period, and then for the references.
        unsafe { bindings::oxib_netdev_hold(device.as_ptr()) };
        // INVARIANT: Held in the line above.
        Some(Self(device))
    }

    /// Gives the reference to a caller in C.
    pub(crate) fn into_raw(self) -> *mut bindings::net_device {
        core::mem::ManuallyDrop::new(self).0.as_ptr()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the reference is ours to drop.
        unsafe { bindings::oxib_dev_put(self.0.as_ptr()) }
    }
}

impl<T: Operations> Device<T> {
    /// The device that stands for this one to programs: the bond that it belongs to, or itself.
    /// `None` if that is not registered.
    pub(crate) fn master(&self) -> Option<Held> {
        let rcu = rcu::read_lock();
        let master = self.find_master(&rcu);
        // SAFETY: This device, which is valid, or its master, which stays while RCU is held.
        unsafe { Held::new(master, &rcu) }
    }

    /// The stack's number for the device of [`Self::master`]. Takes no reference, so this one need
    /// not stay registered. Any context.
    pub(crate) fn master_index(&self) -> u32 {
        let rcu = rcu::read_lock();
        let master = self.find_master(&rcu);
        // SAFETY: This device, which is valid, or its master, which stays while RCU is held.
        unsafe { bindings::oxib_netdev_ifindex(master) }.unsigned_abs()
    }

    /// Finds the device of [`Self::master`]. The pointer is valid while RCU is held.
    fn find_master(&self, _rcu: &rcu::Guard) -> *mut bindings::net_device {
        // SAFETY: The device is valid; masters stay while RCU is held.
        unsafe {
            let master = bindings::netdev_master_upper_dev_get_rcu(self.as_raw());
            if master.is_null() || bindings::oxib_is_l3_master(master) {
                self.as_raw()
            } else {
                master
            }
        }
    }

    /// The device that has `address`: this one, or one that stands on it. `None` if that is not
    /// registered.
    pub(crate) fn owner_of(&self, address: Address) -> Option<Held> {
        let rcu = rcu::read_lock();
        let owner = self.find_owner(address, &rcu);
        // SAFETY: Null, or this device, which is valid, or one that stands on it, which stays while
        // RCU is held.
        unsafe { Held::new(owner, &rcu) }
    }

    /// Returns whether this device has `address`, or one that stands on it. Takes no reference, so
    /// this one need not stay registered. Any context.
    pub(crate) fn owns(&self, address: Address) -> bool {
        !self.find_owner(address, &rcu::read_lock()).is_null()
    }

    /// Finds the device of [`Self::owner_of`]; null if there is none. The pointer is valid while
    /// RCU is held.
    fn find_owner(&self, address: Address, _rcu: &rcu::Guard) -> *mut bindings::net_device {
        let mut search = Search {
            address,
            found: core::ptr::null_mut(),
        };
        // SAFETY: The device is valid, and what stands on it stays while RCU is held; the search
        // lives until the call returns.
        unsafe {
            if has_address(self.as_raw(), address) {
                return self.as_raw();
            }
            let mut data = bindings::netdev_nested_priv {
                flags: 0,
                data: (&raw mut search).cast(),
            };
            bindings::netdev_walk_all_upper_dev_rcu(self.as_raw(), Some(visit), &mut data);
        }
        search.found
    }
}

/// A search for an address among devices.
struct Search {
    address: Address,
    found: *mut bindings::net_device,
}

/// Returns whether a device has an address.
///
/// # Safety
///
/// `device` is valid, RCU held.
unsafe fn has_address(device: *mut bindings::net_device, address: Address) -> bool {
    // SAFETY: The caller gives a valid device, and holds RCU, for all calls.
    unsafe {
        match address {
            Address::V4(bytes) => {
                let in_dev = bindings::oxib_in_dev_get_rcu(device);
                let scope = bindings::rt_scope_t_RT_SCOPE_HOST as i32;
                let local = u32::from_ne_bytes(bytes);
                let net = bindings::oxib_netdev_net(device);
                !in_dev.is_null() && bindings::inet_confirm_addr(net, in_dev, 0, local, scope) != 0
            }
            Address::V6(bytes) => bindings::oxib_has_ipv6_address(device, bytes.as_ptr().cast()),
        }
    }
}

/// Looks at one device that stands on another; ends the walk if it is the one.
///
/// # Safety
///
/// Called under RCU with a valid device, and a [`Search`] as data.
unsafe extern "C" fn visit(
    device: *mut bindings::net_device,
    data: *mut bindings::netdev_nested_priv,
) -> i32 {
    // SAFETY: The walk calls this under RCU with a valid device; `owner_of` lends its `Search` as
    // data.
    unsafe {
        let search = &mut *(*data).data.cast::<Search>();
        let is_owner = has_address(device, search.address);
        if is_owner {
            search.found = device;
        }
        i32::from(is_owner)
    }
}
