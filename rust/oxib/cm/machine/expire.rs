// SPDX-License-Identifier: GPL-2.0-only

//! Transitions when no message has come in time, or none could be sent.

use super::actions::{
    Effects,
    Failure, //
};
use super::pending::Tick;
use super::state::{
    step,
    State,
    Step, //
};
use super::time::Time;
use super::wire::cm::comm_id::CommId;
use super::Request;

/// Handles the timer, which came due.
pub(super) fn expire(state: State, tick: Tick) -> Step {
    match state {
        State::ReqSent(state) => state.expired(tick),
        State::MraReqRcvd(state) => state.expired(tick),
        State::ReqRcvd(state) => state.expired(tick.now),
        State::MraReqSent(state) => state.expired(tick.now),
        State::RepSent(state) => state.expired(tick),
        State::MraRepRcvd(state) => state.expired(tick),
        State::RepRcvd(state) => state.expired(tick.now),
        State::MraRepSent(state) => state.expired(tick.now),
        State::DreqSent(state) => state.expired(tick),
        State::TimeWait(state) => state.expired(tick.now),
        State::SidrReqSent(state) => state.expired(tick),
        // Stopped too late.
        other => (other, Effects::NONE),
    }
}

/// Gives the peer up that has not answered a REP; `local` is our name for the connection.
pub(super) fn give_up(state: State, local: CommId) -> Step {
    match state {
        State::RepSent(state) => step(state.give_up(local)),
        State::MraRepRcvd(state) => step(state.give_up(local)),
        other => (other, Effects::NONE),
    }
}

/// Handles a request that could not be sent.
pub(super) fn fail(state: State, request: Request, now: Time) -> Step {
    let failure = Failure::Send;
    match (state, request) {
        (State::ReqSent(state), Request::Req) => step(state.failed(failure)),
        (State::MraReqRcvd(state), Request::Req) => step(state.failed(failure)),
        (State::RepSent(state), Request::Rep) => step(state.failed(failure)),
        (State::MraRepRcvd(state), Request::Rep) => step(state.failed(failure)),
        (State::DreqSent(state), Request::Dreq) => step(state.failed(failure, now)),
        (State::SidrReqSent(state), Request::SidrReq) => step(state.failed(failure)),
        // One that has been answered, or given up, since.
        (other, _) => (other, Effects::NONE),
    }
}
