// SPDX-License-Identifier: GPL-2.0-only

//! The data of a connection, in the parts in which they become known.

use super::input::{
    Patience,
    QpType,
    Rep,
    RepParam,
    Req,
    ReqParam, //
};
use super::state::LapState;
use super::time;
use super::wire::cm::comm_id::CommId;
use super::wire::cm::mtu::Mtu;
use super::wire::pkey::Pkey;
use super::wire::psn::Psn;
use super::wire::qpn::Qpn;

/// Terms that a REQ of either end settles, and a REP changes. "Our" and "peer" are as this end
/// sees it.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// Kind of our queue pair.
    pub(super) qp_type: QpType,
    /// P_Key of the partition.
    pub(super) pkey: Pkey,
    /// MTU of the path.
    pub(super) mtu: Mtu,
    /// RDMA reads and atomics that the peer may have outstanding.
    pub(super) responder_resources: u8,
    /// RDMA reads and atomics that we may have outstanding.
    pub(super) initiator_depth: u8,
    /// Retries of the transport.
    pub(super) retry_count: u8,
    /// Retries of the transport when the peer is not ready; the peer says.
    pub(super) rnr_retry_count: u8,
    /// Local ACK timeout of the primary path, as an exponent. The packet's way there and back as
    /// long as the peer's own delay is not known.
    pub(super) ack_timeout: u8,
    /// Local ACK timeout of the alternate path, if there is one.
    pub(super) alternate_timeout: Option<u8>,
    /// Time that the peer may take to answer us, and number of our tries.
    pub(super) patience: Patience,
}

/// Longest wait that a peer may ask for in each try, as an exponent: 16 s, where `rdma_cm` asks
/// for 4. It may name hours, and 16 tries.
const LONGEST_TRY: u8 = 22;

/// Longest time-wait of a connection, in milliseconds: a peer may name hours.
const LONGEST_TIME_WAIT: u32 = 300_000;

impl Terms {
    /// The terms that our REQ proposes.
    pub(super) fn proposed(param: &ReqParam) -> Terms {
        let there_and_back = time::milliseconds(param.packet_life_time).saturating_mul(2);
        let answering = time::milliseconds(param.remote_response_timeout);
        Terms {
            qp_type: param.qp_type,
            pkey: param.pkey,
            mtu: param.mtu,
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
            retry_count: param.retry_count,
            rnr_retry_count: 0,
            ack_timeout: param.packet_life_time.saturating_add(1),
            alternate_timeout: param.alternate_life_time.map(|time| time.saturating_add(1)),
            patience: Patience {
                timeout: there_and_back.saturating_add(answering),
                retries: param.retries,
            },
        }
    }

    /// The terms that the peer's REQ proposes. Its resources are what our depth is about, and the
    /// other way round.
    pub(super) fn asked(req: &Req) -> Terms {
        Terms {
            qp_type: req.qp_type,
            pkey: req.pkey,
            mtu: req.mtu,
            responder_resources: req.initiator_depth,
            initiator_depth: req.responder_resources,
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            ack_timeout: used(req.ack_timeout),
            alternate_timeout: req.alternate_ack_timeout.map(used),
            patience: Patience {
                timeout: time::milliseconds(req.local_response_timeout.min(LONGEST_TRY)),
                retries: req.max_retries,
            },
        }
    }

    /// The terms after our REP.
    pub(super) fn answering(self, param: &RepParam) -> Terms {
        Terms {
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
            ..self
        }
    }

    /// The terms after the peer's REP.
    pub(super) fn answered(self, rep: &Rep) -> Terms {
        // The time-out that was proposed is one more than the packet life time, see `proposed`.
        let with_delay =
            |timeout: u8| time::ack_timeout(rep.target_ack_delay, timeout.saturating_sub(1));
        Terms {
            responder_resources: rep.initiator_depth,
            initiator_depth: rep.responder_resources,
            rnr_retry_count: rep.rnr_retry_count,
            ack_timeout: with_delay(self.ack_timeout),
            alternate_timeout: self.alternate_timeout.map(with_delay),
            ..self
        }
    }

    /// The terms after the peer's LAP.
    pub(super) fn loaded(self, ack_timeout: u8) -> Terms {
        Terms {
            alternate_timeout: Some(used(ack_timeout)),
            ..self
        }
    }

    /// The terms after the queue pair has taken its alternate path.
    pub(super) fn migrated(self) -> Terms {
        Terms {
            ack_timeout: self.alternate_timeout.unwrap_or(self.ack_timeout),
            ..self
        }
    }

    /// Time that packets of the connection may still be under way after its end, in milliseconds.
    pub(super) fn time_wait(&self) -> u32 {
        time::milliseconds(self.ack_timeout).min(LONGEST_TIME_WAIT)
    }
}

/// An ACK timeout from a message as this end uses it: zero would be for ever.
const fn used(ack_timeout: u8) -> u8 {
    if ack_timeout == 0 {
        1
    } else {
        ack_timeout
    }
}

/// Our end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    /// Our queue pair number.
    pub(super) qpn: Qpn,
    /// First sequence number that the peer sends with.
    pub(super) psn: Psn,
}

/// The peer's end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// The peer's name for the connection.
    pub(super) id: CommId,
    /// Its queue pair number.
    pub(super) qpn: Qpn,
    /// First sequence number that we send with.
    pub(super) psn: Psn,
}

impl Peer {
    /// The peer of a REP, to a queue pair of this type: a target of XRC is an end-to-end context.
    pub(super) fn replied(rep: &Rep, qp_type: QpType) -> Peer {
        Peer {
            id: rep.sender,
            qpn: match qp_type {
                QpType::XrcIni => rep.eecn,
                _ => rep.qpn,
            },
            psn: rep.psn,
        }
    }
}

/// A connection of which everything is known.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) terms: Terms,
    pub(super) own: Own,
    pub(super) peer: Peer,
}

/// The data known at the moment, for the attributes of the queue pair.
pub(super) struct View<'a> {
    pub(super) terms: &'a Terms,
    pub(super) own: Option<Own>,
    pub(super) peer: Option<Peer>,
    pub(super) lap: LapState,
}
