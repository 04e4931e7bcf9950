// SPDX-License-Identifier: GPL-2.0-only

//! Messages to the peer when the consumer destroys an identifier.

use super::actions::{
    Effects,
    Outgoing, //
};
use super::state::{
    step,
    Idle,
    State,
    Step, //
};
use super::wire::cm::comm_id::CommId;
use super::wire::cm::reason::Reason;
use super::wire::cm::rej::Rejected;
use super::wire::cm::sidr_rep::Status;

/// Ends whatever is going on. An active end that gives up says that it has waited long enough; the
/// other rejections name the consumer.
pub(super) fn destroy(state: State, local: CommId, no_memory: bool) -> Step {
    let consumer = Reason::CONSUMER_DEFINED;
    match state {
        State::ReqSent(state) => step(state.reject(Reason::TIMEOUT, local)),
        State::MraReqRcvd(state) => step(state.reject(Reason::TIMEOUT, local)),
        State::ReqRcvd(state) if no_memory => step(state.forget()),
        State::ReqRcvd(state) => step(state.reject(consumer)),
        State::MraReqSent(state) if no_memory => step(state.forget(local)),
        State::MraReqSent(state) => step(state.reject(consumer, local)),
        State::RepRcvd(state) => step(state.reject(consumer, local)),
        State::MraRepSent(state) => step(state.reject(consumer, local)),
        State::RepSent(_) | State::MraRepRcvd(_) => step(revoke(&state, local)),
        State::Established(state) => step(state.abandon()),
        State::DreqRcvd(state) => step(state.abandon()),
        State::SidrReqRcvd(state) => step(state.answer(Status::REJECT)),
        State::Idle(_)
        | State::Listen(_)
        | State::DreqSent(_)
        | State::TimeWait(_)
        | State::SidrReqSent(_) => step((Idle::after(state.remote()), Effects::NONE)),
    }
}

/// Takes a REP back. No consumer is left to see a time-wait.
fn revoke(state: &State, local: CommId) -> (Idle, Effects) {
    let reject = Outgoing::Rej {
        reason: Reason::CONSUMER_DEFINED,
        of: Rejected::Other,
        local,
    };
    (Idle::after(state.remote()), Effects::new(reject))
}
