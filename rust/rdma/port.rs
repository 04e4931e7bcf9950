// SPDX-License-Identifier: GPL-2.0-only

//! Ports of an RDMA device.

use kernel::prelude::*;

use super::device::Device;
use crate::bindings;

/// The number of a port, counted from 1 as the verbs do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PortNumber(u32);

impl PortNumber {
    pub(super) fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    pub(crate) fn get(self) -> u32 {
        self.0
    }
}

/// What carries a port's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkLayer {
    /// InfiniBand: addresses and groups come from the subnet administrator.
    Infiniband,
    /// RoCE (v2): IP addresses of an Ethernet device.
    Ethernet,
    /// Neither (iWARP and others): no unreliable datagrams.
    Other,
}

impl Device {
    /// What carries the packets of `port`.
    pub(crate) fn link_layer(&self, port: PortNumber) -> LinkLayer {
        // SAFETY: By the type invariant the device is valid; `port` is one of its ports.
        let (ib, roce) = unsafe {
            (
                bindings::oxib_protocol_ib(self.as_raw(), port.get()),
                bindings::oxib_protocol_roce_v2(self.as_raw(), port.get()),
            )
        };
        match (ib, roce) {
            (true, _) => LinkLayer::Infiniband,
            (false, true) => LinkLayer::Ethernet,
            (false, false) => LinkLayer::Other,
        }
    }

    /// Whether `port` carries packets, as last heard: asking the device may sleep and, on RoCE,
    /// takes the RTNL.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such port.
    pub(crate) fn is_active(&self, port: PortNumber) -> Result<bool> {
        let mut state = bindings::ib_port_state_IB_PORT_NOP;
        // SAFETY: The device is valid, the state ours.
        kernel::error::to_result(unsafe {
            bindings::ib_get_cached_port_state(self.as_raw(), port.get(), &mut state)
        })?;
        Ok(state == bindings::ib_port_state_IB_PORT_ACTIVE)
    }

    /// Length of the GID table of `port`.
    pub(crate) fn gids(&self, port: PortNumber) -> u32 {
        // SAFETY: The device is valid and has that port.
        unsafe { bindings::oxib_gid_table_length(self.as_raw(), port.get()) }
    }
}
