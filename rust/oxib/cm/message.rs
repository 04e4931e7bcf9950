// SPDX-License-Identifier: GPL-2.0-only

//! Messages of ours: built, sent, and sent again.

use core::mem::MaybeUninit;

use kernel::prelude::*;

use super::{
    address::{
        Address,
        Destination, //
    },
    id::{
        Id,
        Inner, //
    },
    machine::actions::{
        Actions,
        Outgoing,
        Send,
        SERVICE_TIMEOUT, //
    }, //
};
use crate::{
    rdma::{
        cm_trace,
        mad, //
    },
    wire::{
        cm::{
            drep,
            dreq,
            mra,
            rej,
            rtu,
            sidr_rep,
            BuildError,
            CommId,
            Ece,
            Kind,
            Reason,
            Timeout, //
        },
        mad::Blank,
        qpn::Qpn, //
    },
};

/// Data that a consumer adds to a message.
#[derive(Clone, Copy, Default)]
pub(super) struct Extra<'a> {
    /// Additional information on a rejection.
    pub(super) information: &'a [u8],
    /// Private data of the consumer.
    pub(super) private_data: &'a [u8],
}

/// A message as bytes.
pub(super) type Bytes = [u8; mad::LEN];

/// Memory for a message that is kept, without one in it yet.
pub(super) type Room = KBox<MaybeUninit<Bytes>>;

impl Inner {
    /// Sends the message that a step asks for, of those that need nothing from a call. Answers to
    /// duplicates go to `source`, where those came from; without one they are left out.
    ///
    /// A message that cannot be sent is as one that was lost: it is repeated by us, or asked for
    /// again by the peer.
    pub(super) fn send(&self, id: &Id, actions: &Actions, source: Option<&Address>) {
        let result = match actions.send {
            None => Ok(()),
            Some(Send::Again) => self.send_again(id),
            Some(Send::New(outgoing)) => self.send_new(id, outgoing, &Extra::default()),
            Some(Send::Saved(outgoing)) => self.send_saved(id, outgoing, source),
        };
        let _ = result;
    }

    /// Builds a message with what a consumer adds, and sends it.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is too much to add, no address yet, or if it is a message that its call
    /// builds; the error of the sending.
    pub(super) fn send_new(&self, id: &Id, outgoing: Outgoing, extra: &Extra<'_>) -> Result {
        if let Outgoing::Req | Outgoing::Rep | Outgoing::SidrReq = outgoing {
            // Their calls build these, with more in them than an identifier keeps.
            return Err(EINVAL);
        }
        let to = self.destination(id)?;
        to.post(kind(outgoing), |out| self.build(id, outgoing, extra, out))
    }

    /// Returns the destination of messages to the peer.
    pub(super) fn destination(&self, id: &Id) -> Result<Destination<'_>> {
        let address = self.address.as_ref().ok_or(EINVAL)?;
        Ok(Destination::new(address, id.consumer.remote_manager()))
    }

    fn send_saved(&self, id: &Id, outgoing: Outgoing, source: Option<&Address>) -> Result {
        let to = Destination::from(source.ok_or(EINVAL)?);
        let extra = Extra {
            private_data: match outgoing {
                Outgoing::Rtu | Outgoing::Drep => self.saved.as_ref().map_or(&[], |saved| saved),
                _ => &[],
            },
            ..Extra::default()
        };
        to.post(kind(outgoing), |out| self.build(id, outgoing, &extra, out))
    }

    pub(super) fn build(
        &self,
        id: &Id,
        outgoing: Outgoing,
        extra: &Extra<'_>,
        out: Blank<'_>,
    ) -> core::result::Result<(), BuildError> {
        let (local_comm_id, remote_comm_id) = self.machine.ids();
        let private_data = extra.private_data;
        match outgoing {
            Outgoing::Rtu => rtu::Parameters {
                local_comm_id,
                remote_comm_id,
                private_data,
            }
            .build(self.tid, out),
            // A DREQ begins a transaction of its own; the answers have that of the peer's
            // message.
            Outgoing::Dreq => dreq::Parameters {
                local_comm_id,
                remote_comm_id,
                remote_qpn: self.peer_qpn,
                private_data,
            }
            .build(self.own_tid(id), out),
            Outgoing::Drep => drep::Parameters {
                local_comm_id,
                remote_comm_id,
                private_data,
            }
            .build(self.tid, out),
            Outgoing::Mra { of } => mra::Parameters {
                local_comm_id,
                remote_comm_id,
                acknowledged: of,
                service_timeout: Timeout::saturating(SERVICE_TIMEOUT),
                private_data,
            }
            .build(self.tid, out),
            Outgoing::Rej { reason, of, local } => {
                cm_trace::reject(
                    local_comm_id.get(),
                    remote_comm_id.get(),
                    reason.get(),
                    true,
                );
                let guid = self.guid();
                rej::Parameters {
                    local_comm_id: local,
                    remote_comm_id,
                    rejected: of,
                    reason,
                    ari: match (extra.information, reason) {
                        // By this the peer finds a connection of which it has not told its name.
                        ([], Reason::TIMEOUT) => &guid,
                        (information, _) => information,
                    },
                    private_data,
                }
                .build(self.tid, out)
            }
            // Only for a consumer that is gone: the REP of a call names a queue pair and is built
            // there.
            Outgoing::SidrRep { status } => sidr_rep::Parameters {
                request_id: remote_comm_id,
                status,
                qpn: Qpn::from_bytes([0; 3]),
                service_id: self.service,
                qkey: 0,
                ece: Ece::default(),
                information: extra.information,
                private_data,
            }
            .build(self.tid, out),
            // Not here: `send_new` refuses them.
            Outgoing::Req | Outgoing::Rep | Outgoing::SidrReq => Ok(()),
        }
    }

    /// The transaction of a request of ours.
    pub(super) fn own_tid(&self, id: &Id) -> u64 {
        let prefix = self.port().map_or(0, |port| port.transaction_prefix());
        u64::from(prefix) << 32 | u64::from(id.local().get())
    }

    fn guid(&self) -> [u8; 8] {
        let guid = self.port().map_or(0, |port| port.node_guid);
        guid.to_be_bytes()
    }
}

/// Rejects a message for which there is no identifier.
pub(super) fn reject(
    to: &Address,
    tid: u64,
    (sender, receiver): (CommId, CommId),
    rejected: rej::Rejected,
    (reason, ari): (Reason, &[u8]),
) {
    let message = rej::Parameters {
        local_comm_id: receiver,
        remote_comm_id: sender,
        rejected,
        reason,
        ari,
        private_data: &[],
    };
    cm_trace::reject(receiver.get(), sender.get(), reason.get(), true);
    // Lost or not sent is the same: the peer repeats its message.
    let _ = Destination::from(to).post(Kind::Rej, |out| message.build(tid, out));
}

fn kind(outgoing: Outgoing) -> Kind {
    match outgoing {
        Outgoing::Req => Kind::Req,
        Outgoing::Rep => Kind::Rep,
        Outgoing::Rtu => Kind::Rtu,
        Outgoing::Dreq => Kind::Dreq,
        Outgoing::Drep => Kind::Drep,
        Outgoing::Rej { .. } => Kind::Rej,
        Outgoing::Mra { .. } => Kind::Mra,
        Outgoing::SidrReq => Kind::SidrReq,
        Outgoing::SidrRep { .. } => Kind::SidrRep,
    }
}
