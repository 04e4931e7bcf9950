// SPDX-License-Identifier: GPL-2.0-only

//! The calls of service ID resolution (IBTA 12.11): a consumer asks a peer for the queue pair of a
//! service, or answers one.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    check_private_data,
    refused,
    room,
    Before,
    Paths, //
};
use crate::{
    cm::{
        id::Id,
        machine::input,
        parameters::{
            SidrRepParameters,
            SidrReqParameters, //
        },
        sidr::Answered, //
    },
    wire::{
        cm::{
            sidr_rep,
            sidr_req,
            Kind, //
        },
        pkey::Pkey, //
    }, //
};

impl Id {
    /// Asks a peer for the queue pair of a service.
    ///
    /// # Errors
    ///
    /// The errors of [`Id::send_req`].
    pub(crate) fn send_sidr_req(self: &Arc<Self>, mut given: SidrReqParameters<'_>) -> Result {
        check_private_data(Kind::SidrReq, given.private_data)?;
        self.check_idle()?;
        let address = self.address_along(&mut given.path, given.source)?;
        let memory = room()?;
        let step = input::SidrReqParam {
            patience: input::Patience {
                timeout: given.timeout,
                retries: given.max_retries,
            },
            rto: address.port().round_trips.of(Kind::SidrReq).patience(),
        };
        let mut paths = Paths {
            address: Some(address),
            alternate: None,
            data_lid: 0,
        };
        self.with(|inner| {
            let mut before = Before::of(inner);
            let now = self.manager.now();
            let actions = inner.machine.send_sidr_req(&step, now).map_err(refused)?;
            before.paths = Some(inner.exchange_paths(&mut paths));
            inner.service = given.service;
            inner.tid = inner.own_tid(self);
            let message = sidr_req::Parameters {
                request_id: self.local(),
                pkey: Pkey::new(given.path.pkey()),
                service_id: given.service,
                private_data: given.private_data,
            };
            let sent = inner.ask(self, Kind::SidrReq, memory, |inner, out| {
                message.build(inner.tid, out)
            });
            inner.settle(self, before, sent, (&actions, now))
        })
    }

    /// Answers a peer that asked for the queue pair of a service.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such request, or too much data; `ENOMEM`, and the device's error.
    pub(crate) fn send_sidr_rep(self: &Arc<Self>, given: &SidrRepParameters<'_>) -> Result {
        let memory = room()?;
        self.with(|inner| {
            let before = Before::of(inner);
            let now = self.manager.now();
            let actions = inner.machine.send_sidr_rep(given.status).map_err(refused)?;
            let message = sidr_rep::Parameters {
                request_id: before.machine.ids().1,
                status: given.status,
                qpn: given.qpn,
                service_id: inner.service,
                qkey: given.qkey,
                ece: given.ece,
                information: given.information,
                private_data: given.private_data,
            };
            let sent = inner.destination(self).and_then(|to| {
                to.post_kept(Kind::SidrRep, memory, |out| message.build(inner.tid, out))
            });
            let (sent, bytes) = match sent {
                Ok(bytes) => (Ok(()), Some(bytes)),
                Err(error) => (Err(error), None),
            };
            inner.settle(self, before, sent, (&actions, now))?;
            // Only once it was sent: an answer that is kept makes a repeated request a duplicate.
            if let (Some(request), Some(bytes)) = (&mut inner.sidr_request, bytes) {
                request.answered = Some(Answered::new(bytes, now));
            }
            Ok(())
        })
    }
}
