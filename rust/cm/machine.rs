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
// In the kernel this is a private module, in cargo a crate whose users are other crates.
#![cfg_attr(
    CONFIG_RUST,
    allow(unreachable_pub, reason = "the same files are a public crate")
)]

#[cfg(CONFIG_RUST)]
use crate::wire;
#[cfg(not(CONFIG_RUST))]
use oxib_wire as wire;

// The paths are spelled out because this file is a crate root to cargo, and a crate root looks for
// its modules beside itself.
#[path = "machine/actions.rs"]
pub mod actions;
#[path = "machine/input.rs"]
pub mod input;
#[path = "machine/qp.rs"]
pub mod qp;
#[path = "machine/route.rs"]
pub mod route;
#[path = "machine/state.rs"]
pub mod state;
#[path = "machine/time.rs"]
pub mod time;

use self::actions::Actions;
use self::input::{
    CommId,
    Incoming,
    Reason,
    Rep,
    RepParam,
    Req,
    ReqParam,
    SidrReqParam, //
};
use self::qp::{
    QpInit,
    QpRtr,
    QpRts, //
};
use self::state::{
    LapState,
    StateName, //
};
use self::time::Time;
use self::wire::qpn::Qpn;

/// A call that the state does not allow. It has changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The state.
    pub state: StateName,
}

/// Which request a failed sending was of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// Request for communication.
    Req,
    /// Reply to a REQ.
    Rep,
    /// Request to disconnect.
    Dreq,
    /// Service ID resolution request.
    SidrReq,
}

/// A communication identifier's state.
///
/// A call whose message cannot be built or posted is undone by putting back a clone from before it
/// (REQ, REP, RTU, SIDR_REQ, SIDR_REP: the C API says that nothing has happened), except for a DREQ,
/// where [`Machine::send_failed`] follows and its report is dropped (the connection is over).
#[derive(Clone, Debug)]
pub struct Machine {
    /// Our name for the connection.
    local: CommId,
}

impl Machine {
    /// An identifier that has done nothing.
    pub fn new(local: CommId) -> Machine {
        Machine { local }
    }

    /// An identifier made for a REQ that is neither a duplicate nor from a stale connection.
    pub fn accept_req(local: CommId, req: &Req, now: Time) -> (Machine, Actions) {
        todo!("{local:?} {req:?} {now:?}")
    }

    /// An identifier made for a SIDR_REQ that is not a duplicate: `request` is the sender's name for
    /// it.
    pub fn accept_sidr_req(local: CommId, request: CommId) -> (Machine, Actions) {
        todo!("{local:?} {request:?}")
    }

    /// The state, as a consumer knows it.
    pub fn name(&self) -> StateName {
        todo!("{:?}", self.local)
    }

    /// The state of path migration.
    pub fn lap_state(&self) -> LapState {
        todo!()
    }

    /// Our name for the connection, and the peer's, which is [`CommId::NONE`] before we are told.
    pub fn ids(&self) -> (CommId, CommId) {
        todo!()
    }

    /// Whether a request of ours is unanswered: the shell has to keep it for [`Send::Again`].
    ///
    /// [`Send::Again`]: actions::Send::Again
    pub fn awaits_answer(&self) -> bool {
        todo!()
    }

    /// Whether this REP would be taken, and under which queue pair number its sender then belongs
    /// into the table of remote queue pairs. The shell enters it there and the sender's name into
    /// that of remote identifiers before it lets the machine receive the REP.
    pub fn takes_rep(&self, rep: &Rep) -> Option<Qpn> {
        todo!("{rep:?}")
    }

    /// The consumer listens.
    pub fn listen(&mut self) -> Result<Actions, Refused> {
        todo!()
    }

    /// The consumer asks for a connection.
    ///
    /// The REQ is repeated after `rto` (the caller's multiple of the port's round trip, with its
    /// floor), then after twice that, and so on up to the time-out of a try, until the time that all
    /// tries have together is over.
    pub fn send_req(&mut self, param: &ReqParam, now: Time) -> Result<Actions, Refused> {
        todo!("{param:?} {now:?}")
    }

    /// The consumer accepts a REQ.
    pub fn send_rep(&mut self, param: &RepParam, now: Time) -> Result<Actions, Refused> {
        todo!("{param:?} {now:?}")
    }

    /// The consumer accepts a REP.
    pub fn send_rtu(&mut self) -> Result<Actions, Refused> {
        todo!()
    }

    /// The consumer disconnects, or the connection is found to be stale. The DREQ is repeated after
    /// `rto` and so on.
    pub fn send_dreq(&mut self, rto: u32, now: Time) -> Result<Actions, Refused> {
        todo!("{rto} {now:?}")
    }

    /// The consumer answers a DREQ.
    pub fn send_drep(&mut self, now: Time) -> Result<Actions, Refused> {
        todo!("{now:?}")
    }

    /// The consumer rejects a connection.
    pub fn send_rej(&mut self, reason: Reason, now: Time) -> Result<Actions, Refused> {
        todo!("{reason:?} {now:?}")
    }

    /// The consumer will need longer for its answer.
    pub fn prepare_mra(&mut self) -> Result<Actions, Refused> {
        todo!()
    }

    /// The consumer asks for the queue pair of a service.
    pub fn send_sidr_req(&mut self, param: &SidrReqParam, now: Time) -> Result<Actions, Refused> {
        todo!("{param:?} {now:?}")
    }

    /// The consumer answers a SIDR_REQ.
    pub fn send_sidr_rep(&mut self, status: u8) -> Result<Actions, Refused> {
        todo!("{status}")
    }

    /// The consumer has seen the connection work (`IB_EVENT_COMM_EST`).
    pub fn established(&mut self) -> Result<Actions, Refused> {
        todo!()
    }

    /// The consumer has seen the queue pair take its alternate path (`IB_EVENT_PATH_MIG`).
    pub fn migrated(&mut self) -> Result<Actions, Refused> {
        todo!()
    }

    /// The consumer lets go of the identifier: the machine is idle afterwards. After `no_memory`, a
    /// REQ is not rejected, so that the peer's next one may find memory.
    pub fn destroy(&mut self, no_memory: bool) -> Actions {
        todo!("{no_memory}")
    }

    /// A message came that was looked up to be for this identifier.
    pub fn receive(&mut self, message: &Incoming, now: Time) -> Actions {
        todo!("{message:?} {now:?}")
    }

    /// The timer came due. Too early is no matter.
    pub fn timer(&mut self, now: Time) -> Actions {
        todo!("{now:?}")
    }

    /// A request could not be sent at all.
    pub fn send_failed(&mut self, request: Request, now: Time) -> Actions {
        todo!("{request:?} {now:?}")
    }

    /// Attributes for the transition to INIT.
    pub fn qp_init(&self) -> Result<QpInit, Refused> {
        todo!()
    }

    /// Attributes for the transition to RTR.
    pub fn qp_rtr(&self) -> Result<QpRtr, Refused> {
        todo!()
    }

    /// Attributes for the transition to RTS.
    pub fn qp_rts(&self) -> Result<QpRts, Refused> {
        todo!()
    }
}
