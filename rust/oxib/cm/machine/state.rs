// SPDX-License-Identifier: GPL-2.0-only

//! The states of a communication identifier: their names, and all of them as one type.

use core::fmt;

use super::actions::{
    Effects,
    Outgoing, //
};
use super::active::{
    MraRepSent,
    MraReqRcvd,
    RepRcvd,
    ReqSent, //
};
use super::connection::{
    Connection,
    Own,
    Peer,
    Terms,
    View, //
};
use super::established::Established;
use super::passive::{
    MraRepRcvd,
    MraReqSent,
    RepSent,
    ReqRcvd, //
};
use super::pending::Pending;
use super::release::{
    DreqRcvd,
    DreqSent,
    TimeWait, //
};
use super::sidr::{
    SidrReqRcvd,
    SidrReqSent, //
};
use super::time::Time;
use super::wire::cm::comm_id::CommId;
use super::wire::cm::kind::Kind;
use super::wire::qpn::Qpn;

/// The states that a consumer sees, in the order of `enum ib_cm_state` (IBTA 12.9,
/// 12.11).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum StateName {
    /// No conversation has begun, or the last one is over.
    Idle,
    /// Requests for a service are taken.
    Listen,
    /// A REQ is out.
    ReqSent,
    /// A REQ came, the consumer has not answered.
    ReqRcvd,
    /// A REQ came, the consumer is slow to answer.
    MraReqSent,
    /// A REQ is out, the peer is slow to answer.
    MraReqRcvd,
    /// A REP is out.
    RepSent,
    /// A REP came, the consumer has not answered.
    RepRcvd,
    /// A REP came, the consumer is slow to answer.
    MraRepSent,
    /// A REP is out, the peer is slow to answer.
    MraRepRcvd,
    /// The connection is established.
    Established,
    /// A DREQ is out.
    DreqSent,
    /// A DREQ came, the consumer has not answered.
    DreqRcvd,
    /// The connection is over; packets of it may still be under way.
    TimeWait,
    /// A SIDR_REQ is out.
    SidrReqSent,
    /// A SIDR_REQ came, the consumer has not answered.
    SidrReqRcvd,
}

impl StateName {
    /// All of them, in order.
    pub const ALL: [StateName; 16] = [
        StateName::Idle,
        StateName::Listen,
        StateName::ReqSent,
        StateName::ReqRcvd,
        StateName::MraReqSent,
        StateName::MraReqRcvd,
        StateName::RepSent,
        StateName::RepRcvd,
        StateName::MraRepSent,
        StateName::MraRepRcvd,
        StateName::Established,
        StateName::DreqSent,
        StateName::DreqRcvd,
        StateName::TimeWait,
        StateName::SidrReqSent,
        StateName::SidrReqRcvd,
    ];

    /// The number in `enum ib_cm_state`.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// Writes the state as the tables of the documentation do.
impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The states of path migration, in the order of `enum ib_cm_lap_state` (IBTA 12.8).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum LapState {
    /// The paths are those of the REQ.
    Uninit,
    /// A path has been loaded, or the connection has migrated.
    Idle,
    /// A LAP is out: never, no consumer's call sends one.
    Sent,
    /// A LAP came, the consumer has not answered.
    Rcvd,
    /// A LAP came, the consumer is slow to answer.
    MraSent,
    /// A LAP is out, the peer is slow to answer: never, as above.
    MraRcvd,
}

impl LapState {
    /// The number in `enum ib_cm_lap_state`.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// No conversation has begun, or the last one is over.
#[derive(Clone, Debug)]
pub(super) struct Idle {
    /// The peer's name for the connection that was. A message of it still finds this identifier,
    /// and is not taken for one of an unknown connection.
    pub(super) remote: CommId,
}

impl Idle {
    /// Creates the state after a connection that the peer knew by this name.
    pub(super) fn after(remote: CommId) -> Idle {
        Idle { remote }
    }

    /// Answers a duplicate of the DREQ of the connection that was.
    pub(super) fn disconnected(self) -> (Idle, Effects) {
        (self, Effects::answered(Kind::Dreq, Outgoing::Drep))
    }
}

impl Default for Idle {
    fn default() -> Idle {
        Idle::after(CommId::ZERO)
    }
}

/// Requests for a service are taken.
#[derive(Clone, Debug)]
pub(super) struct Listen;

/// The result of a step: the next state, and the effects.
pub(super) type Step = (State, Effects);

/// The step that a transition is.
pub(super) fn step<S: Into<State>>((next, effects): (S, Effects)) -> Step {
    (next.into(), effects)
}

/// Makes the type of any state of the types of each, and the name of it.
macro_rules! states {
    ($($name:ident,)*) => {
        /// Any state, with what is known in it.
        #[derive(Clone, Debug)]
        pub(super) enum State {
            $($name($name),)*
        }

        impl State {
            /// The state, as a consumer knows it.
            pub(super) fn name(&self) -> StateName {
                match self {
                    $(State::$name(_) => StateName::$name,)*
                }
            }
        }

        $(impl From<$name> for State {
            fn from(state: $name) -> State {
                State::$name(state)
            }
        })*
    };
}

states! {
    Idle,
    Listen,
    ReqSent,
    ReqRcvd,
    MraReqSent,
    MraReqRcvd,
    RepSent,
    RepRcvd,
    MraRepSent,
    MraRepRcvd,
    Established,
    DreqSent,
    DreqRcvd,
    TimeWait,
    SidrReqSent,
    SidrReqRcvd,
}

impl State {
    /// The peer's name for the connection, zero if it has told none.
    pub(super) fn remote(&self) -> CommId {
        match self {
            State::Listen(_) | State::ReqSent(_) | State::MraReqRcvd(_) | State::SidrReqSent(_) => {
                CommId::ZERO
            }
            State::Idle(state) => state.remote,
            State::TimeWait(state) => state.remote,
            State::SidrReqRcvd(state) => state.request,
            State::ReqRcvd(state) => state.req.peer.id,
            State::MraReqSent(state) => state.req.peer.id,
            State::RepSent(state) => state.0.connection.peer.id,
            State::MraRepRcvd(state) => state.0.connection.peer.id,
            State::RepRcvd(state) => state.connection.peer.id,
            State::MraRepSent(state) => state.connection.peer.id,
            State::Established(state) => state.connection.peer.id,
            State::DreqSent(state) => state.connection.peer.id,
            State::DreqRcvd(state) => state.connection.peer.id,
        }
    }

    /// The state of path migration. Each step shows it and the peer's name to the consumer, so
    /// neither is taken from a [`View`].
    pub(super) fn lap(&self) -> LapState {
        match self {
            State::Established(state) => state.lap,
            _ => LapState::Uninit,
        }
    }

    /// The peer's queue pair, from when it is known to the end of the connection.
    pub(super) fn remote_qpn(&self) -> Option<Qpn> {
        match self {
            State::DreqSent(state) => Some(state.connection.peer.qpn),
            State::DreqRcvd(state) => Some(state.connection.peer.qpn),
            _ => self.view()?.peer.map(|peer| peer.qpn),
        }
    }

    /// The time at which the timer is due, if the state has one.
    pub(super) fn due(&self) -> Option<Time> {
        match self {
            State::Idle(_)
            | State::Listen(_)
            | State::Established(_)
            | State::DreqRcvd(_)
            | State::SidrReqRcvd(_) => None,
            State::ReqSent(state) => Some(state.0.pending.due()),
            State::MraReqRcvd(state) => Some(state.0.pending.due()),
            State::ReqRcvd(state) => Some(state.mra_due),
            State::MraReqSent(state) => state.mra.due(),
            State::RepSent(state) => Some(state.0.pending.due()),
            State::MraRepRcvd(state) => Some(state.0.pending.due()),
            State::RepRcvd(state) => Some(state.mra_due),
            State::MraRepSent(state) => state.mra.due(),
            State::DreqSent(state) => Some(state.pending.due()),
            State::TimeWait(state) => Some(state.until),
            State::SidrReqSent(state) => Some(state.pending.due()),
        }
    }

    /// Our queue pair, once the connection has one, up to the end of its time-wait.
    pub(super) fn local_qpn(&self) -> Option<Qpn> {
        match self {
            State::DreqSent(state) => Some(state.connection.own.qpn),
            State::DreqRcvd(state) => Some(state.connection.own.qpn),
            State::TimeWait(state) => state.local_qpn,
            _ => self.view()?.own.map(|own| own.qpn),
        }
    }

    /// Returns whether the identifier is in the tables of remote names.
    pub(super) fn is_known(&self) -> bool {
        // Not in time-wait: a peer that connects once more by the same names is not refused for
        // it.
        match self {
            State::Idle(_)
            | State::Listen(_)
            | State::ReqSent(_)
            | State::MraReqRcvd(_)
            | State::TimeWait(_)
            | State::SidrReqSent(_)
            | State::SidrReqRcvd(_) => false,
            State::ReqRcvd(_)
            | State::MraReqSent(_)
            | State::RepSent(_)
            | State::RepRcvd(_)
            | State::MraRepSent(_)
            | State::MraRepRcvd(_)
            | State::Established(_)
            | State::DreqSent(_)
            | State::DreqRcvd(_) => true,
        }
    }

    /// Returns whether it is a passive connection that is not established yet, or a request for
    /// resolution that is not answered.
    pub(super) fn is_half_open(&self) -> bool {
        matches!(
            self,
            State::ReqRcvd(_)
                | State::MraReqSent(_)
                | State::RepSent(_)
                | State::MraRepRcvd(_)
                | State::SidrReqRcvd(_)
        )
    }

    /// Returns whether a request of ours is unanswered.
    pub(super) fn awaits_answer(&self) -> bool {
        matches!(
            self,
            State::ReqSent(_)
                | State::MraReqRcvd(_)
                | State::RepSent(_)
                | State::MraRepRcvd(_)
                | State::DreqSent(_)
                | State::SidrReqSent(_)
        )
    }

    /// The request of ours that is unanswered.
    pub(super) fn pending(&self) -> Option<&Pending> {
        match self {
            State::ReqSent(state) => Some(&state.0.pending),
            State::MraReqRcvd(state) => Some(&state.0.pending),
            State::RepSent(state) => Some(&state.0.pending),
            State::MraRepRcvd(state) => Some(&state.0.pending),
            State::DreqSent(state) => Some(&state.pending),
            State::SidrReqSent(state) => Some(&state.pending),
            _ => None,
        }
    }

    /// The unanswered request, if it is of a kind that takes one of the port's slots and nothing
    /// has come for it yet, not even an MRA.
    pub(super) fn unheard(&self) -> Option<&Pending> {
        match self {
            State::ReqSent(_) | State::DreqSent(_) | State::SidrReqSent(_) => self.pending(),
            _ => None,
        }
    }

    /// Starts the times of such a request, which is sent only now.
    pub(super) fn start(mut self, now: Time) -> State {
        match &mut self {
            State::ReqSent(state) => state.0.pending.start(now),
            State::DreqSent(state) => state.pending.start(now),
            State::SidrReqSent(state) => state.pending.start(now),
            _ => {}
        }
        self
    }

    /// The data of a connection that is being made or is established.
    pub(super) fn view(&self) -> Option<View<'_>> {
        let (terms, own, peer, lap) = match self {
            State::ReqSent(ReqSent(asking)) | State::MraReqRcvd(MraReqRcvd(asking)) => {
                (&asking.terms, Some(asking.own), None, LapState::Uninit)
            }
            State::ReqRcvd(ReqRcvd { req, .. }) | State::MraReqSent(MraReqSent { req, .. }) => {
                (&req.terms, None, Some(req.peer), LapState::Uninit)
            }
            State::RepSent(RepSent(offering)) | State::MraRepRcvd(MraRepRcvd(offering)) => {
                whole(&offering.connection, LapState::Uninit)
            }
            State::RepRcvd(RepRcvd { connection, .. })
            | State::MraRepSent(MraRepSent { connection, .. }) => {
                whole(connection, LapState::Uninit)
            }
            State::Established(Established { connection, lap }) => whole(connection, *lap),
            _ => return None,
        };
        Some(View {
            terms,
            own,
            peer,
            lap,
        })
    }
}

type Parts<'a> = (&'a Terms, Option<Own>, Option<Peer>, LapState);

fn whole(connection: &Connection, lap: LapState) -> Parts<'_> {
    let Connection { terms, own, peer } = connection;
    (terms, Some(*own), Some(*peer), lap)
}
