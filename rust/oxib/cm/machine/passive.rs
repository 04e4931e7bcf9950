// SPDX-License-Identifier: GPL-2.0-only

//! The states of the passive end, from the REQ to the RTU (IBTA 12.9).

use super::actions::{
    Effects,
    Failure,
    Outgoing,
    Report,
    Send, //
};
use super::active::service_wait;
use super::connection::{
    Connection,
    Own,
    Peer,
    Terms, //
};
use super::established::Established;
use super::input::{
    RepParam,
    Req, //
};
use super::mra::Mra;
use super::pending::{
    Due,
    Pending,
    Tick, //
};
use super::release::{
    DreqRcvd,
    TimeWait, //
};
use super::state::{
    step,
    Idle,
    State,
    Step, //
};
use super::time::Time;
use super::wire::cm::comm_id::CommId;
use super::wire::cm::kind::Kind;
use super::wire::cm::mra::Acknowledged;
use super::wire::cm::reason::Reason;
use super::wire::cm::rej::Rejected;

/// Longest time that a peer that sends MRAs may let us wait for its RTU, in milliseconds.
const LONGEST_WAIT: u64 = 300_000;

/// A REQ of the peer's.
#[derive(Clone, Debug)]
pub(super) struct PeerReq {
    pub(super) terms: Terms,
    pub(super) peer: Peer,
}

impl PeerReq {
    fn new(req: &Req) -> PeerReq {
        PeerReq {
            terms: Terms::asked(req),
            peer: Peer {
                id: req.sender,
                qpn: req.qpn,
                psn: req.psn,
            },
        }
    }

    /// Sends a REP, on the consumer's call.
    fn reply(self, param: &RepParam, now: Time) -> (RepSent, Effects) {
        let pending = Pending::new(self.terms.patience, param.rto, now);
        let connection = Connection {
            terms: self.terms.answering(param),
            own: Own {
                qpn: param.qpn,
                psn: param.psn,
            },
            peer: self.peer,
        };
        let offering = Offering {
            connection,
            pending,
        };
        (RepSent(offering), Effects::new(Outgoing::Rep))
    }

    /// Sends a REJ, on the consumer's call; `local` is our name for the connection if the peer
    /// has seen it.
    fn reject(self, reason: Reason, local: CommId) -> (Idle, Effects) {
        let reject = Outgoing::Rej {
            reason,
            of: Rejected::Req,
            local,
        };
        (Idle::after(self.peer.id), Effects::new(reject))
    }

    /// Takes the peer's REJ for its own REQ.
    fn rejected(self, reason: Reason, now: Time) -> Step {
        let effects = Effects::report(Report::RejReceived);
        let next = if reason == Reason::STALE_CONNECTION {
            TimeWait::enter(self.peer.id, None, self.terms.time_wait(), now).into()
        } else {
            Idle::after(self.peer.id).into()
        };
        (next, effects)
    }
}

const ACKNOWLEDGE: Outgoing = Outgoing::Mra {
    of: Acknowledged::Req,
};

/// A REQ came, the consumer has not answered.
#[derive(Clone, Debug)]
pub(super) struct ReqRcvd {
    pub(super) req: PeerReq,
    /// The time at which an MRA is sent without the consumer's call.
    pub(super) mra_due: Time,
}

impl ReqRcvd {
    pub(super) fn new(req: &Req, now: Time) -> ReqRcvd {
        ReqRcvd {
            req: PeerReq::new(req),
            mra_due: Mra::due_after(req.remote_response_timeout, now),
        }
    }

    pub(super) fn reply(self, param: &RepParam, now: Time) -> (RepSent, Effects) {
        self.req.reply(param, now)
    }

    pub(super) fn reject(self, reason: Reason) -> (Idle, Effects) {
        self.req.reject(reason, CommId::ZERO)
    }

    pub(super) fn rejected(self, reason: Reason, now: Time) -> Step {
        self.req.rejected(reason, now)
    }

    /// Ends the connection, as there is no memory for it. The peer is told nothing and asks
    /// again.
    pub(super) fn forget(self) -> (Idle, Effects) {
        (Idle::after(self.req.peer.id), Effects::NONE)
    }

    /// Prepares an MRA, on the consumer's call.
    pub(super) fn prepare(self) -> (MraReqSent, Effects) {
        let mra = Mra::Prepared(self.mra_due);
        (self.waiting(mra), Effects::NONE)
    }

    pub(super) fn expired(self, now: Time) -> Step {
        if now < self.mra_due {
            return (self.into(), Effects::NONE);
        }
        step((self.waiting(Mra::Unasked), Effects::new(ACKNOWLEDGE)))
    }

    fn waiting(self, mra: Mra) -> MraReqSent {
        MraReqSent { req: self.req, mra }
    }
}

/// A REQ came, the consumer is slow to answer.
#[derive(Clone, Debug)]
pub(super) struct MraReqSent {
    pub(super) req: PeerReq,
    pub(super) mra: Mra,
}

impl MraReqSent {
    pub(super) fn reply(self, param: &RepParam, now: Time) -> (RepSent, Effects) {
        self.req.reply(param, now)
    }

    pub(super) fn reject(self, reason: Reason, local: CommId) -> (Idle, Effects) {
        self.req.reject(reason, local)
    }

    pub(super) fn rejected(self, reason: Reason, now: Time) -> Step {
        self.req.rejected(reason, now)
    }

    /// Ends the connection, as there is no memory for it. A consumer that has prepared no MRA
    /// knows nothing of one, and the peer is told nothing more, as in [`ReqRcvd::forget`].
    pub(super) fn forget(self, local: CommId) -> (Idle, Effects) {
        match self.mra {
            Mra::Unasked => (Idle::after(self.req.peer.id), Effects::NONE),
            Mra::Prepared(_) | Mra::Sent => self.reject(Reason::CONSUMER_DEFINED, local),
        }
    }

    /// Notes the consumer's call for an MRA: it did not know that one has been sent.
    pub(super) fn prepare(self) -> Result<Step, State> {
        match self.mra.prepare() {
            Some(mra) => Ok((MraReqSent { mra, ..self }.into(), Effects::NONE)),
            None => Err(self.into()),
        }
    }

    /// Answers a duplicate of the REQ.
    pub(super) fn repeated(self) -> (MraReqSent, Effects) {
        let mra = self.mra.sent();
        let effects = Effects::answered(Kind::Req, ACKNOWLEDGE);
        (MraReqSent { mra, ..self }, effects)
    }

    pub(super) fn expired(self, now: Time) -> Step {
        if self.mra.due().is_none_or(|due| now < due) {
            return (self.into(), Effects::NONE);
        }
        let mra = self.mra.sent();
        step((MraReqSent { mra, ..self }, Effects::new(ACKNOWLEDGE)))
    }
}

/// A REP of ours that is out.
#[derive(Clone, Debug)]
pub(super) struct Offering {
    pub(super) connection: Connection,
    pub(super) pending: Pending,
}

impl Offering {
    /// Establishes the connection: the peer is ready, or the consumer has seen that it is.
    fn establish(self, report: Report) -> (Established, Effects) {
        (Established::new(self.connection), Effects::report(report))
    }

    /// Sends a REJ for our REP, by which the peer may already be sending.
    fn reject(self, reason: Reason, local: CommId, now: Time) -> (TimeWait, Effects) {
        let reject = Outgoing::Rej {
            reason,
            of: Rejected::Other,
            local,
        };
        (TimeWait::after(&self.connection, now), Effects::new(reject))
    }

    /// Takes the peer's REJ.
    fn rejected(self, reason: Reason, now: Time) -> Step {
        let effects = Effects::report(Report::RejReceived);
        let next = if reason == Reason::STALE_CONNECTION {
            TimeWait::after(&self.connection, now).into()
        } else {
            Idle::after(self.connection.peer.id).into()
        };
        (next, effects)
    }

    /// Takes the peer's DREQ: the peer was ready, and its RTU is lost or late.
    fn disconnected(self) -> (DreqRcvd, Effects) {
        DreqRcvd::enter(self.connection)
    }

    /// Sends a REJ, as the listener needs the connection's slot.
    fn give_up(self, local: CommId) -> (Idle, Effects) {
        let reject = Outgoing::Rej {
            reason: Reason::TIMEOUT,
            of: Rejected::Other,
            local,
        };
        let (next, effects) = self.failed(Failure::Timeout);
        let send = Some(Send::New(reject));
        (next, Effects { send, ..effects })
    }

    fn failed(self, failure: Failure) -> (Idle, Effects) {
        let report = Report::RepError(failure);
        (
            Idle::after(self.connection.peer.id),
            Effects::report(report),
        )
    }

    /// Handles the timer, which came due, in the state that `same` makes of this.
    fn expired(mut self, tick: Tick, same: fn(Offering) -> State) -> Step {
        match self.pending.expire(tick) {
            Due::Nothing => (same(self), Effects::NONE),
            Due::Again => (same(self), Effects::send(Send::Again)),
            Due::Over => step(self.failed(Failure::Timeout)),
        }
    }
}

/// A REP is out.
#[derive(Clone, Debug)]
pub(super) struct RepSent(pub(super) Offering);

impl RepSent {
    pub(super) fn ready(self, now: Time) -> (Established, Effects) {
        let round_trip = self.0.pending.round_trip(now);
        let (next, effects) = self.0.establish(Report::RtuReceived);
        (next, effects.after(round_trip))
    }

    pub(super) fn established(self) -> (Established, Effects) {
        self.0.establish(Report::UserEstablished)
    }

    /// Takes the peer's MRA, which asks for time.
    pub(super) fn put_off(self, service_timeout: u8, now: Time) -> (MraRepRcvd, Effects) {
        let effects = Effects::report(Report::MraReceived).after(self.0.pending.round_trip(now));
        let wait = service_wait(service_timeout, &self.0.connection.terms);
        let offering = Offering {
            pending: self.0.pending.put_off(wait, now).within(LONGEST_WAIT),
            ..self.0
        };
        (MraRepRcvd(offering), effects)
    }

    pub(super) fn reject(self, reason: Reason, local: CommId, now: Time) -> (TimeWait, Effects) {
        self.0.reject(reason, local, now)
    }

    pub(super) fn rejected(self, reason: Reason, now: Time) -> Step {
        self.0.rejected(reason, now)
    }

    pub(super) fn disconnected(self) -> (DreqRcvd, Effects) {
        self.0.disconnected()
    }

    pub(super) fn give_up(self, local: CommId) -> (Idle, Effects) {
        self.0.give_up(local)
    }

    pub(super) fn failed(self, failure: Failure) -> (Idle, Effects) {
        self.0.failed(failure)
    }

    pub(super) fn expired(self, tick: Tick) -> Step {
        self.0.expired(tick, |offering| RepSent(offering).into())
    }
}

/// A REP is out, and the peer has asked for time.
#[derive(Clone, Debug)]
pub(super) struct MraRepRcvd(pub(super) Offering);

impl MraRepRcvd {
    pub(super) fn ready(self) -> (Established, Effects) {
        self.0.establish(Report::RtuReceived)
    }

    pub(super) fn established(self) -> (Established, Effects) {
        self.0.establish(Report::UserEstablished)
    }

    pub(super) fn reject(self, reason: Reason, local: CommId, now: Time) -> (TimeWait, Effects) {
        self.0.reject(reason, local, now)
    }

    pub(super) fn rejected(self, reason: Reason, now: Time) -> Step {
        self.0.rejected(reason, now)
    }

    pub(super) fn disconnected(self) -> (DreqRcvd, Effects) {
        self.0.disconnected()
    }

    pub(super) fn give_up(self, local: CommId) -> (Idle, Effects) {
        self.0.give_up(local)
    }

    pub(super) fn failed(self, failure: Failure) -> (Idle, Effects) {
        self.0.failed(failure)
    }

    pub(super) fn expired(self, tick: Tick) -> Step {
        self.0.expired(tick, |offering| MraRepRcvd(offering).into())
    }
}
