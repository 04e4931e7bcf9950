// SPDX-License-Identifier: GPL-2.0-only

//! The transport layer of a software InfiniBand channel adapter: one [`QueuePair`] for each queue
//! pair of a reliable or an unreliable connection, and the receive checks of datagrams (IBTA
//! volume 1, chapters 9, 10 and 11).
//!
//! It is pure: no allocation, no lock, no clock, no device. What happens to a queue pair is a call:
//! a packet came, sends were posted, a time has come. What it needs of the world around it — work
//! queues, memory, the way to the peer, completions — it asks of a [`Shell`], which each call is
//! given. Time comes in as a number.
//!
//! Packets are taken one by one and answered together: after any number of
//! [`QueuePair::receive`], of sends that were posted, and of room that came back, there is one
//! [`QueuePair::run`]. One acknowledgement answers for all that has come before it.
//!
//! Not modelled are end-to-end credits (every acknowledgement says that it has none to tell, and
//! none are looked at), path migration (its bit is the shell's, and there is no alternate path),
//! and memory windows.
//!
//! The same files are part of the kernel module and the cargo crate `oxib-softib-transport`, where
//! the simulator, the tables of errors and the fuzz target run.

#![cfg_attr(not(CONFIG_RUST), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
// Items that the tests of the crate use and the module does not.
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

pub mod attributes;
pub mod datagram;
mod inbound;
pub mod packet;
mod requester;
mod responder;
mod segment;
mod sequence;
pub mod shell;
pub mod source;
mod state;
pub mod time;
mod unreliable;
pub mod work;

pub use self::responder::Verdict;
pub use self::state::StateName;

use self::attributes::{
    Receiving,
    RemoteAccess,
    Sending,
    Service, //
};
use self::packet::{
    Body,
    Incoming, //
};
use self::shell::Shell;
use self::state::{
    take_turns,
    Failure,
    Half,
    Receiver,
    Sender,
    State, //
};
use self::time::Time;
use self::work::{
    Event,
    Received,
    Status, //
};

/// A change of state that the state does not allow. It has changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The state that does not allow the change.
    pub state: StateName,
}

/// A queue pair of a connection.
///
/// After each call that takes a shell, the shell's timer for it is to be set to [`QueuePair::due`].
#[derive(Debug)]
pub struct QueuePair {
    service: Service,
    /// Whether its receives come from a shared queue.
    shared: bool,
    state: State,
}

// There may be a hundred thousand of them.
const _: () = assert!(size_of::<QueuePair>() <= 1200);

impl QueuePair {
    /// A queue pair in the reset state. `shared` is whether its receives come from a shared
    /// receive queue.
    pub const fn new(service: Service, shared: bool) -> QueuePair {
        QueuePair {
            service,
            shared,
            state: State::Reset,
        }
    }

    /// Returns the state of the queue pair.
    pub fn state(&self) -> StateName {
        self.state.name()
    }

    /// Forgets everything; the shell empties the work queues, and indices begin at 0.
    pub fn reset(&mut self) {
        self.state = State::Reset;
    }

    fn refused(&self) -> Refused {
        Refused {
            state: self.state(),
        }
    }

    /// Moves the queue pair from Reset to Init; Init stays so.
    pub fn init(&mut self) -> Result<(), Refused> {
        match self.state {
            State::Reset | State::Init => {
                self.state = State::Init;
                Ok(())
            }
            _ => Err(self.refused()),
        }
    }

    /// Moves the queue pair from Init to RTR.
    pub fn ready_to_receive(&mut self, terms: Receiving) -> Result<(), Refused> {
        match self.state {
            State::Init => {
                self.state = State::Rtr {
                    receiver: Receiver::new(self.service, terms),
                    terms,
                    established: false,
                };
                Ok(())
            }
            _ => Err(self.refused()),
        }
    }

    /// Moves the queue pair from RTR to RTS.
    pub fn ready_to_send(&mut self, sending: Sending) -> Result<(), Refused> {
        match core::mem::replace(&mut self.state, State::Reset) {
            State::Rtr {
                receiver, terms, ..
            } => {
                self.state = State::Connected {
                    sender: Sender::new(self.service, &terms, sending),
                    receiver,
                    turn: Half::Answers,
                };
                Ok(())
            }
            other => {
                self.state = other;
                Err(self.refused())
            }
        }
    }

    /// Moves the queue pair from RTS to SQD: sends that have begun are finished. With `notify`,
    /// [`Event::SendQueueDrained`] follows, in the next [`QueuePair::run`] at the earliest. SQD
    /// stays as it is.
    pub fn drain(&mut self, notify: bool) -> Result<(), Refused> {
        match (self.state(), self.state.sender()) {
            (StateName::Rts, Some(sender)) => {
                sender.drain(notify);
                Ok(())
            }
            (StateName::Sqd, _) => Ok(()),
            (state, _) => Err(Refused { state }),
        }
    }

    /// Returns whether the queue pair is in SQD and not drained yet.
    pub fn is_draining(&self) -> bool {
        match &self.state {
            State::Connected { sender, .. } => sender.is_draining(),
            _ => false,
        }
    }

    /// Moves the queue pair from SQD or SQE to RTS; RTS stays.
    pub fn resume(&mut self) -> Result<(), Refused> {
        match self.state.sender() {
            Some(sender) => {
                sender.resume();
                Ok(())
            }
            None => Err(self.refused()),
        }
    }

    /// Moves the queue pair from any state to Error: everything posted is flushed. What the shell
    /// does not let it flush now follows in the next calls of [`QueuePair::run`].
    pub fn fail(&mut self, shell: &mut impl Shell) {
        self.break_down(shell, Failure::Wanted);
    }

    /// Changes the rights of the peer from now on.
    pub fn set_access(&mut self, access: RemoteAccess) {
        if let Some(receiver) = self.state.receiver() {
            receiver.set_access(access);
        }
    }

    /// Changes the time that the peer has to wait from now on when there is no receive.
    pub fn set_min_rnr_timer(&mut self, field: u8) {
        if let Some(receiver) = self.state.receiver() {
            receiver.set_min_rnr_timer(field);
        }
    }

    /// Changes the terms of sends from now on, all but the number of the first packet. A queue pair
    /// that is being drained refuses others than it has (IBTA 11.2.5.2).
    pub fn set_sending(&mut self, sending: Sending) -> Result<(), Refused> {
        let taken = self
            .state
            .sender()
            .is_none_or(|sender| sender.set_terms(sending));
        match taken {
            true => Ok(()),
            false => Err(self.refused()),
        }
    }

    /// Changes the number of READs and atomics that the peer may have outstanding from now on.
    pub fn set_max_reads_of_peer(&mut self, number: u8) {
        if let Some(receiver) = self.state.receiver() {
            receiver.set_max_reads(number);
        }
    }

    /// A packet came. It is not answered before [`QueuePair::run`].
    pub fn receive(&mut self, shell: &mut impl Shell, packet: &Incoming<'_>, now: Time) -> Verdict {
        match self.take(shell, packet, now) {
            Ok(verdict) => verdict,
            Err(failure) => {
                self.break_down(shell, failure);
                Verdict::Taken
            }
        }
    }

    fn take(
        &mut self,
        shell: &mut impl Shell,
        packet: &Incoming<'_>,
        now: Time,
    ) -> Result<Verdict, Failure> {
        match (&packet.body, &mut self.state) {
            (
                Body::Request(request),
                State::Rtr {
                    receiver,
                    established,
                    ..
                },
            ) => {
                let verdict = receiver.receive(shell, request, packet)?;
                // The RTU may be lost: by this a consumer can tell the connection manager that
                // the peer is ready.
                if verdict == Verdict::Taken && !*established {
                    *established = true;
                    shell.event(Event::CommunicationEstablished);
                }
                Ok(verdict)
            }
            (Body::Request(request), State::Connected { receiver, .. }) => {
                Ok(receiver.receive(shell, request, packet)?)
            }
            (
                Body::Response(response),
                State::Connected {
                    sender: Sender::Rc(requester),
                    ..
                },
            ) => {
                let news = requester.receive(shell, response, packet.psn, packet.payload, now)?;
                Ok(if news {
                    Verdict::Taken
                } else {
                    Verdict::Duplicate
                })
            }
            _ => Ok(Verdict::Unexpected),
        }
    }

    /// Answers what came, and sends what was posted, until there is nothing to do or no room.
    pub fn run(&mut self, shell: &mut impl Shell, now: Time) {
        if let Err(failure) = self.work(shell, now) {
            self.break_down(shell, failure);
        }
    }

    fn work(&mut self, shell: &mut impl Shell, now: Time) -> Result<(), Failure> {
        match &mut self.state {
            State::Reset | State::Init => {}
            State::Rtr { receiver, .. } => while receiver.step(shell)? {},
            State::Connected {
                sender,
                receiver,
                turn,
            } => take_turns(sender, receiver, turn, shell, now)?,
            // Sends are posted in the error state as well, and are flushed then.
            State::Error { .. } => self.flush(shell),
        }
        Ok(())
    }

    /// Notes that receives were posted, which matters in the error state alone: they are flushed.
    pub fn receive_posted(&mut self, shell: &mut impl Shell) {
        self.flush(shell);
    }

    /// Returns the time at which [`QueuePair::timer`] is to be called, if at all.
    pub fn due(&self) -> Option<Time> {
        match &self.state {
            State::Connected {
                sender: Sender::Rc(requester),
                ..
            } => requester.due(),
            _ => None,
        }
    }

    /// The time has come that was asked for; earlier than that it does nothing.
    pub fn timer(&mut self, shell: &mut impl Shell, now: Time) {
        if let State::Connected {
            sender: Sender::Rc(requester),
            ..
        } = &mut self.state
        {
            if let Err(failed) = requester.timer(now) {
                return self.break_down(shell, failed.into());
            }
        }
        self.run(shell, now);
    }

    fn break_down(&mut self, shell: &mut impl Shell, failure: Failure) {
        // It has failed before: everything is flushed, and the events have been reported.
        if let State::Error { .. } = self.state {
            return;
        }
        self.state = self.state.fail(shell, &failure);
        if self.shared {
            shell.event(Event::LastWqeReached);
        }
        self.flush(shell);
    }

    /// Reports in the error state what is posted as flushed, as far as the shell lets it go on.
    fn flush(&mut self, shell: &mut impl Shell) {
        let State::Error { index } = &mut self.state else {
            return;
        };
        // In turn: a consumer that goes on posting one kind does not keep the other waiting.
        while shell.may_flush() {
            let sent = flush_send(shell, index);
            // The receives of a shared queue are for other queue pairs, too, and stay there.
            let received = !self.shared && flush_receive(shell);
            if !sent && !received {
                return;
            }
        }
    }
}

/// Reports the send at the index as flushed, and moves the index on. Returns whether there was one.
fn flush_send(shell: &mut impl Shell, index: &mut u32) -> bool {
    if shell.send(*index).is_none() {
        return false;
    }
    shell.sent(*index, Some(Status::Flushed));
    *index = index.wrapping_add(1);
    true
}

/// Reports the oldest receive as flushed. Returns whether there was one.
fn flush_receive(shell: &mut impl Shell) -> bool {
    if shell.take_receive().is_none() {
        return false;
    }
    shell.received(&Received::failed(Status::Flushed));
    true
}
