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

/// A port's state that matters here (`ib_query_port`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes {
    /// Whether the port carries packets.
    pub(crate) active: bool,
    /// Largest payload of one packet in bytes, as configured now.
    pub(crate) mtu: u32,
    /// Length of the GID table.
    pub(crate) gids: u32,
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

    /// The state of `port`.
    ///
    /// # Errors
    ///
    /// What the device says.
    pub(crate) fn query_port(&self, port: PortNumber) -> Result<Attributes> {
        // SAFETY: All-zero is a valid value of this plain C structure.
        let mut attributes: bindings::ib_port_attr = unsafe { core::mem::zeroed() };
        // SAFETY: The device is valid, the structure ours.
        kernel::error::to_result(unsafe {
            bindings::ib_query_port(self.as_raw(), port.get(), &mut attributes)
        })?;
        // SAFETY: Converts a number.
        let mtu = unsafe { bindings::oxib_mtu_to_bytes(attributes.active_mtu) };
        Ok(Attributes {
            active: attributes.state == bindings::ib_port_state_IB_PORT_ACTIVE,
            mtu: u32::try_from(mtu).unwrap_or(0),
            gids: u32::try_from(attributes.gid_tbl_len).unwrap_or(0),
        })
    }
}
