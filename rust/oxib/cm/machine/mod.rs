// SPDX-License-Identifier: GPL-2.0-only

//! The state machine of the connection manager (IBTA volume 1, chapter 12): one [`Machine`] for
//! each communication identifier.
//!
//! It is pure: no allocation, no lock, no clock, no device. Everything that happens to an
//! identifier is a call: what its consumer wants, what message came for it, that its timer came
//! due. Each answers with [`Actions`] for the shell around it, which has the tables, the timers,
//! the messages' bytes and the consumer. Time comes in as a number.
//!
//! The states are types that carry what is known in them, and a transition consumes one and makes
//! the next: what the protocol does not allow there is no function for.
//!
//! The same files are part of the kernel module and the cargo crate `oxib-cm-machine`, where the
//! table of states, the simulator and the fuzz target run.

#![cfg_attr(not(CONFIG_RUST), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
// What the tests of the crate use and the module does not.
#![cfg_attr(
    CONFIG_RUST,
    allow(dead_code, reason = "the simulator and the tables use the rest")
)]
// In the kernel this is a private module, in cargo a crate that other crates use.
#![cfg_attr(
    CONFIG_RUST,
    allow(unreachable_pub, reason = "the same files are a public crate")
)]

#[cfg(CONFIG_RUST)]
use crate::wire;
#[cfg(not(CONFIG_RUST))]
use oxib_wire as wire;

pub mod actions;
mod active;
pub mod arrival;
pub mod backlog;
pub mod claim;
mod connection;
mod destroy;
mod established;
mod expire;
pub mod inflow;
pub mod input;
pub mod message;
mod mra;
mod passive;
pub mod peer;
mod pending;
pub mod qp;
mod receive;
mod release;
pub mod route;
mod sidr;
pub mod source;
pub mod state;
pub mod time;

use self::actions::{
    Actions,
    Effects,
    RemoteAction,
    Report,
    SlotAction,
    TimerAction, //
};
use self::active::{
    Asking,
    ReqSent, //
};
use self::backlog::Outcome;
use self::connection::Peer;
use self::input::{
    Incoming,
    QpType,
    Rep,
    RepParam,
    Req,
    ReqParam,
    SidrReqParam, //
};
use self::passive::ReqRcvd;
use self::pending::{
    Pending,
    Tick, //
};
use self::qp::{
    QpInit,
    QpRtr,
    QpRts, //
};
use self::sidr::{
    SidrReqRcvd,
    SidrReqSent, //
};
use self::state::{
    step,
    Idle,
    LapState,
    Listen,
    State,
    StateName,
    Step, //
};
use self::time::Time;
use self::wire::cm::comm_id::CommId;
use self::wire::cm::mtu::Mtu;
use self::wire::cm::reason::Reason;
use self::wire::cm::sidr_rep::Status;
use self::wire::pkey::Pkey;
use self::wire::qpn::Qpn;

/// A call that the state does not allow. It has changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The state that refuses the call.
    pub state: StateName,
}

/// The request that could not be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// A request for communication.
    Req,
    /// Reply to a REQ.
    Rep,
    /// A request to disconnect.
    Dreq,
    /// Service ID resolution request.
    SidrReq,
}

/// A communication identifier's state.
///
/// If the message of a call cannot be built or posted, the call is undone by putting back a clone
/// from before it (REQ, REP, RTU, SIDR_REQ, SIDR_REP: the C API says that nothing has happened),
/// except for a DREQ, where [`Machine::send_failed`] follows and its report is dropped (the
/// connection is over).
#[derive(Clone, Debug)]
pub struct Machine {
    /// Our name for the connection.
    local: CommId,
    state: State,
}

// A node may have a hundred thousand of them.
const _: () = assert!(size_of::<Machine>() <= 128);

impl Machine {
    /// An identifier that has done nothing.
    pub fn new(local: CommId) -> Machine {
        Machine {
            local,
            state: Idle::default().into(),
        }
    }

    /// An identifier made for a REQ that is neither a duplicate nor from a stale connection.
    pub fn accept_req(local: CommId, req: &Req, now: Time) -> (Machine, Actions) {
        let state = ReqRcvd::new(req, now);
        Machine::accept(local, state, Report::ReqReceived)
    }

    /// An identifier made for a SIDR_REQ that is not a duplicate: `request` is the sender's name
    /// for it.
    pub fn accept_sidr_req(local: CommId, request: CommId) -> (Machine, Actions) {
        let state = SidrReqRcvd { request };
        Machine::accept(local, state, Report::SidrReqReceived)
    }

    fn accept(local: CommId, state: impl Into<State>, report: Report) -> (Machine, Actions) {
        let mut machine = Machine::new(local);
        let actions = machine.step(|_| (state.into(), Effects::report(report)));
        (machine, actions)
    }

    /// The state, as a consumer knows it.
    pub fn name(&self) -> StateName {
        self.state.name()
    }

    /// The state of path migration.
    pub fn lap_state(&self) -> LapState {
        self.state.lap()
    }

    /// Our name for the connection, and the peer's, which is [`CommId::ZERO`] before we are told.
    pub fn ids(&self) -> (CommId, CommId) {
        (self.local, self.state.remote())
    }

    /// Partition and path MTU of a connection that is being made or works, which the paths of its
    /// later messages leave out.
    pub fn partition(&self) -> Option<(Pkey, Mtu)> {
        self.state
            .view()
            .map(|view| (view.terms.pkey, view.terms.mtu))
    }

    /// The kind of our queue pair, from when it is settled until the connection ends.
    pub fn qp_type(&self) -> Option<QpType> {
        self.state.view().map(|view| view.terms.qp_type)
    }

    /// The peer's queue pair, which a DREQ of ours names, as long as the connection lasts:
    /// [`Machine::destroy`] asks for a DREQ and forgets it.
    pub fn remote_qpn(&self) -> Option<Qpn> {
        self.state.remote_qpn()
    }

    /// The time at which the timer is due, if there is one to wait for.
    pub fn due(&self) -> Option<Time> {
        self.state.due()
    }

    /// Returns whether a request of ours is unanswered: for [`Send::Again`] the shell has to keep
    /// it, or to be able to build it again.
    ///
    /// [`Send::Again`]: actions::Send::Again
    pub fn awaits_answer(&self) -> bool {
        self.state.awaits_answer()
    }

    /// Returns whether this REP would be taken, and under which queue pair number its sender then
    /// belongs into the table of remote queue pairs. The shell enters it there and the sender's
    /// name into that of remote identifiers before it lets the machine receive the REP.
    pub fn takes_rep(&self, rep: &Rep) -> Option<Qpn> {
        match &self.state {
            State::ReqSent(_) | State::MraReqRcvd(_) => {
                let qp_type = self.state.view()?.terms.qp_type;
                Some(Peer::replied(rep, qp_type).qpn)
            }
            _ => None,
        }
    }

    /// Begins to listen, on the consumer's call.
    pub fn listen(&mut self) -> Result<Actions, Refused> {
        self.call(|state| match state {
            State::Idle(_) => Ok(step((Listen, Effects::NONE))),
            other => Err(other),
        })
    }

    /// Sends a REQ, on the consumer's call.
    ///
    /// The REQ is repeated after `rto` (the caller's multiple of the port's round trip, with its
    /// floor), then after twice that, and so on up to the time-out of a try, until the time that
    /// all tries have together is over.
    pub fn send_req(&mut self, param: &ReqParam, now: Time) -> Result<Actions, Refused> {
        self.call(|state| match state {
            State::Idle(_) => Ok(step(ReqSent::enter(Asking::new(param, now)))),
            other => Err(other),
        })
    }

    /// Sends a REP, by which the consumer accepts a REQ.
    pub fn send_rep(&mut self, param: &RepParam, now: Time) -> Result<Actions, Refused> {
        self.call(|state| match state {
            State::ReqRcvd(state) => Ok(step(state.reply(param, now))),
            State::MraReqSent(state) => Ok(step(state.reply(param, now))),
            other => Err(other),
        })
    }

    /// Sends an RTU, by which the consumer accepts a REP.
    pub fn send_rtu(&mut self) -> Result<Actions, Refused> {
        self.call(|state| match state {
            State::RepRcvd(state) => Ok(step(state.accept())),
            State::MraRepSent(state) => Ok(step(state.accept())),
            other => Err(other),
        })
    }

    /// Sends a DREQ: the consumer disconnects, or the connection is found to be stale. The DREQ
    /// is repeated after `rto` and so on.
    pub fn send_dreq(&mut self, rto: u32, now: Time) -> Result<Actions, Refused> {
        self.call(|state| match state {
            State::Established(state) => Ok(step(state.disconnect(rto, now))),
            other => Err(other),
        })
    }

    /// Sends a DREP, by which the consumer answers a DREQ.
    pub fn send_drep(&mut self, now: Time) -> Result<Actions, Refused> {
        self.call(|state| match state {
            State::DreqRcvd(state) => Ok(step(state.release(now))),
            other => Err(other),
        })
    }

    /// Sends a REJ, by which the consumer rejects a connection.
    pub fn send_rej(&mut self, reason: Reason, now: Time) -> Result<Actions, Refused> {
        let local = self.local;
        self.call(|state| match state {
            State::ReqSent(state) => Ok(step(state.reject(reason, local))),
            State::MraReqRcvd(state) => Ok(step(state.reject(reason, local))),
            State::ReqRcvd(state) => Ok(step(state.reject(reason))),
            State::MraReqSent(state) => Ok(step(state.reject(reason, local))),
            State::RepRcvd(state) => Ok(step(state.reject(reason, local))),
            State::MraRepSent(state) => Ok(step(state.reject(reason, local))),
            State::RepSent(state) => Ok(step(state.reject(reason, local, now))),
            State::MraRepRcvd(state) => Ok(step(state.reject(reason, local, now))),
            other => Err(other),
        })
    }

    /// Prepares an MRA, as the consumer will need longer for its answer.
    pub fn prepare_mra(&mut self) -> Result<Actions, Refused> {
        self.call(|state| match state {
            State::ReqRcvd(state) => Ok(step(state.prepare())),
            State::MraReqSent(state) => state.prepare(),
            State::RepRcvd(state) => Ok(step(state.prepare())),
            State::MraRepSent(state) => state.prepare(),
            State::Established(state) => state.prepare(),
            other => Err(other),
        })
    }

    /// Sends a SIDR_REQ, by which the consumer asks for the queue pair of a service.
    pub fn send_sidr_req(&mut self, param: &SidrReqParam, now: Time) -> Result<Actions, Refused> {
        self.call(|state| match state {
            State::Idle(_) => Ok(step(SidrReqSent::enter(param, now))),
            other => Err(other),
        })
    }

    /// Sends a SIDR_REP, by which the consumer answers a SIDR_REQ.
    pub fn send_sidr_rep(&mut self, status: Status) -> Result<Actions, Refused> {
        self.call(|state| match state {
            State::SidrReqRcvd(state) => Ok(step(state.answer(status))),
            other => Err(other),
        })
    }

    /// Establishes the connection, which the consumer has seen work (`IB_EVENT_COMM_EST`).
    pub fn established(&mut self) -> Result<Actions, Refused> {
        self.call(|state| match state {
            State::RepSent(state) => Ok(step(state.established())),
            State::MraRepRcvd(state) => Ok(step(state.established())),
            other => Err(other),
        })
    }

    /// Notes that the queue pair has taken its alternate path (`IB_EVENT_PATH_MIG`).
    pub fn migrated(&mut self) -> Result<Actions, Refused> {
        self.call(|state| match state {
            State::Established(state) => state.migrated(),
            other => Err(other),
        })
    }

    /// Ends whatever is going on, as the consumer lets go of the identifier: the machine is idle
    /// afterwards. After `no_memory`, a REQ is not rejected, so that the peer's next one may find
    /// memory.
    pub fn destroy(&mut self, no_memory: bool) -> Actions {
        let local = self.local;
        self.step(|state| destroy::destroy(state, local, no_memory))
    }

    /// Returns whether this message would be answered as the one that it repeats was
    /// ([`Send::Saved`]). That answer goes to where the message came from, so the shell looks the
    /// address up before it lets the machine receive the message.
    ///
    /// [`Send::Saved`]: actions::Send::Saved
    pub fn answers_again(&self, message: &Incoming, now: Time) -> bool {
        // Most messages are none of those, and need no step of a clone.
        if !receive::may_answer_again(&self.state, message) {
            return false;
        }
        let step = self.clone().receive(message, now);
        matches!(step.send, Some(actions::Send::Saved(_)))
    }

    /// Takes a message that was looked up to be for this identifier.
    pub fn receive(&mut self, message: &Incoming, now: Time) -> Actions {
        let local = self.local;
        self.step(|state| receive::receive(state, message, local, now))
    }

    /// Starts the times of a request (REQ, DREQ, SIDR_REQ) that the shell kept back and sends
    /// now. In other states there is no such request, and nothing happens.
    pub fn sent(&mut self, now: Time) -> Actions {
        let actions = self.step(|state| (state.start(now), Effects::NONE));
        self.with_timer(actions)
    }

    /// Returns whether a request (REQ, DREQ, SIDR_REQ) is out for the first time, and nothing has
    /// come for it: no answer, no MRA.
    pub fn is_in_flight(&self) -> bool {
        self.state.unheard().is_some_and(Pending::is_first_try)
    }

    /// Returns whether it is a connection that the peer asked for and that is not established.
    pub fn is_half_open(&self) -> bool {
        self.state.is_half_open()
    }

    /// The time at which the request that is unanswered was sent first.
    pub fn asked_at(&self) -> Option<Time> {
        self.state.pending().map(Pending::began)
    }

    /// Handles the timer, which came due. A call that comes too early does no harm.
    ///
    /// `rto` is the time after which a request that is sent now would be repeated: answers may
    /// have become slower since this one was sent, and then it is not repeated yet. Zero says
    /// nothing.
    pub fn timer(&mut self, rto: u32, now: Time) -> Actions {
        let tick = Tick::new(self.local, rto, now);
        let actions = self.step(|state| expire::expire(state, tick));
        // It has gone off, so that one which stays the same has to be set again.
        self.with_timer(actions)
    }

    /// Gives up a peer that has not answered our REP, before its time is over. The peer is told:
    /// its RTU may be lost, and then it believes that it is connected. In other states nothing
    /// happens.
    pub fn give_up(&mut self) -> Actions {
        let local = self.local;
        self.step(|state| expire::give_up(state, local))
    }

    /// The actions, with a timer that is set whether it has changed or not.
    fn with_timer(&self, actions: Actions) -> Actions {
        let timer = match self.state.due() {
            Some(due) => TimerAction::At(due),
            None => TimerAction::Keep,
        };
        Actions { timer, ..actions }
    }

    /// Handles a request that could not be sent at all.
    pub fn send_failed(&mut self, request: Request, now: Time) -> Actions {
        self.step(|state| expire::fail(state, request, now))
    }

    /// Attributes for the transition to INIT.
    pub fn qp_init(&self) -> Result<QpInit, Refused> {
        let view = self.state.view();
        view.map(|view| view.qp_init()).ok_or(self.refusal())
    }

    /// Attributes for the transition to RTR.
    pub fn qp_rtr(&self) -> Result<QpRtr, Refused> {
        let view = self.state.view();
        view.and_then(|view| view.qp_rtr()).ok_or(self.refusal())
    }

    /// Attributes for the transition to RTS.
    pub fn qp_rts(&self) -> Result<QpRts, Refused> {
        let view = self.state.view();
        view.and_then(|view| view.qp_rts()).ok_or(self.refusal())
    }

    fn refusal(&self) -> Refused {
        Refused { state: self.name() }
    }

    /// Takes the state through a transition that always is one.
    fn step(&mut self, transition: impl FnOnce(State) -> Step) -> Actions {
        let before = Before::of(&self.state);
        // Transitions consume the state; this one stands in until the next is there.
        let state = core::mem::replace(&mut self.state, Idle::default().into());
        let (next, effects) = transition(state);
        self.state = next;
        before.actions(&self.state, effects)
    }

    /// Takes the state through a transition that may give it back.
    fn call(
        &mut self,
        transition: impl FnOnce(State) -> Result<Step, State>,
    ) -> Result<Actions, Refused> {
        let mut refused = false;
        let actions = self.step(|state| {
            transition(state).unwrap_or_else(|state| {
                refused = true;
                (state, Effects::NONE)
            })
        });
        if refused {
            Err(self.refusal())
        } else {
            Ok(actions)
        }
    }
}

/// Properties of a state that are compared with those of the next one.
struct Before {
    due: Option<Time>,
    known: bool,
    half_open: bool,
    /// Whether a request is out that the peer has not answered.
    asked: bool,
}

impl Before {
    fn of(state: &State) -> Before {
        Before {
            due: state.due(),
            known: state.is_known(),
            half_open: state.is_half_open(),
            asked: state.pending().is_some(),
        }
    }

    /// Returns the actions that follow from the step to the next state.
    fn actions(&self, next: &State, effects: Effects) -> Actions {
        let due = next.due();
        Actions {
            send: effects.send,
            timer: match due {
                _ if due == self.due => TimerAction::Keep,
                Some(due) => TimerAction::At(due),
                None => TimerAction::Stop,
            },
            report: effects.report,
            remote: if self.known && !next.is_known() {
                RemoteAction::Forget
            } else {
                RemoteAction::Keep
            },
            counted: effects.counted,
            slot: self.slot(next, effects.report),
            rtt_sample: effects.rtt_sample,
        }
    }

    /// Returns what becomes of a half-open connection's slot in the step to the next state.
    fn slot(&self, next: &State, report: Option<Report>) -> SlotAction {
        if !self.half_open || next.is_half_open() {
            return SlotAction::Keep;
        }
        match report {
            Some(Report::RtuReceived | Report::UserEstablished | Report::DreqReceived) => {
                SlotAction::End(Outcome::Finished)
            }
            Some(Report::RepError(_)) => SlotAction::End(Outcome::Failed),
            // Whoever holds slots in vain could end so just before they are taken away. Without a
            // REP the peer has waited for our consumer.
            Some(Report::RejReceived) if self.asked => SlotAction::End(Outcome::Failed),
            _ => SlotAction::GiveBack,
        }
    }
}
