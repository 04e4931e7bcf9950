// SPDX-License-Identifier: GPL-2.0-only

//! The calls of a consumer on its identifier.
//!
//! A call that fails has changed nothing, unless it says so.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::Address,
    id::{
        Id,
        Inner, //
    },
    machine::{
        actions::{
            Actions,
            Outgoing,
            Report,
            Send, //
        },
        input,
        time::Time,
        Machine,
        Refused,
        Request, //
    },
    message::{
        Extra,
        Room, //
    },
    notice::Notice,
    parameters::{
        RepParameters,
        ReqParameters, //
    }, //
};
use crate::wire::{
    cm::{
        BuildError,
        CommId,
        Kind,
        Reason,
        ServiceId, //
    },
    mad::Blank, //
};

mod sidr_calls;

/// `EISCONN`, which the `kernel` crate does not name.
fn is_connected() -> Error {
    Error::from_errno(-106)
}

fn refused(_: Refused) -> Error {
    EINVAL
}

impl Id {
    /// Asks for a connection.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the identifier is in use, the paths are not from a port with a connection
    /// manager, differ in P_Key or MTU, or there is too much private data; `ENOMEM`, and what the
    /// device says.
    pub(crate) fn send_req(self: &Arc<Self>, mut given: ReqParameters<'_>) -> Result {
        check_private_data(Kind::Req, given.private_data)?;
        // A REQ has one P_Key and one MTU for both of its paths.
        if given.alternate.as_ref().is_some_and(|alternate| {
            alternate.pkey() != given.primary.pkey() || alternate.mtu() != given.primary.mtu()
        }) {
            return Err(EINVAL);
        }
        self.check_idle()?;
        let address = self.address_along(&mut given.primary, given.source)?;
        let alternate = match &mut given.alternate {
            Some(path) => Some(KBox::new(self.address_along(path, None)?, GFP_KERNEL)?),
            None => None,
        };
        let memory = room()?;
        let port = address.port().clone();
        let step = given.step(port.round_trips.of(Kind::Req).patience());
        let mut paths = Paths {
            address: Some(address),
            alternate,
            data_lid: given.outbound_dlid.unwrap_or(0),
        };
        self.with(|inner| {
            // A clone: the step consumes the state, and a request that cannot be sent has changed
            // nothing.
            let mut before = Before::of(inner);
            let now = self.manager.now();
            let actions = inner.machine.send_req(&step, now).map_err(refused)?;
            before.paths = Some(inner.exchange_paths(&mut paths));
            inner.service = given.service;
            inner.qp_type = given.qp_type;
            inner.tid = inner.own_tid(self);
            let message = given.message(self, &port);
            let sent = inner.ask(self, Kind::Req, memory, |inner, out| {
                message.build(inner.tid, out)
            });
            inner.settle(self, before, sent, (&actions, now))
        })
    }

    /// Accepts a connection that a peer asked for.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such request, or too much private data; `ENOMEM`, and the device's
    /// error.
    pub(crate) fn send_rep(self: &Arc<Self>, given: &RepParameters<'_>) -> Result {
        check_private_data(Kind::Rep, given.private_data)?;
        let memory = room()?;
        self.with(|inner| {
            let before = Before::of(inner);
            let now = self.manager.now();
            // A reference of its own, as the identifier changes while the port is in use.
            let port = inner.port().ok_or(EINVAL)?.clone();
            let step = input::RepParam {
                qpn: given.qpn,
                psn: given.psn,
                responder_resources: given.responder_resources,
                initiator_depth: given.initiator_depth,
                rto: port.round_trips.of(Kind::Rep).patience(),
            };
            let actions = inner.machine.send_rep(&step, now).map_err(refused)?;
            let message = given.message(inner, &port);
            let sent = inner.answer(self, memory, |inner, out| message.build(inner.tid, out));
            inner.settle(self, before, sent, (&actions, now))
        })
    }

    /// Says that the connection can be used.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no reply to a REQ, or too much private data; `ENOMEM`, and the
    /// device's error.
    pub(crate) fn send_rtu(self: &Arc<Self>, private_data: &[u8]) -> Result {
        check_private_data(Kind::Rtu, private_data)?;
        let saved = saved(private_data)?;
        self.with(|inner| {
            let before = Before::of(inner);
            let now = self.manager.now();
            let actions = inner.machine.send_rtu().map_err(refused)?;
            let sent = inner.send_step(self, &actions, private_data);
            inner.settle(self, before, sent, (&actions, now))?;
            inner.saved = saved;
            Ok(())
        })
    }

    /// Sends a DREQ, which ends the connection.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no connection, or too much private data. On other errors the
    /// connection is over all the same.
    pub(crate) fn send_dreq(self: &Arc<Self>, private_data: &[u8]) -> Result {
        check_private_data(Kind::Dreq, private_data)?;
        self.with(|inner| {
            let now = self.manager.now();
            let patience = inner
                .port()
                .map_or(0, |port| port.round_trips.of(Kind::Dreq).patience());
            let actions = inner.machine.send_dreq(patience, now).map_err(refused)?;
            let sent = match private_data {
                [] => inner.ask_to_disconnect(self),
                _ => inner.ask_to_disconnect_with(self, private_data),
            };
            // There is nothing to tell: the call says how it went.
            match sent {
                Ok(()) => {
                    let _ = inner.follow(self, &actions, now, None);
                    Ok(())
                }
                Err(error) => {
                    let failed = inner.machine.send_failed(Request::Dreq, now);
                    // Both, in this order: the second step replaces the timer of the first by the
                    // time-wait's.
                    let _ = inner.follow(self, &actions, now, None);
                    let _ = inner.follow(self, &failed, now, None);
                    Err(error)
                }
            }
        })
    }

    /// Answers that the peer has disconnected. The connection is over, whether the answer can be
    /// sent or not.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it has not, or if there is too much private data; then nothing has changed.
    /// The error of the sending.
    pub(crate) fn send_drep(self: &Arc<Self>, private_data: &[u8]) -> Result {
        check_private_data(Kind::Drep, private_data)?;
        let saved = saved(private_data)?;
        self.with(|inner| {
            let now = self.manager.now();
            let actions = inner.machine.send_drep(now).map_err(refused)?;
            let sent = inner.send_step(self, &actions, private_data);
            // Also when it could not be sent: the peer repeats its DREQ, and the time-wait
            // answers that.
            inner.saved = saved;
            let _ = inner.follow(self, &actions, now, None);
            sent
        })
    }

    /// Rejects a connection. It is over, whether the rejection can be sent or not.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is nothing to reject, or too much to say; then nothing has changed. What
    /// sending says.
    pub(crate) fn send_rej(
        self: &Arc<Self>,
        reason: Reason,
        information: &[u8],
        private_data: &[u8],
    ) -> Result {
        check_private_data(Kind::Rej, private_data)?;
        if information.len() > crate::wire::cm::INFORMATION_LEN {
            return Err(EINVAL);
        }
        self.with(|inner| {
            let now = self.manager.now();
            let actions = inner.machine.send_rej(reason, now).map_err(refused)?;
            let sent = match actions.send {
                Some(Send::New(outgoing)) => inner.send_new(
                    self,
                    outgoing,
                    &Extra {
                        information,
                        private_data,
                    },
                ),
                _ => Ok(()),
            };
            let _ = inner.follow(self, &actions, now, None);
            sent
        })
    }

    /// Says that the answer will take longer.
    ///
    /// # Errors
    ///
    /// `EINVAL` if nothing is to be answered.
    pub(crate) fn prepare_mra(self: &Arc<Self>) -> Result {
        self.with(|inner| {
            let now = self.manager.now();
            let actions = inner.machine.prepare_mra().map_err(refused)?;
            inner.send(self, &actions, None);
            let _ = inner.follow(self, &actions, now, None);
            Ok(())
        })
    }

    /// The consumer has seen the connection work before it was told so. Does not sleep, and may be
    /// called with interrupts disabled.
    ///
    /// # Errors
    ///
    /// `EISCONN` if it is known to work, `EINVAL` if it cannot, `ENODEV` if the device goes,
    /// `ENOMEM`.
    pub(crate) fn established(self: &Arc<Self>) -> Result {
        let mut notice = Notice::new(Report::UserEstablished, GFP_ATOMIC)?;
        notice.id = Some(self.clone());
        let theirs = self.with(|inner| -> Result<CommId> {
            let now = self.manager.now();
            let actions = inner
                .machine
                .established()
                .map_err(|refused| match refused.state {
                    super::StateName::Established => is_connected(),
                    _ => EINVAL,
                })?;
            // The consumer is told later, and not if it has let go by then.
            let _ = inner.follow(self, &actions, now, None);
            Ok(inner.machine.ids().1)
        })?;
        // Before what the peer sends from now on.
        self.manager.lanes.push(theirs, notice);
        Ok(())
    }

    /// The consumer has seen the queue pair take its alternate path. Does not sleep, and may be
    /// called with interrupts disabled.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no connection.
    pub(crate) fn migrated(self: &Arc<Self>) -> Result {
        self.with(|inner| {
            let now = self.manager.now();
            let actions = inner.machine.migrated().map_err(refused)?;
            let mut replaced = None;
            // A queue pair that was given its alternate path by other means than a LAP has one that
            // is not known here: the peer may still be reached at the first.
            if let Some(alternate) = inner.alternate.as_deref().cloned() {
                replaced = inner.address.replace(alternate);
                // The consumer, or the peer's REQ, has named that LID for the first path alone.
                inner.data_lid = 0;
            }
            // The peer has left the address that its names came from.
            inner.forget_names(self);
            let _ = inner.follow(self, &actions, now, None);
            Ok(replaced)
        })
        // Without the lock.
        .map(drop)
    }

    /// Refuses calls early that the machine would refuse later, when more has been done.
    fn check_idle(&self) -> Result {
        match self.look(|inner| inner.machine.name()) {
            super::StateName::Idle => Ok(()),
            _ => Err(EINVAL),
        }
    }
}

/// The state that is restored if a call's message cannot be sent.
struct Before<'a> {
    machine: Machine,
    service: ServiceId,
    /// The paths that the call has replaced. The call drops them, or those that it has not taken,
    /// without the lock: a path may have the last reference to its port.
    paths: Option<&'a mut Paths>,
}

/// The paths of an identifier.
struct Paths {
    address: Option<Address>,
    alternate: Option<KBox<Address>>,
    data_lid: u16,
}

impl Before<'_> {
    fn of(inner: &Inner) -> Self {
        Self {
            machine: inner.machine.clone(),
            service: inner.service,
            paths: None,
        }
    }
}

impl Inner {
    /// Sends a DREQ with private data, and keeps it.
    fn ask_to_disconnect_with(&mut self, id: &Arc<Id>, private_data: &[u8]) -> Result {
        // Not before the step: consumers disconnect to find out which end has disconnected.
        let memory = room()?;
        let extra = Extra {
            private_data,
            ..Extra::default()
        };
        self.ask(id, Kind::Dreq, memory, |inner, out| {
            inner.build(id, Outgoing::Dreq, &extra, out)
        })
    }

    /// Sends a REP, and keeps it: it is repeated as a request is. The peer waits for it, so it
    /// is not queued.
    fn answer(
        &mut self,
        id: &Id,
        memory: Room,
        write: impl FnOnce(&Self, Blank<'_>) -> core::result::Result<(), BuildError>,
    ) -> Result {
        let to = self.destination(id)?;
        let rep = to.post_kept(Kind::Rep, memory, |out| write(self, out))?;
        self.request = Some(rep);
        Ok(())
    }

    /// Sends the message of a step that needs private data alone.
    fn send_step(&self, id: &Id, actions: &Actions, private_data: &[u8]) -> Result {
        let extra = Extra {
            private_data,
            ..Extra::default()
        };
        match actions.send {
            Some(Send::New(outgoing)) => self.send_new(id, outgoing, &extra),
            _ => Ok(()),
        }
    }

    /// Exchanges the paths with `paths`, and returns those: the paths that were.
    fn exchange_paths<'a>(&mut self, paths: &'a mut Paths) -> &'a mut Paths {
        core::mem::swap(&mut self.address, &mut paths.address);
        core::mem::swap(&mut self.alternate, &mut paths.alternate);
        core::mem::swap(&mut self.data_lid, &mut paths.data_lid);
        paths
    }

    /// Ends a call: by what its step asks for if its message was sent, and else by undoing it.
    fn settle(
        &mut self,
        id: &Arc<Id>,
        before: Before<'_>,
        sent: Result,
        (actions, now): (&Actions, Time),
    ) -> Result {
        if let Err(error) = sent {
            self.machine = before.machine;
            self.service = before.service;
            if let Some(paths) = before.paths {
                let _ = self.exchange_paths(paths);
            }
            return Err(error);
        }
        // Calls tell nothing.
        let _ = self.follow(id, actions, now, None);
        Ok(())
    }
}

fn check_private_data(kind: Kind, private_data: &[u8]) -> Result {
    if private_data.len() > kind.private_data_len() {
        return Err(EINVAL);
    }
    Ok(())
}

/// Room for a request, which is kept until it is answered.
fn room() -> Result<Room> {
    // Atomic: consumers may call with locks held and interrupts disabled.
    Ok(KBox::new_uninit(GFP_ATOMIC)?)
}

/// A copy of private data, for duplicates.
fn saved(private_data: &[u8]) -> Result<Option<KBox<KVec<u8>>>> {
    if private_data.is_empty() {
        return Ok(None);
    }
    let mut saved = KVec::new();
    saved.extend_from_slice(private_data, GFP_ATOMIC)?;
    Ok(Some(KBox::new(saved, GFP_ATOMIC)?))
}
