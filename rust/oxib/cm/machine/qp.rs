// SPDX-License-Identifier: GPL-2.0-only

//! Attributes of the connection's queue pair, as far as a machine knows them. The shell adds
//! paths, ports and keys.

use super::connection::Terms;
use super::connection::View;
use super::input::QpType;
use super::state::LapState;
use super::wire::cm::mtu::Mtu;
use super::wire::psn::Psn;
use super::wire::qpn::Qpn;

/// Attributes for the transition to INIT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QpInit {
    /// RDMA reads and atomics that the peer may have outstanding: if none, it has no right to any.
    pub responder_resources: u8,
}

/// Attributes for the transition to RTR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QpRtr {
    /// MTU of the path.
    pub mtu: Mtu,
    /// The peer's queue pair.
    pub dest_qpn: Qpn,
    /// First sequence number of the peer. Zero before the consumer has sent a REP.
    pub rq_psn: Psn,
    /// RDMA reads and atomics that the peer may have outstanding, where the type of the queue pair
    /// answers any.
    pub max_dest_rd_atomic: Option<u8>,
    /// Local ACK timeout of the alternate path, if there is one.
    pub alternate_timeout: Option<u8>,
}

/// Attributes for the transition to RTS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QpRts {
    /// The queue pair comes into use.
    First {
        /// First sequence number of ours.
        sq_psn: Psn,
        /// Retries and depth, where the type of the queue pair sends requests.
        requester: Option<Requester>,
        /// Local ACK timeout, where the type of the queue pair has one.
        timeout: Option<u8>,
        /// There is an alternate path: path migration is to be armed.
        rearm: bool,
    },
    /// The queue pair is in use already and gets another alternate path.
    Alternate {
        /// Local ACK timeout of the alternate path.
        timeout: u8,
    },
}

/// Attributes of a queue pair that sends requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Requester {
    /// Retries of the transport.
    pub retry_count: u8,
    /// Retries of the transport when the receiver is not ready.
    pub rnr_retry_count: u8,
    /// RDMA reads and atomics that we may have outstanding.
    pub max_rd_atomic: u8,
}

impl QpType {
    /// Returns whether the queue pair answers RDMA reads and atomics.
    const fn responds(self) -> bool {
        matches!(self, QpType::Rc | QpType::XrcTgt)
    }

    /// Returns whether the queue pair sends requests that are acknowledged.
    const fn requests(self) -> bool {
        matches!(self, QpType::Rc | QpType::XrcIni)
    }
}

impl Requester {
    fn of(terms: &Terms) -> Option<Requester> {
        terms.qp_type.requests().then_some(Requester {
            retry_count: terms.retry_count,
            rnr_retry_count: terms.rnr_retry_count,
            max_rd_atomic: terms.initiator_depth,
        })
    }
}

impl View<'_> {
    /// Attributes for the transition to INIT.
    pub(super) fn qp_init(&self) -> QpInit {
        QpInit {
            responder_resources: self.terms.responder_resources,
        }
    }

    /// Attributes for the transition to RTR, once the peer is known.
    pub(super) fn qp_rtr(&self) -> Option<QpRtr> {
        let peer = self.peer?;
        let responds = self.terms.qp_type.responds();
        Some(QpRtr {
            mtu: self.terms.mtu,
            dest_qpn: peer.qpn,
            rq_psn: self.own.map_or(Psn::wrapping(0), |own| own.psn),
            max_dest_rd_atomic: responds.then_some(self.terms.responder_resources),
            alternate_timeout: self.terms.alternate_timeout,
        })
    }

    /// Attributes for the transition to RTS, once the peer is known.
    pub(super) fn qp_rts(&self) -> Option<QpRts> {
        let peer = self.peer?;
        let timeout = self.terms.ack_timeout;
        Some(if self.lap == LapState::Uninit {
            QpRts::First {
                sq_psn: peer.psn,
                requester: Requester::of(self.terms),
                timeout: (self.terms.qp_type != QpType::Uc).then_some(timeout),
                rearm: self.terms.alternate_timeout.is_some(),
            }
        } else {
            QpRts::Alternate {
                timeout: self.terms.alternate_timeout.unwrap_or(0),
            }
        })
    }
}
