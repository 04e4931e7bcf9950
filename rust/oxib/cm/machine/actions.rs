// SPDX-License-Identifier: GPL-2.0-only

//! The results of a machine's step: messages to send, timers, reports and counts.

use super::backlog::Outcome;
use super::time::Time;
use super::wire::cm::comm_id::CommId;
use super::wire::cm::kind::Kind;
use super::wire::cm::mra::Acknowledged;
use super::wire::cm::reason::Reason;
use super::wire::cm::rej::Rejected;
use super::wire::cm::sidr_rep::Status;

/// The actions of the shell after a step, each of them at most once. The shell chooses their
/// order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Actions {
    /// A message to send.
    pub send: Option<Send>,
    /// The change of the identifier's timer.
    pub timer: TimerAction,
    /// An event for the consumer.
    pub report: Option<Report>,
    /// The change of the entries in the tables of remote names.
    pub remote: RemoteAction,
    /// The counter of the message that came, besides that of messages received.
    pub counted: Option<Counted>,
    /// The change of the slot of a passive connection.
    pub slot: SlotAction,
    /// The time that an answer took, if it was measured.
    pub rtt_sample: Option<RoundTrip>,
}

/// The time from a request to its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTrip {
    /// Milliseconds since it was sent first.
    pub milliseconds: u32,
    /// Milliseconds since it was repeated last, if it was: it was lost or dropped, or the peer is
    /// slower than was thought.
    pub since_repeated: Option<u32>,
}

/// A message, and where its bytes come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Send {
    /// The shell builds it from what the call gives. A request (REQ, REP, DREQ, SIDR_REQ) it keeps
    /// for as long as [`Machine::awaits_answer`] holds.
    ///
    /// [`Machine::awaits_answer`]: super::Machine::awaits_answer
    New(Outgoing),
    /// The kept request once more, byte for byte.
    Again,
    /// The answer to a duplicate, sent to where that came from, with the private data of the first
    /// one if the shell has it.
    Saved(Outgoing),
}

/// The kind of the message, and those of its fields that the machine decides about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outgoing {
    /// A request for communication.
    Req,
    /// Reply to a REQ.
    Rep,
    /// Ready to use: the consumer has taken the REP.
    Rtu,
    /// A request to disconnect.
    Dreq,
    /// Reply to a DREQ.
    Drep,
    /// Reject. One for [`Reason::TIMEOUT`] carries the GUID of the channel adapter as additional
    /// information, by which the peer finds the connection (IBTA 12.6.7).
    Rej {
        /// The reason of the rejection (IBTA 12.6.7.2).
        reason: Reason,
        /// The message that is rejected.
        of: Rejected,
        /// Our name for the connection, or zero if the peer has not been told one.
        local: CommId,
    },
    /// Message receipt acknowledgement, with the service timeout [`SERVICE_TIMEOUT`].
    Mra {
        /// The message that is acknowledged.
        of: Acknowledged,
    },
    /// Service ID resolution request.
    SidrReq,
    /// Service ID resolution response.
    SidrRep {
        /// The status that answers the request.
        status: Status,
    },
}

/// The service timeout of our MRAs, as an exponent: about a minute.
pub const SERVICE_TIMEOUT: u8 = 24;

/// The change of the slot that a half-open connection has in its listener's backlog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotAction {
    /// The connection keeps its slot, if it has one.
    Keep,
    /// The connection gives its slot back, and nothing is learned of its peer.
    GiveBack,
    /// The connection gives its slot back, with this outcome of its REP.
    End(Outcome),
}

/// The change of an identifier's only timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerAction {
    /// The timer stays as it is.
    Keep,
    /// The timer is stopped. If it comes due all the same, [`Machine::timer`] does nothing.
    ///
    /// [`Machine::timer`]: super::Machine::timer
    Stop,
    /// The timer is set to that time, instead of the time that it had.
    At(Time),
}

/// The change of an identifier's entries in the tables of remote names: remote identifier and
/// remote queue pair number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteAction {
    /// The entries stay as they are.
    Keep,
    /// The entries are removed, if there are any.
    Forget,
}

/// The reasons for which a request comes to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The peer did not answer (`IB_WC_RESP_TIMEOUT_ERR`).
    Timeout,
    /// The request could not be sent; the shell knows the status.
    Send,
}

/// An event for the consumer, in the order of `enum ib_cm_event_type`. What else the event holds
/// stands in the message that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// The REQ came to nothing.
    ReqError(Failure),
    /// A REQ came: this identifier was made for it.
    ReqReceived,
    /// The REP came to nothing.
    RepError(Failure),
    /// A REP came for our REQ.
    RepReceived,
    /// An RTU came for our REP.
    RtuReceived,
    /// The consumer said that the connection works, before an RTU came.
    UserEstablished,
    /// The DREQ came to nothing.
    DreqError(Failure),
    /// A DREQ of the peer came.
    DreqReceived,
    /// A DREP came for our DREQ.
    DrepReceived,
    /// The time-wait is over.
    TimewaitExit,
    /// An MRA came for our request.
    MraReceived,
    /// A REJ of the peer came.
    RejReceived,
    /// A LAP proposes an alternate path.
    LapReceived,
    /// The SIDR_REQ came to nothing.
    SidrReqError(Failure),
    /// A SIDR_REQ came: this identifier was made for it.
    SidrReqReceived,
    /// A SIDR_REP came for our SIDR_REQ.
    SidrRepReceived,
}

/// The counter of a message that had no effect, or only that of being answered once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// A duplicate: `cm_rx_duplicates` of that kind.
    Duplicate(Kind),
    /// A message that was dropped.
    Dropped(Cause),
}

/// The reasons for which a message is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The state does not take it.
    Unexpected,
    /// Its sender is not the one that the connection is with.
    Stranger,
    /// The message names another queue pair than the connection's.
    WrongQpn,
}

/// The effects of a transition for the shell besides the new state; the machine finds the rest of
/// [`Actions`] by comparing the states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Effects {
    pub(super) send: Option<Send>,
    pub(super) report: Option<Report>,
    pub(super) counted: Option<Counted>,
    pub(super) rtt_sample: Option<RoundTrip>,
}

impl Effects {
    /// No effect besides the new state.
    pub(super) const NONE: Effects = Effects {
        send: None,
        report: None,
        counted: None,
        rtt_sample: None,
    };

    /// Sends a message and does nothing else.
    pub(super) const fn send(send: Send) -> Effects {
        Effects {
            send: Some(send),
            ..Effects::NONE
        }
    }

    /// A message that the shell builds.
    pub(super) const fn new(outgoing: Outgoing) -> Effects {
        Effects::send(Send::New(outgoing))
    }

    /// Reports an event and does nothing else.
    pub(super) const fn report(report: Report) -> Effects {
        Effects {
            report: Some(report),
            ..Effects::NONE
        }
    }

    /// A message that has no effect.
    pub(super) const fn dropped(cause: Cause) -> Effects {
        Effects {
            counted: Some(Counted::Dropped(cause)),
            ..Effects::NONE
        }
    }

    /// A duplicate that has no effect.
    pub(super) const fn duplicate(kind: Kind) -> Effects {
        Effects {
            counted: Some(Counted::Duplicate(kind)),
            ..Effects::NONE
        }
    }

    /// A duplicate that is answered once more.
    pub(super) const fn answered(kind: Kind, outgoing: Outgoing) -> Effects {
        Effects {
            send: Some(Send::Saved(outgoing)),
            ..Effects::duplicate(kind)
        }
    }

    /// Adds the time that the answer took.
    pub(super) const fn after(self, round_trip: RoundTrip) -> Effects {
        Effects {
            rtt_sample: Some(round_trip),
            ..self
        }
    }
}
