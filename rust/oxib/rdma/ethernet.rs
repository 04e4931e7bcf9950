// SPDX-License-Identifier: GPL-2.0-only

//! The Ethernet device below a RoCE port: its MTU, its IPv4 groups.
//!
//! A RoCE group's packets arrive only if the Ethernet device's IP layer is a member of the IPv4
//! group too; IGMP then tells the switches.

use core::ptr::NonNull;

use kernel::prelude::*;

use super::{
    device::Device,
    port::PortNumber, //
};
use crate::{
    bindings,
    net::rtnl::Rtnl, //
};

/// A reference to an Ethernet device.
///
/// # Invariants
///
/// The pointer is a valid net device; this value holds a reference to it.
struct Ethernet(NonNull<bindings::net_device>);

impl Ethernet {
    /// Returns the Ethernet device of `port`; `None` if it has none.
    fn of(device: &Device, port: PortNumber) -> Option<Self> {
        // SAFETY: By its type invariant the device is valid. The net device comes with a
        // reference.
        let ethernet = unsafe { bindings::ib_device_get_netdev(device.as_raw(), port.get()) };
        NonNull::new(ethernet).map(Self)
    }

    /// Returns whether the device is registered. It stays so while the RTNL is held.
    fn is_registered(&self, _rtnl: &mut Rtnl) -> bool {
        // SAFETY: By the type invariant the net device is valid. The stack writes other states
        // without the RTNL, one byte at once.
        let state = unsafe { (&raw const (*self.0.as_ptr()).reg_state).read_volatile() };
        u32::from(state) == bindings::netdev_reg_state_NETREG_REGISTERED
    }

    /// Returns the device's IPv4; `None` if it has none.
    fn ipv4(&self, _rtnl: &mut Rtnl) -> Option<Ipv4> {
        let device = self.0.as_ptr();
        // SAFETY: By the type invariant the net device is valid, and the RTNL is held (`_rtnl`).
        let address = unsafe { bindings::oxib_in_dev_get(device) }.addr();
        if address == 0 {
            return None;
        }
        // SAFETY: By the type invariant the net device is valid. Only a registered one has an IPv4,
        // and it stays registered, and in its namespace, while the RTNL is held (`_rtnl`).
        let (namespace, device) = unsafe {
            (
                bindings::oxib_net_cookie(device),
                bindings::oxib_netdev_ifindex(device),
            )
        };
        Some(Ipv4 {
            namespace,
            device,
            address,
        })
    }
}

impl Drop for Ethernet {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the reference is ours.
        unsafe { bindings::oxib_dev_put(self.0.as_ptr()) };
    }
}

/// The IPv4 of an Ethernet device, for comparing and for leaving its groups: another one has other
/// groups. Nothing holds it, so it may be gone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ipv4 {
    /// Cookie of the device's namespace.
    namespace: u64,
    /// Index of the device in its namespace.
    device: i32,
    /// Address of the IPv4. Alone it names none, as that of one that is gone is used again.
    address: usize,
}

impl Ipv4 {
    /// Ends a membership in `group` that [`Device::join_group`] began and returned this for. The
    /// port may have come to another Ethernet device since. A membership that has gone with its
    /// Ethernet device, or with the IPv4 of that, is left as it is.
    pub(crate) fn leave_group(self, _rtnl: &mut Rtnl, group: [u8; 4]) {
        let group = u32::from_ne_bytes(group);
        // SAFETY: The RTNL is held (`_rtnl`). The device is looked for by its number, and the
        // address is only compared.
        unsafe {
            bindings::oxib_ip_mc_leave(self.namespace, self.device, self.address, group);
        }
    }
}

impl Device {
    /// Largest payload in bytes of one RoCE packet on the Ethernet device of `port`.
    pub(crate) fn ethernet_mtu(&self, port: PortNumber) -> Option<u32> {
        let ethernet = Ethernet::of(self, port)?;
        // SAFETY: The net device is valid.
        u32::try_from(unsafe { bindings::oxib_roce_mtu(ethernet.0.as_ptr()) }).ok()
    }

    /// Speed in Mbit/s of the Ethernet device of `port`, if it tells.
    pub(crate) fn ethernet_speed(&self, rtnl: &mut Rtnl, port: PortNumber) -> Option<u32> {
        let ethernet = Ethernet::of(self, port).filter(|ethernet| ethernet.is_registered(rtnl))?;
        let mut settings: bindings::ethtool_link_ksettings = pin_init::zeroed();
        // SAFETY: The net device is registered and stays so, as the RTNL is held (`rtnl`); the
        // structure is ours.
        let result =
            unsafe { bindings::__ethtool_get_link_ksettings(ethernet.0.as_ptr(), &mut settings) };
        kernel::error::to_result(result).ok()?;
        let speed = settings.base.speed;
        (speed != bindings::SPEED_UNKNOWN as u32).then_some(speed)
    }

    /// Joins the IPv4 `group` on the Ethernet device of `port`. Returns that one's IPv4, by which
    /// the membership ends ([`Ipv4::leave_group`]).
    ///
    /// # Errors
    ///
    /// `ENODEV` if there is no Ethernet device or it has no IPv4.
    pub(crate) fn join_group(
        &self,
        rtnl: &mut Rtnl,
        port: PortNumber,
        group: [u8; 4],
    ) -> Result<Ipv4> {
        let ethernet = Ethernet::of(self, port).ok_or(ENODEV)?;
        let ipv4 = ethernet.ipv4(rtnl).ok_or(ENODEV)?;
        // SAFETY: By the type invariant of `Ethernet` the net device is valid. It has an IPv4,
        // which stays while the RTNL is held (`rtnl`).
        unsafe {
            let ip = bindings::oxib_in_dev_get(ethernet.0.as_ptr());
            bindings::ip_mc_inc_group(ip, u32::from_ne_bytes(group));
        }
        Ok(ipv4)
    }

    /// Returns the IPv4 of the Ethernet device of `port`; `None` if there is none.
    pub(crate) fn ipv4(&self, rtnl: &mut Rtnl, port: PortNumber) -> Option<Ipv4> {
        Ethernet::of(self, port)?.ipv4(rtnl)
    }

    /// Returns whether the Ethernet device of `port` is a member of the IPv4 `group`, whoever
    /// joined it.
    pub(crate) fn is_member(&self, _rtnl: &mut Rtnl, port: PortNumber, group: [u8; 4]) -> bool {
        let Some(ethernet) = Ethernet::of(self, port) else {
            return false;
        };
        let group = u32::from_ne_bytes(group);
        // SAFETY: By the type invariant of `Ethernet` the net device is valid, and the RTNL is
        // held (`_rtnl`).
        unsafe { bindings::oxib_ip_mc_is_member(ethernet.0.as_ptr(), group) }
    }
}
