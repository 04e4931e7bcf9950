// SPDX-License-Identifier: GPL-2.0-only

//! The states of a service ID resolution (IBTA 12.11).

use super::actions::{
    Effects,
    Failure,
    Outgoing,
    Report,
    Send, //
};
use super::input::SidrReqParam;
use super::pending::{
    Due,
    Pending,
    Tick, //
};
use super::state::{
    step,
    Idle,
    Step, //
};
use super::time::Time;
use super::wire::cm::comm_id::CommId;
use super::wire::cm::sidr_rep::Status;

/// A SIDR_REQ is out.
#[derive(Clone, Debug)]
pub(super) struct SidrReqSent {
    pub(super) pending: Pending,
}

impl SidrReqSent {
    pub(super) fn enter(param: &SidrReqParam, now: Time) -> (SidrReqSent, Effects) {
        let pending = Pending::new(param.patience, param.rto, now);
        (SidrReqSent { pending }, Effects::new(Outgoing::SidrReq))
    }

    /// Takes the peer's SIDR_REP.
    pub(super) fn answered(self, now: Time) -> (Idle, Effects) {
        let effects = Effects::report(Report::SidrRepReceived).after(self.pending.round_trip(now));
        (Idle::default(), effects)
    }

    pub(super) fn failed(self, failure: Failure) -> (Idle, Effects) {
        let report = Report::SidrReqError(failure);
        (Idle::default(), Effects::report(report))
    }

    pub(super) fn expired(mut self, tick: Tick) -> Step {
        match self.pending.expire(tick) {
            Due::Nothing => (self.into(), Effects::NONE),
            Due::Again => (self.into(), Effects::send(Send::Again)),
            Due::Over => step(self.failed(Failure::Timeout)),
        }
    }
}

/// A SIDR_REQ came, the consumer has not answered.
#[derive(Clone, Debug)]
pub(super) struct SidrReqRcvd {
    /// The peer's name for its request.
    pub(super) request: CommId,
}

impl SidrReqRcvd {
    /// Sends a SIDR_REP, on the consumer's call. The shell recognises duplicates that come later.
    pub(super) fn answer(self, status: Status) -> (Idle, Effects) {
        let answer = Outgoing::SidrRep { status };
        (Idle::after(self.request), Effects::new(answer))
    }
}
