// SPDX-License-Identifier: GPL-2.0-only

//! The responder of a reliable connection (IBTA 9.7.1, 9.7.4, 9.7.5): what it does for its peer and
//! what it answers.
//!
//! Taking a request and answering are two steps, so that one acknowledgement is enough for all the
//! requests that came together. Data of READs and results of atomics go out in the order of their
//! requests, the acknowledgement of what is after them behind them.

mod fetch;

use super::attributes::{
    Receiving,
    RemoteAccess,
    MAX_MESSAGE, //
};
use super::inbound::{
    Arrival,
    Inbound,
    Progress,
    Refusal, //
};
use super::packet::{
    Acknowledgement,
    Atomic,
    Incoming,
    Outgoing,
    Payload,
    Remote,
    Request,
    Response, //
};
use super::sequence::{
    after,
    before,
    distance, //
};
use super::shell::{
    Access,
    Shell, //
};
use super::wire::aeth::{
    NakCode,
    Syndrome, //
};
use super::wire::psn::Psn;
use super::work::{
    Event,
    Status, //
};
use fetch::{
    Crowded,
    Fetches, //
};

/// The consequences of an error that ends the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Breach {
    /// The status of the receive that is held.
    pub(super) receive: Status,
    /// The event that the consumer is told of, unless a receive tells it.
    pub(super) event: Option<Event>,
}

/// The disposition of a request that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Taken, or refused by an answer.
    Taken,
    /// Taken before; at most its answer is given again.
    Duplicate,
    /// One before it was lost, so it has to come again.
    OutOfOrder,
    /// A request that is not expected in this state.
    Unexpected,
}

/// The attitude of the responder towards the next request.
#[derive(Clone, Copy, Debug)]
enum Stance {
    /// The next request is done.
    Open,
    /// The next request has been asked for again; all others are dropped in silence.
    Waiting,
    /// No request is done any more: this code is still to be sent, then the connection ends.
    Broken(NakCode, Breach),
}

/// The reply that is due, after the answers to READs and atomics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reply {
    /// No reply is due.
    None,
    /// An acknowledgement of everything so far.
    Done,
    /// A negative acknowledgement of the request that was expected.
    Negative(Syndrome),
}

/// The responder of a reliable connection.
#[derive(Debug)]
pub(super) struct Responder {
    terms: Receiving,
    /// The number of the next request.
    expected: Psn,
    /// The number of complete messages, 24 bits (MSN).
    msn: u32,
    inbound: Inbound,
    fetches: Fetches,
    stance: Stance,
    reply: Reply,
}

impl Responder {
    pub(super) fn new(terms: Receiving) -> Responder {
        Responder {
            terms,
            expected: terms.psn,
            msn: 0,
            inbound: Inbound::new(),
            fetches: Fetches::new(terms.max_reads),
            stance: Stance::Open,
            reply: Reply::None,
        }
    }

    pub(super) fn set_access(&mut self, access: RemoteAccess) {
        self.terms.access = access;
    }

    pub(super) fn set_min_rnr_timer(&mut self, field: u8) {
        self.terms.min_rnr_timer = field;
    }

    pub(super) fn set_max_reads(&mut self, number: u8) {
        self.fetches.set_limit(number);
    }

    /// Reports the receive that is held, with `status`. If its message was refused, the receive
    /// says why instead, whatever else ends the connection before the NAK is out.
    pub(super) fn fail(&mut self, shell: &mut impl Shell, status: Status) {
        let status = match self.stance {
            Stance::Broken(_, breach) => breach.receive,
            Stance::Open | Stance::Waiting => status,
        };
        self.inbound.fail(shell, status);
    }

    /// Takes a request. What there is to answer is answered by [`Responder::step`].
    pub(super) fn receive(
        &mut self,
        shell: &mut impl Shell,
        request: &Request,
        packet: &Incoming<'_>,
    ) -> Verdict {
        // The connection ends as soon as the NAK is out: nothing after the refused request is
        // done.
        if let Stance::Broken(..) = self.stance {
            return Verdict::Unexpected;
        }
        match distance(self.expected, packet.psn) {
            0 => self.expected(shell, request, packet),
            1.. => self.early(),
            _ => self.repeated(request, packet.psn),
        }
    }

    /// Sends the next answer that is due, if there is room. Returns whether there was one, and room
    /// for it.
    pub(super) fn step(&mut self, shell: &mut impl Shell) -> Result<bool, Breach> {
        let Some(turn) = self.fetches.turn(self.terms.mtu) else {
            return self.say(shell);
        };
        if !shell.room() {
            return Ok(false);
        }
        let acknowledgement = self.acknowledgement(Syndrome::Ack(Syndrome::NO_CREDITS));
        let answer = turn.answer(acknowledgement, self.terms.mtu);
        if shell.emit(&answer).is_ok() {
            self.fetches.answered(self.terms.mtu);
        } else if self.fetches.give_up() {
            return Err(self.vanished(shell, answer.psn));
        }
        Ok(true)
    }

    fn acknowledgement(&self, syndrome: Syndrome) -> Acknowledgement {
        Acknowledgement {
            syndrome,
            msn: self.msn,
        }
    }

    /// Says what is to be said of requests other than READs and atomics, if there is room. Returns
    /// whether there was something, and room for it.
    fn say(&mut self, shell: &mut impl Shell) -> Result<bool, Breach> {
        let (syndrome, psn) = match (self.stance, self.reply) {
            // A NAK has the number of the request that was expected, an ACK that of the last one
            // done.
            (Stance::Broken(code, _), _) => (Syndrome::Nak(code), self.expected),
            (_, Reply::None) => return Ok(false),
            (_, Reply::Done) => (Syndrome::Ack(Syndrome::NO_CREDITS), before(self.expected)),
            (_, Reply::Negative(syndrome)) => (syndrome, self.expected),
        };
        if !shell.room() {
            return Ok(false);
        }
        self.reply = Reply::None;
        self.acknowledge(shell, syndrome, psn);
        match self.stance {
            Stance::Broken(_, breach) => Err(breach),
            Stance::Open | Stance::Waiting => Ok(true),
        }
    }

    fn acknowledge(&self, shell: &mut impl Shell, syndrome: Syndrome, psn: Psn) {
        let response = Response::Acknowledge(self.acknowledgement(syndrome));
        // No payload that could be denied.
        let _ = shell.emit(&Outgoing::response(response, psn, Payload::None));
    }

    /// The memory that is being read is not there any more.
    fn vanished(&mut self, shell: &mut impl Shell, psn: Psn) -> Breach {
        self.acknowledge(shell, Syndrome::Nak(NakCode::RemoteAccess), psn);
        breach(Refusal::Access).1
    }

    /// A request is lost.
    fn early(&mut self) -> Verdict {
        // Once: the peer repeats everything from there, and the packets behind have the same
        // cause.
        if let Stance::Open = self.stance {
            self.stance = Stance::Waiting;
            self.reply = Reply::Negative(Syndrome::Nak(NakCode::SequenceError));
        }
        Verdict::OutOfOrder
    }

    /// A request came once more.
    fn repeated(&mut self, request: &Request, psn: Psn) -> Verdict {
        match request {
            Request::Read(remote) => self.fetches.repeat_read(psn, remote, self.terms.mtu),
            Request::Atomic(remote, _) => self.fetches.repeat_atomic(psn, remote),
            // Its acknowledgement may have been lost (IBTA 9.7.5.1.3).
            _ if self.reply == Reply::None => self.reply = Reply::Done,
            _ => {}
        }
        Verdict::Duplicate
    }

    /// Serves the request with the expected number.
    fn expected(
        &mut self,
        shell: &mut impl Shell,
        request: &Request,
        packet: &Incoming<'_>,
    ) -> Verdict {
        let taken = match request {
            Request::Read(remote) => self.read(shell, remote),
            Request::Atomic(remote, atomic) => self.atomic(shell, remote, *atomic),
            _ => self.message(shell, *request, packet),
        };
        match taken {
            Ok(()) => self.arrived(),
            Err(Refusal::NotReady) => {
                self.stance = Stance::Waiting;
                self.reply = Reply::Negative(Syndrome::RnrNak(self.terms.min_rnr_timer & 0x1f));
            }
            Err(refusal) => {
                let (code, breach) = breach(refusal);
                self.stance = Stance::Broken(code, breach);
            }
        }
        Verdict::Taken
    }

    /// Notes that the expected request is here. If a request behind it was passed over, and the
    /// peer was not told so yet, the peer is told with the number of the request that is expected
    /// now.
    fn arrived(&mut self) {
        match self.reply {
            Reply::Negative(Syndrome::Nak(_)) => {}
            Reply::Negative(_) => {
                self.stance = Stance::Open;
                self.reply = Reply::Done;
            }
            Reply::None | Reply::Done => self.stance = Stance::Open,
        }
    }

    /// Notes that so many numbers are used up; if `complete`, that a message ends with them.
    fn passed(&mut self, packets: u32, complete: bool) {
        self.expected = after(self.expected, packets);
        if complete {
            self.msn = self.msn.wrapping_add(1) & Psn::MAX;
        }
    }

    /// A packet of a SEND or an RDMA WRITE.
    fn message(
        &mut self,
        shell: &mut impl Shell,
        request: Request,
        packet: &Incoming<'_>,
    ) -> Result<(), Refusal> {
        let arrival = Arrival {
            request,
            payload: packet.payload,
            solicited: packet.solicited,
            mtu: self.terms.mtu,
            access: self.terms.access,
        };
        let progress = self.inbound.take(shell, &arrival)?;
        self.passed(1, progress == Progress::Complete);
        if packet.ack_request && self.reply == Reply::None {
            self.reply = Reply::Done;
        }
        Ok(())
    }

    fn read(&mut self, shell: &mut impl Shell, remote: &Remote) -> Result<(), Refusal> {
        let allowed = self.terms.access.read && remote.length <= MAX_MESSAGE;
        if !self.inbound.is_between() || !allowed {
            return Err(Refusal::Invalid);
        }
        self.fetches.make_room().map_err(too_many)?;
        // The key of a read of nothing means nothing (IBTA 9.7.4.1.1).
        if remote.length > 0 {
            shell
                .check(remote, Access::Read)
                .map_err(|_| Refusal::Access)?;
        }
        let packets = self.terms.mtu.packets(remote.length);
        self.fetches.add_read(self.expected, packets, remote);
        self.passed(packets, true);
        Ok(())
    }

    fn atomic(
        &mut self,
        shell: &mut impl Shell,
        remote: &Remote,
        atomic: Atomic,
    ) -> Result<(), Refusal> {
        let aligned = remote.address % 8 == 0;
        if !self.inbound.is_between() || !self.terms.access.atomic || !aligned {
            return Err(Refusal::Invalid);
        }
        // Before the operation, which is done once: its result has to be kept for repetitions.
        self.fetches.make_room().map_err(too_many)?;
        let original = shell
            .atomic(remote.rkey, remote.address, atomic)
            .map_err(|_| Refusal::Access)?;
        self.fetches.add_atomic(self.expected, remote, original);
        self.passed(1, true);
        Ok(())
    }
}

fn too_many(_: Crowded) -> Refusal {
    Refusal::Invalid
}

/// Returns the code and the consequences of a request that cannot be done (IBTA 9.9.3, table of
/// responder errors).
fn breach(refusal: Refusal) -> (NakCode, Breach) {
    let (code, receive, event) = match refusal {
        Refusal::NotReady | Refusal::Invalid => (
            NakCode::InvalidRequest,
            Status::Flushed,
            Some(Event::RequestError),
        ),
        Refusal::Access => (
            NakCode::RemoteAccess,
            Status::Flushed,
            Some(Event::AccessError),
        ),
        Refusal::LocalLength => (NakCode::InvalidRequest, Status::LocalLength, None),
        Refusal::LocalProtection => (NakCode::RemoteOperation, Status::LocalProtection, None),
        Refusal::Invalidation => (NakCode::RemoteAccess, Status::MemoryManagement, None),
    };
    (code, Breach { receive, event })
}
