// SPDX-License-Identifier: GPL-2.0-only

//! Both ends of an unreliable connection (IBTA 9.8.2, 9.8.3): SENDs and RDMA WRITEs that are not
//! acknowledged. A message with a lost packet is dropped whole.

use super::attributes::{
    Mtu,
    Receiving,
    RemoteAccess,
    Sending,
    MAX_MESSAGE, //
};
use super::inbound::{
    Arrival,
    Inbound,
    Refusal, //
};
use super::packet::{
    Incoming,
    Request,
    Tail, //
};
use super::responder::{
    Breach,
    Verdict, //
};
use super::segment::{
    segment,
    Cursor, //
};
use super::sequence::after;
use super::shell::Shell;
use super::wire::psn::Psn;
use super::work::{
    Event,
    Operation,
    Status,
    Work, //
};

/// Whether sends are done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Sends are begun and finished.
    Running,
    /// No new send is begun; the one that is begun is finished. With `notify`, the end of that is
    /// an event.
    Draining { notify: bool },
    /// No send is under way.
    Drained,
    /// One has failed, and all after it are flushed.
    Failed,
}

/// The requester of an unreliable connection.
#[derive(Debug)]
pub(super) struct Sender {
    mtu: Mtu,
    next: Cursor,
    mode: Mode,
}

impl Sender {
    pub(super) fn new(receiving: &Receiving, terms: &Sending) -> Sender {
        Sender {
            mtu: receiving.mtu,
            next: Cursor::start(terms.psn),
            mode: Mode::Running,
        }
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    pub(super) fn drain(&mut self, notify: bool) {
        if self.mode == Mode::Running {
            self.mode = Mode::Draining { notify };
        }
    }

    /// Begins sends again, after draining or after a failure.
    pub(super) fn resume(&mut self) {
        self.mode = Mode::Running;
    }

    /// Does the next step, and returns whether there was one: most often it sends a packet. A
    /// message is complete when its last packet is out.
    pub(super) fn step(&mut self, shell: &mut impl Shell) -> bool {
        let between = self.next.first == self.next.psn;
        match self.mode {
            Mode::Failed => {
                self.flush(shell);
                return false;
            }
            Mode::Draining { notify } if between => {
                self.mode = Mode::Drained;
                if notify {
                    shell.event(Event::SendQueueDrained);
                }
                return false;
            }
            Mode::Drained => return false,
            Mode::Running | Mode::Draining { .. } => {}
        }
        let Some(work) = shell.send(self.next.index) else {
            return false;
        };
        if !shell.room() {
            return false;
        }
        if let Err(status) = self.send(shell, &work) {
            self.over(shell, Some(status));
            self.mode = Mode::Failed;
        }
        true
    }

    /// Sends the next packet of a send, or does its local operation.
    fn send(&mut self, shell: &mut impl Shell, work: &Work) -> Result<(), Status> {
        if work.length > MAX_MESSAGE {
            return Err(Status::LocalLength);
        }
        match work.operation {
            Operation::Local(_) => {
                shell
                    .local(self.next.index)
                    .map_err(|_| Status::MemoryManagement)?;
                self.over(shell, work.success());
                return Ok(());
            }
            Operation::Send(Tail::Invalidate(_)) => return Err(Status::LocalOperation),
            _ => {}
        }
        let segment = segment(work, &self.next, self.mtu).ok_or(Status::LocalOperation)?;
        shell
            .emit(&segment.packet)
            .map_err(|_| Status::LocalProtection)?;
        self.next.psn = after(self.next.psn, 1);
        if segment.last {
            self.over(shell, work.success());
        }
        Ok(())
    }

    /// The next send is over, however many of its packets are out.
    fn over(&mut self, shell: &mut impl Shell, status: Option<Status>) {
        shell.sent(self.next.index, status);
        self.next = self.next.following(self.next.psn);
    }

    /// Reports all sends as flushed.
    fn flush(&mut self, shell: &mut impl Shell) {
        while shell.send(self.next.index).is_some() {
            self.over(shell, Some(Status::Flushed));
        }
    }

    /// Returns the index of the first send that is not over.
    pub(super) fn index(&self) -> u32 {
        self.next.index
    }
}

/// The responder of an unreliable connection.
#[derive(Debug)]
pub(super) struct Receiver {
    terms: Receiving,
    expected: Psn,
    inbound: Inbound,
}

impl Receiver {
    pub(super) fn new(terms: Receiving) -> Receiver {
        Receiver {
            terms,
            expected: terms.psn,
            inbound: Inbound::new(),
        }
    }

    pub(super) fn set_access(&mut self, access: RemoteAccess) {
        self.terms.access = access;
    }

    /// Reports the receive that is held.
    pub(super) fn fail(&mut self, shell: &mut impl Shell, status: Status) {
        self.inbound.fail(shell, status);
    }

    /// Takes a packet of a message.
    ///
    /// Whatever is wrong with it, or that there is no receive, costs the message and nothing else
    /// (IBTA 9.9.3, class D), but for a receive that cannot be written (class E).
    pub(super) fn receive(
        &mut self,
        shell: &mut impl Shell,
        request: &Request,
        packet: &Incoming<'_>,
    ) -> Result<Verdict, Breach> {
        let begins = matches!(
            request,
            Request::SendFirst
                | Request::SendOnly(_)
                | Request::WriteFirst(_)
                | Request::WriteOnly(..)
        );
        let lost = packet.psn != self.expected;
        if begins || lost {
            self.inbound.give_up();
        }
        // Whatever came, the next packet is the one after it: nothing is asked for again.
        self.expected = after(packet.psn, 1);
        match self.take(shell, request, packet) {
            Ok(()) => Ok(Verdict::Taken),
            Err(Refusal::LocalProtection) => Err(Breach {
                receive: Status::LocalProtection,
                event: None,
            }),
            Err(_) => {
                self.inbound.give_up();
                Ok(if lost && !begins {
                    Verdict::OutOfOrder
                } else {
                    Verdict::Unexpected
                })
            }
        }
    }

    fn take(
        &mut self,
        shell: &mut impl Shell,
        request: &Request,
        packet: &Incoming<'_>,
    ) -> Result<(), Refusal> {
        if let Request::SendLast(Tail::Invalidate(_)) | Request::SendOnly(Tail::Invalidate(_)) =
            request
        {
            return Err(Refusal::Invalid);
        }
        let arrival = Arrival {
            request: *request,
            payload: packet.payload,
            solicited: packet.solicited,
            mtu: self.terms.mtu,
            access: self.terms.access,
        };
        self.inbound.take(shell, &arrival).map(|_| ())
    }
}
