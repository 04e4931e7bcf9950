// SPDX-License-Identifier: GPL-2.0-only

//! What an identifier says of its consumer's queue pair.

use kernel::{
    prelude::*,
    sync::aref::ARef, //
};

use super::{
    id::Id,
    machine::{
        input::QpType,
        qp::{
            QpInit,
            QpRtr,
            QpRts, //
        },
        Machine,
        Refused, //
    }, //
};
use crate::rdma::{
    gid::Entry,
    route::AddressVector, //
};

/// Attributes of a queue pair, and the ways that belong to them.
pub(crate) struct Ways<'a> {
    /// The first path.
    pub(crate) address: Option<&'a AddressVector>,
    /// The alternate path.
    pub(crate) alternate: Option<&'a AddressVector>,
    /// The LID that the queue pair's packets go to, if not that of `address`; 0: none.
    pub(crate) data_lid: u16,
}

impl Id {
    /// Lets `use_them` have the attributes for a queue pair's transition to INIT.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the state has none.
    pub(crate) fn qp_init(&self, use_them: impl FnOnce(&QpInit, &Ways<'_>)) -> Result {
        self.attributes(Machine::qp_init, use_them)
    }

    /// Lets `use_them` have the attributes for a queue pair's transition to RTR.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the state has none.
    pub(crate) fn qp_rtr(&self, use_them: impl FnOnce(&QpRtr, &Ways<'_>)) -> Result {
        self.attributes(Machine::qp_rtr, use_them)
    }

    /// Lets `use_them` have the attributes for a queue pair's transition to RTS.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the state has none.
    pub(crate) fn qp_rts(&self, use_them: impl FnOnce(&QpRts, &Ways<'_>)) -> Result {
        self.attributes(Machine::qp_rts, use_them)
    }

    fn attributes<A>(
        &self,
        of: impl FnOnce(&Machine) -> core::result::Result<A, Refused>,
        use_them: impl FnOnce(&A, &Ways<'_>),
    ) -> Result {
        self.look(|inner| {
            let attributes = of(&inner.machine).map_err(|_| EINVAL)?;
            let ways = Ways {
                address: inner.address.as_ref(),
                alternate: inner.alternate.as_deref(),
                data_lid: inner.data_lid,
            };
            use_them(&attributes, &ways);
            Ok(())
        })
    }

    /// The GID that messages and the first path begin at, if packets have one.
    pub(crate) fn source(&self) -> Option<ARef<Entry>> {
        self.look(|inner| inner.address.as_ref()?.source().map(ARef::from))
    }

    /// Whether the consumer's queue pair is an XRC initiator.
    pub(crate) fn is_xrc_initiator(&self) -> bool {
        self.look(|inner| inner.qp_type == QpType::XrcIni)
    }
}
