// SPDX-License-Identifier: GPL-2.0-only

//! A connection that works, and the migration of its path (IBTA 12.8).

use super::actions::{
    Cause,
    Effects,
    Outgoing,
    Report, //
};
use super::connection::{
    Connection,
    Terms, //
};
use super::input::QpType;
use super::release::{
    DreqRcvd,
    DreqSent,
    TimeWait, //
};
use super::state::{
    step,
    Idle,
    LapState,
    State,
    Step, //
};
use super::time::Time;
use super::wire::cm::kind::Kind;
use super::wire::cm::mra::Acknowledged;

/// The connection is established.
#[derive(Clone, Debug)]
pub(super) struct Established {
    pub(super) connection: Connection,
    pub(super) lap: LapState,
}

impl Established {
    pub(super) fn new(connection: Connection) -> Established {
        Established {
            connection,
            lap: LapState::Uninit,
        }
    }

    /// Sends a DREQ, on the consumer's call.
    pub(super) fn disconnect(self, rto: u32, now: Time) -> (DreqSent, Effects) {
        DreqSent::enter(self.connection, rto, now)
    }

    /// Takes the peer's DREQ.
    pub(super) fn disconnected(self) -> (DreqRcvd, Effects) {
        DreqRcvd::enter(self.connection)
    }

    /// Ends the connection of a consumer that is gone. The peer is told once, as no consumer is
    /// left to wait for its answer. A target of XRC goes on without: its queue pair may have
    /// other users.
    pub(super) fn abandon(self) -> (Idle, Effects) {
        let effects = match self.connection.terms.qp_type {
            QpType::XrcTgt => Effects::NONE,
            _ => Effects::new(Outgoing::Dreq),
        };
        (Idle::after(self.connection.peer.id), effects)
    }

    /// Answers a duplicate of the REP: the RTU is lost.
    pub(super) fn repeated(self) -> (Established, Effects) {
        (self, Effects::answered(Kind::Rep, Outgoing::Rtu))
    }

    /// Takes a late REJ of the peer's; none is taken once the path has been changed.
    pub(super) fn rejected(self, now: Time) -> Step {
        if self.lap != LapState::Uninit {
            return (self.into(), Effects::dropped(Cause::Unexpected));
        }
        let effects = Effects::report(Report::RejReceived);
        (TimeWait::after(&self.connection, now).into(), effects)
    }

    /// Takes the peer's LAP.
    pub(super) fn load(self, ack_timeout: u8) -> (Established, Effects) {
        match self.lap {
            LapState::Uninit | LapState::Idle => (
                self.with(LapState::Rcvd, |terms| terms.loaded(ack_timeout)),
                Effects::report(Report::LapReceived),
            ),
            LapState::MraSent => (self, Effects::answered(Kind::Lap, ACKNOWLEDGE)),
            LapState::Rcvd => (self, Effects::duplicate(Kind::Lap)),
            LapState::Sent | LapState::MraRcvd => (self, Effects::dropped(Cause::Unexpected)),
        }
    }

    /// Prepares an MRA for a LAP, on the consumer's call.
    pub(super) fn prepare(self) -> Result<Step, State> {
        match self.lap {
            LapState::Rcvd => {
                let next = self.with(LapState::MraSent, |terms| terms);
                Ok(step((next, Effects::NONE)))
            }
            _ => Err(self.into()),
        }
    }

    /// Notes that the queue pair has taken its alternate path.
    pub(super) fn migrated(self) -> Result<Step, State> {
        match self.lap {
            LapState::Uninit | LapState::Idle => {
                let next = self.with(LapState::Idle, Terms::migrated);
                Ok(step((next, Effects::NONE)))
            }
            _ => Err(self.into()),
        }
    }

    fn with(self, lap: LapState, change: impl FnOnce(Terms) -> Terms) -> Established {
        Established {
            connection: Connection {
                terms: change(self.connection.terms),
                ..self.connection
            },
            lap,
        }
    }
}

const ACKNOWLEDGE: Outgoing = Outgoing::Mra {
    of: Acknowledged::Lap,
};
