// SPDX-License-Identifier: GPL-2.0-only

//! The port at which a path begins, and the address to which it leads from there.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::Address,
    id::Id,
    port::Port,
    DeviceKey,
    Manager, //
};
use crate::rdma::{
    gid::Entry,
    path::PathRecord,
    port::PortNumber,
    route::AddressVector, //
};

impl Id {
    /// Returns the address that a path leads to. Sleeps.
    pub(super) fn address_along(
        &self,
        path: &mut PathRecord,
        source: Option<&Entry>,
    ) -> Result<Address> {
        let port = match source {
            Some(entry) => self.manager.port(self.device(), entry.port())?,
            None => self.manager.port_of(self.device(), path)?,
        };
        port.address_along(path, source)
    }
}

impl Port {
    /// Returns the address that a path from this port leads to. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `source` is an entry of another device, `ENODEV` if the device goes, and the
    /// device's error.
    pub(super) fn address_along(
        self: Arc<Self>,
        path: &mut PathRecord,
        source: Option<&Entry>,
    ) -> Result<Address> {
        let device = self.device()?;
        if source.is_some_and(|entry| !entry.is_of(&device)) {
            return Err(EINVAL);
        }
        let vector = AddressVector::from_path(&device, self.number, path, source)?;
        Ok(Address::new(self, vector))
    }
}

impl Manager {
    /// Returns whether `path` begins at a port of another device than that of `key`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn is_path_of_another(&self, key: DeviceKey, path: &PathRecord) -> Result<bool> {
        let ports = self.devices.values()?;
        let has_path = |port: &Arc<Port>| {
            let device = port.device();
            device.is_ok_and(|device| device.port_of_path(path).is_some())
        };
        Ok(ports.iter().any(|port| port.key != key && has_path(port)))
    }

    /// Returns the port where `path` begins.
    fn port_of(&self, key: DeviceKey, path: &PathRecord) -> Result<Arc<Port>> {
        let any = self.devices.get(&key).ok_or(EINVAL)?;
        let number: PortNumber = any.device()?.port_of_path(path).ok_or(EINVAL)?;
        // Most devices have one port.
        match any.number == number {
            true => Ok(any),
            false => self.port(key, number),
        }
    }
}
