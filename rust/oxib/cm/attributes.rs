// SPDX-License-Identifier: GPL-2.0-only

//! The attributes that an identifier has for its consumer's queue pair.

use kernel::{
    prelude::*,
    sync::aref::ARef, //
};

use super::{
    address::Address,
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
use crate::{
    rdma::{
        gid::Entry,
        rc,
        route::AddressVector, //
    },
    wire::psn::Psn, //
};

/// The LID that stands for none (IBTA 4.1.3).
const PERMISSIVE_LID: u16 = 0xffff;

/// Attributes of a queue pair, and the addresses that belong to them.
pub(crate) struct Addresses<'a> {
    /// The address vector of the first path.
    pub(crate) address: Option<&'a AddressVector>,
    /// The address vector of the alternate path.
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
    pub(crate) fn qp_init(&self, use_them: impl FnOnce(&QpInit, &Addresses<'_>)) -> Result {
        self.attributes(Machine::qp_init, use_them)
    }

    /// Lets `use_them` have the attributes for a queue pair's transition to RTR.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the state has none.
    pub(crate) fn qp_rtr(&self, use_them: impl FnOnce(&QpRtr, &Addresses<'_>)) -> Result {
        self.attributes(Machine::qp_rtr, use_them)
    }

    /// Lets `use_them` have the attributes for a queue pair's transition to RTS.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the state has none.
    pub(crate) fn qp_rts(&self, use_them: impl FnOnce(&QpRts, &Addresses<'_>)) -> Result {
        self.attributes(Machine::qp_rts, use_them)
    }

    /// Attributes that take a reliable connected queue pair of a consumer in this module to Init.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the state has none.
    pub(crate) fn rc_initial(&self) -> Result<rc::Initial> {
        self.take(Machine::qp_init, |_, addresses| {
            let address = addresses.address?;
            Some(rc::Initial {
                port: address.port(),
                pkey_index: address.pkey_index(),
            })
        })
    }

    /// Attributes that take it to Ready to Receive. `psn` is the sequence number that the peer is
    /// or was told to begin with.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the state has none.
    pub(crate) fn rc_reception(&self, psn: Psn) -> Result<rc::Reception> {
        self.take(Machine::qp_rtr, |given, addresses| {
            Some(rc::Reception {
                address: addresses.address?.clone(),
                // As with the kernel's `ib_cm`: neither 0, which stands for none, nor the
                // permissive LID is an address for data.
                data_lid: Some(addresses.data_lid)
                    .filter(|lid| !matches!(*lid, 0 | PERMISSIVE_LID)),
                mtu: given.mtu.get(),
                peer: given.dest_qpn,
                psn,
                depth: given.max_dest_rd_atomic.unwrap_or(0),
            })
        })
    }

    /// Attributes that take it to Ready to Send.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the state has none.
    pub(crate) fn rc_transmission(&self) -> Result<rc::Transmission> {
        self.take(Machine::qp_rts, |given, _| match given {
            QpRts::First {
                sq_psn,
                requester: Some(requester),
                timeout: Some(timeout),
                ..
            } => Some(rc::Transmission {
                psn: *sq_psn,
                retry_count: requester.retry_count,
                rnr_retry_count: requester.rnr_retry_count,
                depth: requester.max_rd_atomic,
                timeout: *timeout,
            }),
            _ => None,
        })
    }

    /// Copies attributes that a queue pair's transition needs: the transition sleeps, and cannot
    /// be made with the identifier's lock held.
    fn take<A, T>(
        &self,
        of: impl FnOnce(&Machine) -> core::result::Result<A, Refused>,
        copy: impl FnOnce(&A, &Addresses<'_>) -> Option<T>,
    ) -> Result<T> {
        let mut taken = None;
        self.attributes(of, |given, addresses| taken = copy(given, addresses))?;
        taken.ok_or(EINVAL)
    }

    fn attributes<A>(
        &self,
        of: impl FnOnce(&Machine) -> core::result::Result<A, Refused>,
        use_them: impl FnOnce(&A, &Addresses<'_>),
    ) -> Result {
        self.look(|inner| {
            let attributes = of(&inner.machine).map_err(|_| EINVAL)?;
            let addresses = Addresses {
                address: inner.address.as_ref().map(Address::vector),
                alternate: inner.alternate.as_deref().map(Address::vector),
                data_lid: inner.data_lid,
            };
            use_them(&attributes, &addresses);
            Ok(())
        })
    }

    /// The GID that messages and the first path begin at, if packets have one.
    pub(crate) fn source(&self) -> Option<ARef<Entry>> {
        self.look(|inner| inner.address.as_ref()?.vector().source().map(ARef::from))
    }

    /// Returns whether the consumer's queue pair is an XRC initiator.
    pub(crate) fn is_xrc_initiator(&self) -> bool {
        self.look(|inner| inner.qp_type == QpType::XrcIni)
    }
}
