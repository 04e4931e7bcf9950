// SPDX-License-Identifier: GPL-2.0-only

//! The end of a connection: from the DREQ to the end of the time-wait (IBTA 12.9).

use super::actions::{
    Effects,
    Failure,
    Outgoing,
    Report,
    Send, //
};
use super::connection::Connection;
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
use super::wire::cm::kind::Kind;
use super::wire::cm::reason::Reason;
use super::wire::cm::rej::Rejected;
use super::wire::qpn::Qpn;

/// A DREQ is out.
#[derive(Clone, Debug)]
pub(super) struct DreqSent {
    pub(super) connection: Connection,
    pub(super) pending: Pending,
}

impl DreqSent {
    pub(super) fn enter(connection: Connection, rto: u32, now: Time) -> (DreqSent, Effects) {
        let next = DreqSent {
            pending: Pending::new(connection.terms.patience, rto, now),
            connection,
        };
        (next, Effects::new(Outgoing::Dreq))
    }

    /// Takes the peer's DREP.
    pub(super) fn released(self, now: Time) -> (TimeWait, Effects) {
        let effects = Effects::report(Report::DrepReceived).after(self.pending.round_trip(now));
        (TimeWait::after(&self.connection, now), effects)
    }

    /// Takes the peer's DREQ, which crossed ours.
    pub(super) fn disconnected(self) -> (DreqRcvd, Effects) {
        DreqRcvd::enter(self.connection)
    }

    pub(super) fn rejected(self, now: Time) -> (TimeWait, Effects) {
        let effects = Effects::report(Report::RejReceived);
        (TimeWait::after(&self.connection, now), effects)
    }

    pub(super) fn failed(self, failure: Failure, now: Time) -> (TimeWait, Effects) {
        let effects = Effects::report(Report::DreqError(failure));
        (TimeWait::after(&self.connection, now), effects)
    }

    pub(super) fn expired(mut self, tick: Tick) -> Step {
        let now = tick.now;
        match self.pending.expire(tick) {
            Due::Nothing => (self.into(), Effects::NONE),
            Due::Again => (self.into(), Effects::send(Send::Again)),
            Due::Over => step(self.failed(Failure::Timeout, now)),
        }
    }
}

/// A DREQ came, the consumer has not answered.
#[derive(Clone, Debug)]
pub(super) struct DreqRcvd {
    pub(super) connection: Connection,
}

impl DreqRcvd {
    pub(super) fn enter(connection: Connection) -> (DreqRcvd, Effects) {
        (
            DreqRcvd { connection },
            Effects::report(Report::DreqReceived),
        )
    }

    /// Sends a DREP, on the consumer's call.
    pub(super) fn release(self, now: Time) -> (TimeWait, Effects) {
        (
            TimeWait::after(&self.connection, now),
            Effects::new(Outgoing::Drep),
        )
    }

    /// Takes the peer's DREP for a DREQ of ours that crossed its own.
    pub(super) fn released(self, now: Time) -> (TimeWait, Effects) {
        let effects = Effects::report(Report::DrepReceived);
        (TimeWait::after(&self.connection, now), effects)
    }

    /// Sends a DREP for a consumer that is gone.
    pub(super) fn abandon(self) -> (Idle, Effects) {
        let next = Idle::after(self.connection.peer.id);
        (next, Effects::new(Outgoing::Drep))
    }

    /// Counts a duplicate of the DREQ.
    pub(super) fn repeated(self) -> (DreqRcvd, Effects) {
        (self, Effects::duplicate(Kind::Dreq))
    }
}

/// The connection is over; packets of it may still be under way, which must not meet a new
/// connection of the same queue pair (IBTA 12.9).
#[derive(Clone, Debug)]
pub(super) struct TimeWait {
    /// The peer's name for the connection, if there was one.
    pub(super) remote: CommId,
    /// Our queue pair, if there was one.
    pub(super) local_qpn: Option<Qpn>,
    pub(super) until: Time,
}

impl TimeWait {
    pub(super) fn enter(
        remote: CommId,
        local_qpn: Option<Qpn>,
        milliseconds: u32,
        now: Time,
    ) -> TimeWait {
        TimeWait {
            remote,
            local_qpn,
            until: now.after(milliseconds.into()),
        }
    }

    pub(super) fn after(connection: &Connection, now: Time) -> TimeWait {
        TimeWait::enter(
            connection.peer.id,
            Some(connection.own.qpn),
            connection.terms.time_wait(),
            now,
        )
    }

    pub(super) fn expired(self, now: Time) -> Step {
        if now < self.until {
            return (self.into(), Effects::NONE);
        }
        step((
            Idle::after(self.remote),
            Effects::report(Report::TimewaitExit),
        ))
    }

    /// Answers a DREQ: the DREP is lost, or crossed it.
    pub(super) fn disconnected(self) -> (TimeWait, Effects) {
        (self, Effects::answered(Kind::Dreq, Outgoing::Drep))
    }

    /// Rejects a duplicate of the REQ as stale.
    pub(super) fn repeated(self, local: CommId) -> (TimeWait, Effects) {
        let reject = Outgoing::Rej {
            reason: Reason::STALE_CONNECTION,
            of: Rejected::Other,
            local,
        };
        (self, Effects::answered(Kind::Req, reject))
    }
}
