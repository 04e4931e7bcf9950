// SPDX-License-Identifier: GPL-2.0-only

//! Addresses of peers, and the messages that go there.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    machine::peer::Location,
    message::{
        Bytes,
        Room, //
    },
    port::{
        self,
        Port, //
    }, //
};
use crate::{
    rdma::route::AddressVector,
    wire::{
        cm::{
            BuildError,
            Kind, //
        },
        mad::Blank,
        qpn::Qpn, //
    }, //
};

/// The address of a peer: the port that messages leave by, and the way from there. It is one
/// value, so that an identifier which gets another address gets the port with it.
#[derive(Clone)]
pub(super) struct Address {
    port: Arc<Port>,
    vector: AddressVector,
}

impl Address {
    /// Creates the address to which `vector` leads from `port`.
    pub(super) fn new(port: Arc<Port>, vector: AddressVector) -> Self {
        Self { port, vector }
    }

    /// The port that messages leave by.
    pub(super) fn port(&self) -> &Arc<Port> {
        &self.port
    }

    /// The way from the port to the peer.
    pub(super) fn vector(&self) -> &AddressVector {
        &self.vector
    }

    /// The location of the peer.
    pub(super) fn location(&self) -> Location {
        Location {
            subnet: self.port.subnet(),
            lid: self.vector.lid(),
            gid: self.vector.dgid(),
        }
    }
}

/// The destination of a message.
#[derive(Clone, Copy)]
pub(super) struct Destination<'a> {
    address: &'a Address,
    /// The queue pair of the peer's connection manager.
    manager: Qpn,
}

impl<'a> From<&'a Address> for Destination<'a> {
    /// Leads to the general services interface, where each port's connection manager is.
    fn from(address: &'a Address) -> Self {
        Self::new(address, Qpn::GENERAL_SERVICES)
    }
}

impl<'a> Destination<'a> {
    /// Creates the destination of messages to a connection manager that has the queue pair
    /// `manager`.
    pub(super) fn new(address: &'a Address, manager: Qpn) -> Self {
        Self { address, manager }
    }

    /// The port that messages leave by.
    pub(super) fn port(self) -> &'a Arc<Port> {
        &self.address.port
    }

    /// Sends the message that `write` writes. Does not sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it cannot be built, `ENODEV` if the device goes, `ENOMEM`, and the device's
    /// error.
    pub(super) fn post(
        self,
        kind: Kind,
        write: impl FnOnce(Blank<'_>) -> core::result::Result<(), BuildError>,
    ) -> Result {
        self.post_and(kind, write, |_| ())
    }

    /// Sends the message that `write` writes, and keeps a copy in `memory`. Does not sleep.
    ///
    /// # Errors
    ///
    /// The errors of [`Destination::post`].
    pub(super) fn post_kept(
        self,
        kind: Kind,
        memory: Room,
        write: impl FnOnce(Blank<'_>) -> core::result::Result<(), BuildError>,
    ) -> Result<KBox<Bytes>> {
        self.post_and(kind, write, |bytes| memory.write(*bytes))
    }

    /// Sends a message that was built before.
    ///
    /// # Errors
    ///
    /// The errors of [`Destination::post`].
    pub(super) fn post_built(self, bytes: &Bytes) -> Result {
        let kind = port::kind(bytes).ok_or(EINVAL)?;
        self.post(kind, |out| {
            *out.into_bytes() = *bytes;
            Ok(())
        })
    }

    /// Sends the message that `write` writes, and returns what `keep` makes of it.
    fn post_and<R>(
        self,
        kind: Kind,
        write: impl FnOnce(Blank<'_>) -> core::result::Result<(), BuildError>,
        keep: impl FnOnce(&Bytes) -> R,
    ) -> Result<R> {
        let Address { port, vector } = self.address;
        port.post(kind, (vector, self.manager), write, keep)
    }
}
