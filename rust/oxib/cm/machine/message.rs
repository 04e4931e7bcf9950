// SPDX-License-Identifier: GPL-2.0-only

//! Conversion of messages as they stand on the wire to the fields that the machine reads.

use super::input::{
    Incoming,
    QpType,
    Rep,
    Req, //
};
use super::wire::cm;
use super::wire::cm::transport::Transport;
use super::wire::cm::Message;

/// Takes a message that was looked up to be for a machine: a REQ or SIDR_REQ that is for one is a
/// duplicate.
impl From<Message<'_>> for Incoming {
    fn from(message: Message<'_>) -> Incoming {
        match message {
            Message::Req(_) => Incoming::DuplicateReq,
            Message::Mra(mra) => Incoming::Mra {
                sender: mra.local_comm_id(),
                of: mra.acknowledged(),
                service_timeout: mra.service_timeout().exponent(),
            },
            Message::Rej(rej) => Incoming::Rej {
                sender: rej.local_comm_id(),
                of: rej.rejected(),
                reason: rej.reason(),
            },
            Message::Rep(rep) => Incoming::Rep(rep.into()),
            Message::Rtu(rtu) => Incoming::Rtu {
                sender: rtu.local_comm_id(),
            },
            Message::Dreq(dreq) => Incoming::Dreq {
                sender: dreq.local_comm_id(),
                qpn: dreq.remote_qpn(),
            },
            Message::Drep(drep) => Incoming::Drep {
                sender: drep.local_comm_id(),
            },
            Message::SidrReq(_) => Incoming::DuplicateSidrReq,
            Message::SidrRep(_) => Incoming::SidrRep,
            Message::Lap(lap) => Incoming::Lap {
                sender: lap.local_comm_id(),
                ack_timeout: lap.alternate().local_ack_timeout.exponent(),
            },
            Message::Apr(apr) => Incoming::Apr {
                sender: apr.local_comm_id(),
            },
        }
    }
}

impl From<&cm::rep::Rep> for Rep {
    fn from(rep: &cm::rep::Rep) -> Rep {
        Rep {
            sender: rep.local_comm_id(),
            qpn: rep.local_qpn(),
            eecn: rep.local_eecn(),
            psn: rep.starting_psn(),
            responder_resources: rep.responder_resources(),
            initiator_depth: rep.initiator_depth(),
            rnr_retry_count: rep.rnr_retry_count(),
            target_ack_delay: rep.target_ack_delay().exponent(),
        }
    }
}

/// A REQ for a transport that no queue pair here has: it is to be rejected as
/// [`Reason::INVALID_TRANSPORT_TYPE`].
///
/// [`Reason::INVALID_TRANSPORT_TYPE`]: cm::reason::Reason::INVALID_TRANSPORT_TYPE
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownTransport(pub Transport);

impl TryFrom<&cm::req::Req> for Req {
    type Error = UnknownTransport;

    fn try_from(req: &cm::req::Req) -> Result<Req, UnknownTransport> {
        Ok(Req {
            sender: req.local_comm_id(),
            qp_type: passive_type(req.transport())?,
            qpn: req.local_qpn(),
            psn: req.starting_psn(),
            pkey: req.pkey(),
            mtu: req.path_mtu(),
            responder_resources: req.responder_resources(),
            initiator_depth: req.initiator_depth(),
            retry_count: req.retry_count(),
            rnr_retry_count: req.rnr_retry_count(),
            remote_response_timeout: req.remote_cm_response_timeout().exponent(),
            local_response_timeout: req.local_cm_response_timeout().exponent(),
            max_retries: req.max_cm_retries(),
            ack_timeout: req.primary().local_ack_timeout.exponent(),
            alternate_ack_timeout: req
                .alternate()
                .map(|path| path.local_ack_timeout.exponent()),
        })
    }
}

/// The type of the passive end's queue pair.
fn passive_type(transport: Transport) -> Result<QpType, UnknownTransport> {
    match transport {
        Transport::Rc => Ok(QpType::Rc),
        Transport::Uc => Ok(QpType::Uc),
        Transport::Xrc => Ok(QpType::XrcTgt),
        Transport::Rd | Transport::Extended(_) => Err(UnknownTransport(transport)),
    }
}
