// SPDX-License-Identifier: GPL-2.0-only

//! The states of a queue pair, with what is known in each (IBTA 10.3.1).

use super::attributes::{
    Receiving,
    RemoteAccess,
    Sending,
    Service, //
};
use super::packet::{
    Incoming,
    Request, //
};
use super::requester::{
    Failed,
    Pace,
    Requester, //
};
use super::responder::{
    Breach,
    Responder,
    Verdict, //
};
use super::shell::Shell;
use super::time::Time;
use super::unreliable::{
    self,
    Mode, //
};
use super::work::{
    Event,
    Status, //
};

/// The states, by the names of the verbs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateName {
    /// No attribute is known.
    Reset,
    /// Receives may be posted.
    Init,
    /// Requests of the peer are served (ready to receive).
    Rtr,
    /// Sends are done, too (ready to send).
    Rts,
    /// Sends are not begun: either some are still under way, or none is any more.
    Sqd,
    /// A send of an unreliable connection has failed, which goes on receiving.
    Sqe,
    /// Everything posted is flushed.
    Error,
}

/// The receiving half of a queue pair.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is no allocation here, and few queue pairs are unreliable"
)]
pub(super) enum Receiver {
    Rc(Responder),
    Uc(unreliable::Receiver),
}

impl Receiver {
    pub(super) fn new(service: Service, terms: Receiving) -> Receiver {
        match service {
            Service::Rc => Receiver::Rc(Responder::new(terms)),
            Service::Uc => Receiver::Uc(unreliable::Receiver::new(terms)),
        }
    }

    pub(super) fn set_access(&mut self, access: RemoteAccess) {
        match self {
            Receiver::Rc(responder) => responder.set_access(access),
            Receiver::Uc(receiver) => receiver.set_access(access),
        }
    }

    pub(super) fn set_min_rnr_timer(&mut self, field: u8) {
        if let Receiver::Rc(responder) = self {
            responder.set_min_rnr_timer(field);
        }
    }

    /// Changes the number of READs and atomics that the peer may have outstanding.
    pub(super) fn set_max_reads(&mut self, number: u8) {
        if let Receiver::Rc(responder) = self {
            responder.set_max_reads(number);
        }
    }

    pub(super) fn receive(
        &mut self,
        shell: &mut impl Shell,
        request: &Request,
        packet: &Incoming<'_>,
    ) -> Result<Verdict, Breach> {
        match self {
            Receiver::Rc(responder) => Ok(responder.receive(shell, request, packet)),
            Receiver::Uc(receiver) => receiver.receive(shell, request, packet),
        }
    }

    /// Sends the next answer; returns whether it did.
    pub(super) fn step(&mut self, shell: &mut impl Shell) -> Result<bool, Breach> {
        match self {
            Receiver::Rc(responder) => responder.step(shell),
            Receiver::Uc(_) => Ok(false),
        }
    }

    /// Reports the receive that is held.
    fn fail(&mut self, shell: &mut impl Shell, status: Status) {
        match self {
            Receiver::Rc(responder) => responder.fail(shell, status),
            Receiver::Uc(receiver) => receiver.fail(shell, status),
        }
    }
}

/// The sending half of a queue pair.
#[derive(Debug)]
pub(super) enum Sender {
    Rc(Requester),
    Uc(unreliable::Sender),
}

impl Sender {
    pub(super) fn new(service: Service, receiving: &Receiving, terms: Sending) -> Sender {
        match service {
            Service::Rc => Sender::Rc(Requester::new(receiving, terms)),
            Service::Uc => Sender::Uc(unreliable::Sender::new(receiving, &terms)),
        }
    }

    /// Does the next step of the sends; returns whether there was one.
    pub(super) fn step(&mut self, shell: &mut impl Shell, now: Time) -> Result<bool, Failed> {
        match self {
            Sender::Rc(requester) => requester.step(shell, now),
            Sender::Uc(sender) => Ok(sender.step(shell)),
        }
    }

    pub(super) fn drain(&mut self, notify: bool) {
        match self {
            Sender::Rc(requester) => requester.drain(notify),
            Sender::Uc(sender) => sender.drain(notify),
        }
    }

    pub(super) fn is_draining(&self) -> bool {
        match self {
            Sender::Rc(requester) => requester.is_draining(),
            Sender::Uc(sender) => matches!(sender.mode(), Mode::Draining { .. }),
        }
    }

    /// Takes other terms; returns whether they may change now. None of them but the number of the
    /// first packet, which stays, are of an unreliable connection.
    pub(super) fn set_terms(&mut self, terms: Sending) -> bool {
        match self {
            Sender::Rc(requester) => requester.set_terms(terms),
            Sender::Uc(_) => true,
        }
    }

    pub(super) fn resume(&mut self) {
        match self {
            Sender::Rc(requester) => requester.resume(),
            Sender::Uc(sender) => sender.resume(),
        }
    }

    fn name(&self) -> StateName {
        match self {
            Sender::Rc(requester) => match requester.pace() {
                Pace::Running => StateName::Rts,
                Pace::Draining { .. } | Pace::Drained => StateName::Sqd,
            },
            Sender::Uc(sender) => match sender.mode() {
                Mode::Running => StateName::Rts,
                Mode::Draining { .. } | Mode::Drained => StateName::Sqd,
                Mode::Failed => StateName::Sqe,
            },
        }
    }

    /// Reports the send that failed, if one did, with that status, and returns the index of the
    /// first send that is left to be flushed.
    fn fail(&mut self, shell: &mut impl Shell, status: Status) -> u32 {
        match self {
            Sender::Rc(requester) => requester.fail(shell, status),
            // No send of an unreliable connection makes it fail as a whole.
            Sender::Uc(sender) => sender.index(),
        }
    }
}

/// The half of a queue pair whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Half {
    Answers,
    Sends,
}

impl Half {
    fn other(self) -> Half {
        match self {
            Half::Answers => Half::Sends,
            Half::Sends => Half::Answers,
        }
    }
}

/// Answers the peer and sends, a packet of each in turn, until there is nothing to do or no room.
/// Neither a READ of the peer nor a long send keeps the other half waiting.
pub(super) fn take_turns(
    sender: &mut Sender,
    receiver: &mut Receiver,
    turn: &mut Half,
    shell: &mut impl Shell,
    now: Time,
) -> Result<(), Failure> {
    let mut idle = 0;
    while idle < 2 {
        let went_on = match turn {
            Half::Answers => receiver.step(shell)?,
            Half::Sends => match sender.step(shell, now) {
                Ok(went_on) => went_on,
                Err(failed) => {
                    // The peer's requests were done: it gets the answers for which there is room.
                    // If one of them fails, too, the send was first.
                    while let Ok(true) = receiver.step(shell) {}
                    return Err(failed.into());
                }
            },
        };
        idle = if went_on { 0 } else { idle + 1 };
        *turn = turn.other();
    }
    // The turn is kept where the room ended. Else the next to act is the peer, who is answered
    // first.
    if !shell.is_full() {
        *turn = Half::Answers;
    }
    Ok(())
}

/// The cause by which a queue pair fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// A send that ended with this status.
    Send(Status),
    /// Something that the peer asked for.
    Request(Breach),
    /// The wish of the consumer.
    Wanted,
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Failure {
        Failure::Send(failed.0)
    }
}

impl From<Breach> for Failure {
    fn from(breach: Breach) -> Failure {
        Failure::Request(breach)
    }
}

impl Failure {
    /// Returns the status of the first send and that of the receive that is held.
    fn statuses(&self) -> (Status, Status) {
        match self {
            Failure::Send(status) => (*status, Status::Flushed),
            Failure::Request(breach) => (Status::Flushed, breach.receive),
            Failure::Wanted => (Status::Flushed, Status::Flushed),
        }
    }

    fn event(&self) -> Option<Event> {
        match self {
            Failure::Request(breach) => breach.event,
            Failure::Send(_) | Failure::Wanted => None,
        }
    }
}

/// Any state, with what is known in it.
#[derive(Debug)]
pub(super) enum State {
    Reset,
    Init,
    Rtr {
        receiver: Receiver,
        terms: Receiving,
        /// Whether something has come.
        established: bool,
    },
    Connected {
        sender: Sender,
        receiver: Receiver,
        turn: Half,
    },
    Error {
        /// The first send that is not flushed.
        index: u32,
    },
}

impl State {
    pub(super) fn name(&self) -> StateName {
        match self {
            State::Reset => StateName::Reset,
            State::Init => StateName::Init,
            State::Rtr { .. } => StateName::Rtr,
            State::Connected { sender, .. } => sender.name(),
            State::Error { .. } => StateName::Error,
        }
    }

    pub(super) fn receiver(&mut self) -> Option<&mut Receiver> {
        match self {
            State::Rtr { receiver, .. } | State::Connected { receiver, .. } => Some(receiver),
            State::Reset | State::Init | State::Error { .. } => None,
        }
    }

    pub(super) fn sender(&mut self) -> Option<&mut Sender> {
        match self {
            State::Connected { sender, .. } => Some(sender),
            _ => None,
        }
    }

    /// Ends the send that failed and the receive that is held, and tells what comes next: the
    /// other sends and receives are left to be flushed.
    pub(super) fn fail(&mut self, shell: &mut impl Shell, failure: &Failure) -> State {
        let (send, receive) = failure.statuses();
        if let Some(event) = failure.event() {
            shell.event(event);
        }
        let index = match self {
            State::Connected { sender, .. } => sender.fail(shell, send),
            State::Error { index } => *index,
            State::Reset | State::Init | State::Rtr { .. } => 0,
        };
        if let Some(receiver) = self.receiver() {
            receiver.fail(shell, receive);
        }
        State::Error { index }
    }
}
