// SPDX-License-Identifier: GPL-2.0-only

//! Ports of an RDMA device.

use kernel::prelude::*;

use super::device::Device;
use crate::{
    bindings,
    net::rtnl::Rtnl,
    wire::pkey::Pkey, //
};

/// The number of a port, counted from 1 as the verbs do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PortNumber(u32);

impl PortNumber {
    pub(super) fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number as the verbs have it: ports of a channel adapter count from 1.
    pub(crate) fn get(self) -> u32 {
        self.0
    }
}

/// The kind of link that carries a port's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkLayer {
    /// InfiniBand: addresses and groups come from the subnet administrator.
    Infiniband,
    /// RoCE (v2): IP addresses of an Ethernet device.
    Ethernet,
    /// Omni-Path: InfiniBand's verbs with other addresses and larger management datagrams.
    OmniPath,
    /// Neither (iWARP and others): no unreliable datagrams.
    Other,
}

/// Returns the bytes that an MTU's code stands for: 1 is 256 bytes, 5 is 4096 (IBTA 14.2.5.6).
fn mtu_bytes(code: bindings::ib_mtu) -> u32 {
    128 << code.clamp(1, 5)
}

/// Attributes of an InfiniBand port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InfinibandPort {
    /// Its LID; 0 if it has none yet.
    pub(crate) lid: u16,
    /// The LID of its subnet manager's port; 0 if none is known, and if the LID has more than 16
    /// bits, as on Omni-Path.
    pub(crate) sm_lid: u16,
    /// Largest payload in bytes of one packet: what its neighbour takes, or, before that is
    /// known, what it could take itself.
    pub(crate) mtu: u32,
    /// Largest payload in bytes of one packet that the port itself could take.
    pub(crate) max_mtu: u32,
}

impl Device {
    /// Returns the link layer of `port`.
    pub(crate) fn link_layer(&self, port: PortNumber) -> LinkLayer {
        // SAFETY: By the type invariant the device is valid; `port` is one of its ports.
        let (omni_path, ib, roce) = unsafe {
            (
                bindings::oxib_is_omni_path(self.as_raw(), port.get()),
                bindings::oxib_protocol_ib(self.as_raw(), port.get()),
                bindings::oxib_protocol_roce_v2(self.as_raw(), port.get()),
            )
        };
        match (omni_path, ib, roce) {
            (true, _, _) => LinkLayer::OmniPath,
            (false, true, _) => LinkLayer::Infiniband,
            (false, false, true) => LinkLayer::Ethernet,
            (false, false, false) => LinkLayer::Other,
        }
    }

    /// Returns whether `port` carries packets, as last heard: asking the device may sleep and, on
    /// RoCE, takes the RTNL.
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

    /// Queries the attributes of an InfiniBand port. Sleeps.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn infiniband_port(&self, port: PortNumber) -> Result<InfinibandPort> {
        let mut attributes: bindings::ib_port_attr = pin_init::zeroed();
        // SAFETY: The device is registered and has that port, the attributes are ours.
        kernel::error::to_result(unsafe {
            bindings::ib_query_port(self.as_raw(), port.get(), &mut attributes)
        })?;
        let code = match attributes.state {
            bindings::ib_port_state_IB_PORT_ACTIVE => attributes.active_mtu,
            _ => attributes.max_mtu,
        };
        Ok(InfinibandPort {
            // LIDs of InfiniBand have 16 bits.
            lid: attributes.lid as u16,
            sm_lid: u16::try_from(attributes.sm_lid).unwrap_or(0),
            mtu: mtu_bytes(code),
            max_mtu: mtu_bytes(attributes.max_mtu),
        })
    }

    /// Looks up the index, in the table of `port`, of the P_Key of the partition of `pkey`, with
    /// full membership rather than with limited; `None` if the port is no member.
    pub(crate) fn pkey_index(&self, port: PortNumber, pkey: Pkey) -> Option<u16> {
        let mut index = 0;
        // SAFETY: The device is registered and has that port, the index is ours.
        kernel::error::to_result(unsafe {
            bindings::ib_find_cached_pkey(self.as_raw(), port.get(), pkey.get(), &mut index)
        })
        .ok()?;
        Some(index)
    }

    /// LID mask control (LMC): the number of low bits of its LID that `port` ignores, 0 to 7.
    pub(crate) fn lmc(&self, port: PortNumber) -> u8 {
        let mut lmc = 0;
        // SAFETY: The device is registered and has that port, the number is ours. It stays 0 on
        // an error.
        unsafe { bindings::ib_get_cached_lmc(self.as_raw(), port.get(), &mut lmc) };
        lmc.min(7)
    }

    /// Length of the GID table of `port`.
    pub(crate) fn gids(&self, port: PortNumber) -> u32 {
        // SAFETY: The device is valid and has that port.
        unsafe { bindings::oxib_gid_table_length(self.as_raw(), port.get()) }
    }
}

impl Device {
    /// The speed of `port` in Mbit/s, of all its lanes together; `None` if it is not known.
    pub(crate) fn speed(&self, rtnl: &mut Rtnl, port: PortNumber) -> Option<u32> {
        match self.link_layer(port) {
            // Asking such a port takes the RTNL, which is held.
            LinkLayer::Ethernet => self.ethernet_speed(rtnl, port),
            LinkLayer::Infiniband => {
                let mut attributes: bindings::ib_port_attr = pin_init::zeroed();
                // SAFETY: The device is valid, the structure ours.
                let result =
                    unsafe { bindings::ib_query_port(self.as_raw(), port.get(), &mut attributes) };
                kernel::error::to_result(result).ok()?;
                let lanes = lanes(attributes.active_width.into())?;
                Some(lanes * lane_speed(attributes.active_speed.into())?)
            }
            LinkLayer::OmniPath | LinkLayer::Other => None,
        }
    }
}

/// Lanes of a link width (IBTA 14.2.5.6, PortInfo:LinkWidthActive).
fn lanes(width: u32) -> Option<u32> {
    match width {
        bindings::ib_port_width_IB_WIDTH_1X => Some(1),
        bindings::ib_port_width_IB_WIDTH_2X => Some(2),
        bindings::ib_port_width_IB_WIDTH_4X => Some(4),
        bindings::ib_port_width_IB_WIDTH_8X => Some(8),
        bindings::ib_port_width_IB_WIDTH_12X => Some(12),
        _ => None,
    }
}

/// Mbit/s of one lane, as the kernel's `ethtool` names them.
fn lane_speed(speed: u32) -> Option<u32> {
    match speed {
        bindings::ib_port_speed_IB_SPEED_SDR => Some(2_500),
        bindings::ib_port_speed_IB_SPEED_DDR => Some(5_000),
        bindings::ib_port_speed_IB_SPEED_QDR | bindings::ib_port_speed_IB_SPEED_FDR10 => {
            Some(10_000)
        }
        bindings::ib_port_speed_IB_SPEED_FDR => Some(14_000),
        bindings::ib_port_speed_IB_SPEED_EDR => Some(25_000),
        bindings::ib_port_speed_IB_SPEED_HDR => Some(50_000),
        bindings::ib_port_speed_IB_SPEED_NDR => Some(100_000),
        bindings::ib_port_speed_IB_SPEED_XDR => Some(200_000),
        _ => None,
    }
}
