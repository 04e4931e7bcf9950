// SPDX-License-Identifier: GPL-2.0-only

//! The states of the active end, from the REQ to the RTU (IBTA 12.9).

use super::actions::{
    Effects,
    Failure,
    Outgoing,
    Report,
    Send,
    SERVICE_TIMEOUT, //
};
use super::connection::{
    Connection,
    Own,
    Peer,
    Terms, //
};
use super::established::Established;
use super::input::{
    Rep,
    ReqParam, //
};
use super::mra::Mra;
use super::pending::{
    Due,
    Pending,
    Tick, //
};
use super::release::TimeWait;
use super::state::{
    step,
    Idle,
    State,
    Step, //
};
use super::time;
use super::time::Time;
use super::wire::cm::comm_id::CommId;
use super::wire::cm::kind::Kind;
use super::wire::cm::mra::Acknowledged;
use super::wire::cm::reason::Reason;
use super::wire::cm::rej::Rejected;

/// A REQ of ours that is out.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) terms: Terms,
    pub(super) own: Own,
    /// Time in which we have to answer the peer, as an exponent.
    response_timeout: u8,
    pub(super) pending: Pending,
}

impl Asking {
    pub(super) fn new(param: &ReqParam, now: Time) -> Asking {
        let terms = Terms::proposed(param);
        Asking {
            own: Own {
                qpn: param.qpn,
                psn: param.psn,
            },
            response_timeout: param.local_response_timeout,
            pending: Pending::new(terms.patience, param.rto, now),
            terms,
        }
    }

    /// Takes the peer's REP.
    fn replied(self, rep: &Rep, now: Time) -> RepRcvd {
        let peer = Peer::replied(rep, self.terms.qp_type);
        RepRcvd {
            connection: Connection {
                terms: self.terms.answered(rep),
                own: self.own,
                peer,
            },
            mra_due: Mra::due_after(self.response_timeout, now),
        }
    }

    /// Takes the peer's REJ. If the peer knows another connection by these names, they rest for a
    /// while.
    fn rejected(self, reason: Reason, now: Time) -> State {
        if reason == Reason::STALE_CONNECTION {
            let local_qpn = Some(self.own.qpn);
            TimeWait::enter(CommId::ZERO, local_qpn, self.terms.time_wait(), now).into()
        } else {
            Idle::default().into()
        }
    }

    /// Sends a REJ, as the consumer gives up.
    fn reject(reason: Reason, local: CommId) -> (Idle, Effects) {
        let reject = Outgoing::Rej {
            reason,
            of: Rejected::Other,
            local,
        };
        (Idle::default(), Effects::new(reject))
    }

    fn failed(failure: Failure) -> (Idle, Effects) {
        let report = Report::ReqError(failure);
        (Idle::default(), Effects::report(report))
    }

    /// Handles the timer, which came due, in the state that `same` makes of this.
    fn expired(mut self, tick: Tick, same: fn(Asking) -> State) -> Step {
        match self.pending.expire(tick) {
            Due::Nothing => (same(self), Effects::NONE),
            Due::Again => (same(self), Effects::send(Send::Again)),
            Due::Over => step(Asking::failed(Failure::Timeout)),
        }
    }
}

/// A REQ is out.
#[derive(Clone, Debug)]
pub(super) struct ReqSent(pub(super) Asking);

impl ReqSent {
    pub(super) fn enter(asking: Asking) -> (ReqSent, Effects) {
        (ReqSent(asking), Effects::new(Outgoing::Req))
    }

    pub(super) fn replied(self, rep: &Rep, now: Time) -> (RepRcvd, Effects) {
        let effects = Effects::report(Report::RepReceived).after(self.0.pending.round_trip(now));
        (self.0.replied(rep, now), effects)
    }

    pub(super) fn rejected(self, reason: Reason, now: Time) -> Step {
        let effects = Effects::report(Report::RejReceived).after(self.0.pending.round_trip(now));
        (self.0.rejected(reason, now), effects)
    }

    /// Takes the peer's MRA, which asks for time.
    pub(super) fn put_off(self, service_timeout: u8, now: Time) -> (MraReqRcvd, Effects) {
        let effects = Effects::report(Report::MraReceived).after(self.0.pending.round_trip(now));
        let wait = service_wait(service_timeout, &self.0.terms);
        let asking = Asking {
            pending: self.0.pending.put_off(wait, now),
            ..self.0
        };
        (MraReqRcvd(asking), effects)
    }

    pub(super) fn reject(self, reason: Reason, local: CommId) -> (Idle, Effects) {
        Asking::reject(reason, local)
    }

    pub(super) fn failed(self, failure: Failure) -> (Idle, Effects) {
        Asking::failed(failure)
    }

    pub(super) fn expired(self, tick: Tick) -> Step {
        self.0.expired(tick, |asking| ReqSent(asking).into())
    }
}

/// A REQ is out, and the peer has asked for time.
#[derive(Clone, Debug)]
pub(super) struct MraReqRcvd(pub(super) Asking);

impl MraReqRcvd {
    pub(super) fn replied(self, rep: &Rep, now: Time) -> (RepRcvd, Effects) {
        (
            self.0.replied(rep, now),
            Effects::report(Report::RepReceived),
        )
    }

    pub(super) fn rejected(self, reason: Reason, now: Time) -> Step {
        (
            self.0.rejected(reason, now),
            Effects::report(Report::RejReceived),
        )
    }

    pub(super) fn reject(self, reason: Reason, local: CommId) -> (Idle, Effects) {
        Asking::reject(reason, local)
    }

    pub(super) fn failed(self, failure: Failure) -> (Idle, Effects) {
        Asking::failed(failure)
    }

    pub(super) fn expired(self, tick: Tick) -> Step {
        self.0.expired(tick, |asking| MraReqRcvd(asking).into())
    }
}

/// Time that a peer asks us to wait, in milliseconds: what it says, but no longer than we ask of
/// others, and the packet's way.
pub(super) fn service_wait(service_timeout: u8, terms: &Terms) -> u32 {
    let longest = service_timeout.min(SERVICE_TIMEOUT);
    time::milliseconds(longest).saturating_add(terms.time_wait())
}

/// A REP came, the consumer has not answered.
#[derive(Clone, Debug)]
pub(super) struct RepRcvd {
    pub(super) connection: Connection,
    /// The time at which an MRA is sent without the consumer's call.
    pub(super) mra_due: Time,
}

impl RepRcvd {
    /// Sends the RTU, on the consumer's call.
    pub(super) fn accept(self) -> (Established, Effects) {
        accept(self.connection)
    }

    /// Prepares an MRA, on the consumer's call.
    pub(super) fn prepare(self) -> (MraRepSent, Effects) {
        let mra = Mra::Prepared(self.mra_due);
        (self.waiting(mra), Effects::NONE)
    }

    pub(super) fn expired(self, now: Time) -> Step {
        if now < self.mra_due {
            return (self.into(), Effects::NONE);
        }
        step((self.waiting(Mra::Unasked), Effects::new(ACKNOWLEDGE)))
    }

    pub(super) fn reject(self, reason: Reason, local: CommId) -> (Idle, Effects) {
        reject(self.connection, reason, local)
    }

    pub(super) fn rejected(self, now: Time) -> (TimeWait, Effects) {
        rejected(self.connection, now)
    }

    fn waiting(self, mra: Mra) -> MraRepSent {
        MraRepSent {
            connection: self.connection,
            mra,
        }
    }
}

/// A REP came, the consumer is slow to answer.
#[derive(Clone, Debug)]
pub(super) struct MraRepSent {
    pub(super) connection: Connection,
    pub(super) mra: Mra,
}

impl MraRepSent {
    /// Sends the RTU, on the consumer's call.
    pub(super) fn accept(self) -> (Established, Effects) {
        accept(self.connection)
    }

    /// Notes the consumer's call for an MRA: it did not know that one has been sent.
    pub(super) fn prepare(self) -> Result<Step, State> {
        match self.mra.prepare() {
            Some(mra) => Ok((MraRepSent { mra, ..self }.into(), Effects::NONE)),
            None => Err(self.into()),
        }
    }

    /// Answers a duplicate of the REP.
    pub(super) fn repeated(self) -> (MraRepSent, Effects) {
        let mra = self.mra.sent();
        let effects = Effects::answered(Kind::Rep, ACKNOWLEDGE);
        (MraRepSent { mra, ..self }, effects)
    }

    pub(super) fn expired(self, now: Time) -> Step {
        if self.mra.due().is_none_or(|due| now < due) {
            return (self.into(), Effects::NONE);
        }
        let mra = self.mra.sent();
        step((MraRepSent { mra, ..self }, Effects::new(ACKNOWLEDGE)))
    }

    pub(super) fn reject(self, reason: Reason, local: CommId) -> (Idle, Effects) {
        reject(self.connection, reason, local)
    }

    pub(super) fn rejected(self, now: Time) -> (TimeWait, Effects) {
        rejected(self.connection, now)
    }
}

const ACKNOWLEDGE: Outgoing = Outgoing::Mra {
    of: Acknowledged::Rep,
};

fn accept(connection: Connection) -> (Established, Effects) {
    (Established::new(connection), Effects::new(Outgoing::Rtu))
}

/// Sends a REJ for the REP, on the consumer's call.
fn reject(connection: Connection, reason: Reason, local: CommId) -> (Idle, Effects) {
    let reject = Outgoing::Rej {
        reason,
        of: Rejected::Rep,
        local,
    };
    (Idle::after(connection.peer.id), Effects::new(reject))
}

/// Takes the peer's REJ for its own REP: the peer may have been ready for packets already.
fn rejected(connection: Connection, now: Time) -> (TimeWait, Effects) {
    let effects = Effects::report(Report::RejReceived);
    (TimeWait::after(&connection, now), effects)
}
