// SPDX-License-Identifier: GPL-2.0-only

//! Messages that each state takes (IBTA 12.9).

use super::actions::{
    Cause,
    Effects, //
};
use super::input::{
    Incoming,
    Rep, //
};
use super::state::{
    step,
    State,
    Step, //
};
use super::time::Time;
use super::wire::cm::comm_id::CommId;
use super::wire::cm::kind::Kind;
use super::wire::cm::mra::Acknowledged;
use super::wire::cm::reason::Reason;
use super::wire::cm::rej::Rejected;
use super::wire::qpn::Qpn;

/// A message for this identifier, ours being `local`.
pub(super) fn receive(state: State, message: &Incoming, local: CommId, now: Time) -> Step {
    if !is_from_peer(&state, message) {
        return dropped(state, Cause::Stranger);
    }
    match *message {
        Incoming::DuplicateReq => duplicate_req(state, local),
        Incoming::Mra {
            of,
            service_timeout,
            ..
        } => mra(state, of, service_timeout, now),
        Incoming::Rej { reason, .. } => rej(state, reason, now),
        Incoming::Rep(ref message) => rep(state, message, now),
        Incoming::Rtu { .. } => rtu(state, now),
        Incoming::Dreq { qpn, .. } => dreq(state, qpn),
        Incoming::Drep { .. } => drep(state, now),
        Incoming::Lap { ack_timeout, .. } => lap(state, ack_timeout),
        Incoming::Apr { .. } => dropped(state, Cause::Unexpected),
        Incoming::DuplicateSidrReq => (state, Effects::duplicate(Kind::SidrReq)),
        Incoming::SidrRep => sidr_rep(state, now),
    }
}

/// Returns whether a machine in this state may answer this message as it answered the one that it
/// repeats; [`receive`] tells whether it does.
pub(super) fn may_answer_again(state: &State, message: &Incoming) -> bool {
    match message {
        Incoming::DuplicateReq => matches!(state, State::MraReqSent(_) | State::TimeWait(_)),
        Incoming::Rep(_) => matches!(state, State::Established(_) | State::MraRepSent(_)),
        Incoming::Dreq { .. } => matches!(state, State::TimeWait(_) | State::Idle(_)),
        Incoming::Lap { .. } => matches!(state, State::Established(_)),
        _ => false,
    }
}

/// Returns whether the sender calls the connection as we were told it does. What answers a REQ
/// was sent before we were told.
fn is_from_peer(state: &State, message: &Incoming) -> bool {
    let remote = state.remote();
    match *message {
        // Found by the sender's name.
        Incoming::DuplicateReq | Incoming::DuplicateSidrReq => true,
        Incoming::Rep(Rep { sender, .. }) => remote == CommId::ZERO || remote == sender,
        Incoming::Rej { sender, of, reason } => match of {
            Rejected::Req if reason != Reason::TIMEOUT => remote == CommId::ZERO,
            _ => remote == sender,
        },
        Incoming::Mra { sender, of, .. } => match of {
            Acknowledged::Req => remote == CommId::ZERO,
            Acknowledged::Rep | Acknowledged::Lap | Acknowledged::Reserved => remote == sender,
        },
        Incoming::Rtu { sender }
        | Incoming::Dreq { sender, .. }
        | Incoming::Drep { sender }
        | Incoming::Lap { sender, .. }
        | Incoming::Apr { sender } => remote == sender,
        Incoming::SidrRep => remote == CommId::ZERO,
    }
}

fn dropped(state: State, cause: Cause) -> Step {
    (state, Effects::dropped(cause))
}

fn duplicate_req(state: State, local: CommId) -> Step {
    match state {
        State::MraReqSent(state) => step(state.repeated()),
        State::TimeWait(state) => step(state.repeated(local)),
        state => (state, Effects::duplicate(Kind::Req)),
    }
}

fn mra(state: State, of: Acknowledged, service_timeout: u8, now: Time) -> Step {
    match (state, of) {
        (State::ReqSent(state), Acknowledged::Req) => step(state.put_off(service_timeout, now)),
        (State::RepSent(state), Acknowledged::Rep) => step(state.put_off(service_timeout, now)),
        (state @ (State::MraReqRcvd(_) | State::MraRepRcvd(_)), _) => {
            (state, Effects::duplicate(Kind::Mra))
        }
        (state, _) => dropped(state, Cause::Unexpected),
    }
}

fn rej(state: State, reason: Reason, now: Time) -> Step {
    match state {
        State::ReqSent(state) => state.rejected(reason, now),
        State::MraReqRcvd(state) => state.rejected(reason, now),
        State::ReqRcvd(state) => state.rejected(reason, now),
        State::MraReqSent(state) => state.rejected(reason, now),
        State::RepSent(state) => state.rejected(reason, now),
        State::MraRepRcvd(state) => state.rejected(reason, now),
        State::RepRcvd(state) => step(state.rejected(now)),
        State::MraRepSent(state) => step(state.rejected(now)),
        State::Established(state) => state.rejected(now),
        State::DreqSent(state) => step(state.rejected(now)),
        state => dropped(state, Cause::Unexpected),
    }
}

fn rep(state: State, message: &Rep, now: Time) -> Step {
    match state {
        State::ReqSent(state) => step(state.replied(message, now)),
        State::MraReqRcvd(state) => step(state.replied(message, now)),
        State::Established(state) => step(state.repeated()),
        State::MraRepSent(state) => step(state.repeated()),
        state if state.remote() == message.sender => (state, Effects::duplicate(Kind::Rep)),
        state => dropped(state, Cause::Unexpected),
    }
}

fn rtu(state: State, now: Time) -> Step {
    match state {
        State::RepSent(state) => step(state.ready(now)),
        State::MraRepRcvd(state) => step(state.ready()),
        state => (state, Effects::duplicate(Kind::Rtu)),
    }
}

fn dreq(state: State, qpn: Qpn) -> Step {
    if state.local_qpn().is_some_and(|ours| ours != qpn) {
        return dropped(state, Cause::WrongQpn);
    }
    match state {
        State::RepSent(state) => step(state.disconnected()),
        State::MraRepRcvd(state) => step(state.disconnected()),
        State::Established(state) => step(state.disconnected()),
        State::DreqSent(state) => step(state.disconnected()),
        State::DreqRcvd(state) => step(state.repeated()),
        // Without a queue pair of ours there was no connection that a DREQ could end.
        State::TimeWait(state) if state.local_qpn.is_some() => step(state.disconnected()),
        // As for an identifier that is no more: a peer that lost our DREP would ask in vain until
        // its patience is over.
        State::Idle(state) if state.remote != CommId::ZERO => step(state.disconnected()),
        state => dropped(state, Cause::Unexpected),
    }
}

fn drep(state: State, now: Time) -> Step {
    match state {
        State::DreqSent(state) => step(state.released(now)),
        State::DreqRcvd(state) => step(state.released(now)),
        state => dropped(state, Cause::Unexpected),
    }
}

fn lap(state: State, ack_timeout: u8) -> Step {
    match state {
        State::Established(state) => step(state.load(ack_timeout)),
        state => dropped(state, Cause::Unexpected),
    }
}

fn sidr_rep(state: State, now: Time) -> Step {
    match state {
        State::SidrReqSent(state) => step(state.answered(now)),
        state => dropped(state, Cause::Unexpected),
    }
}
