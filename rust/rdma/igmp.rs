// SPDX-License-Identifier: GPL-2.0-only

//! IPv4 groups on the Ethernet device below a RoCE port.
//!
//! A RoCE group's packets arrive only if the Ethernet device's IP layer is a member of the IPv4
//! group too; IGMP then tells the switches.

use kernel::prelude::*;

use super::{
    device::Device,
    port::PortNumber, //
};
use crate::{
    bindings,
    net::rtnl::Rtnl, //
};

/// Whether to be a member.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Membership {
    /// From now on.
    Join,
    /// No more.
    Leave,
}

impl Device {
    /// Joins or leaves the IPv4 `group` on the Ethernet device of `port`.
    ///
    /// # Errors
    ///
    /// `ENODEV` if there is no Ethernet device or it has no IPv4 (any more: leaving is done then).
    pub(crate) fn set_membership(
        &self,
        _rtnl: &mut Rtnl,
        port: PortNumber,
        group: [u8; 4],
        membership: Membership,
    ) -> Result {
        // SAFETY: By its type invariant the device is valid. The net device comes with a reference.
        let ethernet = unsafe { bindings::ib_device_get_netdev(self.as_raw(), port.get()) };
        if ethernet.is_null() {
            return Err(ENODEV);
        }
        // SAFETY: The net device is valid, and the RTNL is held (`_rtnl`).
        let joined = unsafe {
            let ip = bindings::oxib_in_dev_get(ethernet);
            let group = u32::from_ne_bytes(group);
            match (ip.is_null(), membership) {
                (true, _) => Err(ENODEV),
                (false, Membership::Join) => {
                    bindings::ip_mc_inc_group(ip, group);
                    Ok(())
                }
                (false, Membership::Leave) => {
                    bindings::oxib_ip_mc_dec_group(ip, group);
                    Ok(())
                }
            }
        };
        // SAFETY: Gives back the reference from above.
        unsafe { bindings::oxib_dev_put(ethernet) };
        joined
    }
}
