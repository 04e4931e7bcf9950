// SPDX-License-Identifier: GPL-2.0-only

//! Attributes of devices and ports that the communication manager reads and sets.

use kernel::{
    error::to_result,
    prelude::*,
    sync::aref::ARef, //
};

use super::{
    device::Device,
    port::PortNumber, //
};
use crate::bindings;

impl Device {
    /// The GUID of the channel adapter.
    pub(crate) fn node_guid(&self) -> u64 {
        // SAFETY: A constant of a valid device.
        u64::from_be(unsafe { (*self.as_raw()).node_guid })
    }

    /// Longest time that the device takes to acknowledge (Local CA ACK Delay): 4.096 µs times two
    /// to the power of this.
    pub(crate) fn ack_delay(&self) -> u8 {
        // SAFETY: A constant of a valid device.
        unsafe { (*self.as_raw()).attrs.local_ca_ack_delay }
    }

    /// Returns whether the device can flush memory for a peer.
    pub(crate) fn can_flush(&self) -> bool {
        // SAFETY: A constant of a valid device.
        let flags = unsafe { (*self.as_raw()).attrs.device_cap_flags };
        let flush = bindings::ib_device_cap_flags_IB_DEVICE_FLUSH_GLOBAL
            | bindings::ib_device_cap_flags_IB_DEVICE_FLUSH_PERSISTENT;
        flags & flush as u64 != 0
    }

    /// Returns whether connections over `port` are made by the communication manager.
    pub(crate) fn has_communication_manager(&self, port: PortNumber) -> bool {
        // SAFETY: By the type invariant the device is valid; `port` is one of its ports.
        unsafe { bindings::oxib_cap_ib_cm(self.as_raw(), port.get()) }
    }

    /// The P_Key at `index` of the table of `port`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the table is shorter.
    pub(crate) fn pkey(&self, port: PortNumber, index: u16) -> Result<u16> {
        let mut key = 0;
        // SAFETY: The device is valid, the key ours.
        to_result(unsafe {
            bindings::ib_get_cached_pkey(self.as_raw(), port.get(), index.into(), &mut key)
        })?;
        Ok(key)
    }
}

/// A number that is hard to guess.
pub(crate) fn random() -> u32 {
    // SAFETY: May be called anywhere.
    unsafe { bindings::oxib_random() }
}

/// The subnet's knowledge that a port has a communication manager (`IsCommunicationManagement`,
/// IBTA 14.2.5.6). Dropping it takes that back.
pub(crate) struct Advertised {
    device: ARef<Device>,
    port: PortNumber,
}

impl Advertised {
    /// Sets the capability bit of the port. Sleeps.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn new(device: &Device, port: PortNumber) -> Result<Self> {
        modify(device, port, CAPABILITY, 0)?;
        Ok(Self {
            device: ARef::from(device),
            port,
        })
    }
}

impl Drop for Advertised {
    fn drop(&mut self) {
        if let Err(error) = modify(&self.device, self.port, 0, CAPABILITY) {
            dev_warn!(
                self.device.as_dev(),
                "port {}: still announces a communication manager, until it is reset: {error:?}\n",
                self.port.get()
            );
        }
    }
}

/// The bit in a port's capabilities.
const CAPABILITY: u32 = bindings::ib_port_capability_mask_bits_IB_PORT_CM_SUP;

/// Sets and clears capabilities of a port.
fn modify(device: &Device, port: PortNumber, set: u32, clear: u32) -> Result {
    let mut change = bindings::ib_port_modify {
        set_port_cap_mask: set,
        clr_port_cap_mask: clear,
        ..bindings::ib_port_modify::default()
    };
    // SAFETY: The device is registered and has that port.
    to_result(unsafe { bindings::ib_modify_port(device.as_raw(), port.get(), 0, &mut change) })
}
