// SPDX-License-Identifier: GPL-2.0-only

//! The states of a communication identifier, by name.

use core::fmt;

/// The states that a consumer sees, in the order of `enum ib_cm_state` (IBTA 12.9.5 to 12.9.7,
/// 12.11.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum StateName {
    /// Nothing has begun, or everything is over.
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
    /// The connection works.
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
