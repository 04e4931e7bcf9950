// SPDX-License-Identifier: GPL-2.0-only

//! The requester of a reliable connection (IBTA 9.7.1, 9.7.5.1, 9.7.6): what it sends.
//!
//! Two places in the send queue are all it knows of the sends: the oldest that is not acknowledged,
//! and the next to send. What is between them is under way. A repetition puts the second back to
//! the first, so every walk over the queue is paid for by the packets that it sends or by the
//! sends that it completes.
//!
//! End-to-end flow control is not used: credits in acknowledgements are ignored, and a receiver
//! that is not ready answers so.

mod answer;
mod retry;

use super::attributes::{
    Mtu,
    Receiving,
    Sending,
    MAX_MESSAGE, //
};
use super::packet::{
    Body,
    Outgoing,
    Payload,
    Request, //
};
use super::segment::{
    end,
    packets,
    segment,
    Cursor, //
};
use super::sequence::{
    after,
    ahead,
    distance,
    REACH, //
};
use super::shell::Shell;
use super::time::{
    ack_timeout,
    Time, //
};
use super::wire::psn::Psn;
use super::work::{
    Event,
    Local,
    Operation,
    Status,
    Work, //
};

/// Packets of messages that may be under way at a time.
const WINDOW: u32 = 64;

/// The number of packets of a message after which an acknowledgement is asked for, as it is after
/// the last.
const ACK_EVERY: u32 = 16;

const _: () = assert!(ACK_EVERY * 2 <= WINDOW);

/// The send at the oldest place ends with this status, and the queue pair with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Failed(pub(super) Status);

/// Whether new sends are begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pace {
    /// New sends are begun.
    Running,
    /// No new send is begun; those that were begun are finished first. With `notify`, the end of
    /// that is an event.
    Draining { notify: bool },
    /// No new send is begun, and none is under way any more.
    Drained,
}

/// The time that the requester waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Clock {
    /// No time is awaited.
    Stopped,
    /// The time by which something should have been acknowledged.
    Acknowledge(Time),
    /// The time until which the receiver is not ready: nothing is sent.
    NotReady(Time),
}

/// Repetitions that are left before the queue pair fails.
#[derive(Clone, Copy, Debug)]
struct Tries {
    unanswered: u8,
    not_ready: u8,
}

impl Tries {
    fn new(terms: &Sending) -> Tries {
        Tries {
            unanswered: terms.retry_count,
            not_ready: terms.rnr_retry,
        }
    }
}

/// A send that cannot be done. It is reported when those before it are complete.
#[derive(Clone, Copy, Debug)]
struct Stop {
    index: u32,
    status: Status,
}

/// The result of one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// There may be more to do.
    Done,
    /// No step can be done now.
    Blocked,
}

/// The requester of a reliable connection.
#[derive(Debug)]
pub(super) struct Requester {
    mtu: Mtu,
    terms: Sending,
    oldest: Cursor,
    next: Cursor,
    /// The first send that was never begun.
    begun: u32,
    /// The first number that was never used.
    sent: Psn,
    /// The beginning of the window: the oldest packet, or the packet after the last READ or
    /// atomic; the answers of those do not count.
    window: Psn,
    /// READs and atomics from the oldest place to the next.
    fetches: u8,
    tries: Tries,
    clock: Clock,
    /// Whether the answer that was found missing has been asked for again: that more of the same
    /// are missing is no news.
    recovering: bool,
    stop: Option<Stop>,
    pace: Pace,
}

impl Requester {
    pub(super) fn new(receiving: &Receiving, terms: Sending) -> Requester {
        let start = Cursor::start(terms.psn);
        Requester {
            mtu: receiving.mtu,
            terms,
            oldest: start,
            next: start,
            begun: 0,
            sent: terms.psn,
            window: terms.psn,
            fetches: 0,
            tries: Tries::new(&terms),
            clock: Clock::Stopped,
            recovering: false,
            stop: None,
            pace: Pace::Running,
        }
    }

    /// Returns the time at which [`Requester::timer`] is to be called.
    pub(super) fn due(&self) -> Option<Time> {
        match self.clock {
            Clock::Stopped => None,
            Clock::Acknowledge(time) | Clock::NotReady(time) => Some(time),
        }
    }

    pub(super) fn pace(&self) -> Pace {
        self.pace
    }

    /// Begins no more sends.
    pub(super) fn drain(&mut self, notify: bool) {
        if self.pace == Pace::Running {
            self.pace = Pace::Draining { notify };
        }
    }

    /// Returns whether sends that were begun are still to be finished before the queue is drained.
    pub(super) fn is_draining(&self) -> bool {
        matches!(self.pace, Pace::Draining { .. })
    }

    /// Takes other terms from now on, but for the number of the first packet. With new terms each
    /// repetition is still to be tried. Returns whether they may change: sends that are being
    /// finished keep theirs, as a READ that is to be repeated needs a place among those
    /// outstanding.
    pub(super) fn set_terms(&mut self, terms: Sending) -> bool {
        let terms = Sending {
            psn: self.terms.psn,
            ..terms
        };
        if terms != self.terms {
            if self.is_draining() {
                return false;
            }
            self.terms = terms;
            self.tries = Tries::new(&terms);
        }
        true
    }

    /// Begins new sends again.
    pub(super) fn resume(&mut self) {
        self.pace = Pace::Running;
    }

    /// Does the next step, and returns whether there was one: most often it sends a packet.
    pub(super) fn step(&mut self, shell: &mut impl Shell, now: Time) -> Result<bool, Failed> {
        if self.go_on(shell, now)? == Step::Done {
            return Ok(true);
        }
        if let Pace::Draining { notify } = self.pace {
            if self.oldest.index == self.begun {
                self.pace = Pace::Drained;
                if notify {
                    shell.event(Event::SendQueueDrained);
                }
            }
        }
        Ok(false)
    }

    /// Reports the oldest send with that status, if there is one, and returns the index of the
    /// first send that is left to be flushed.
    pub(super) fn fail(&mut self, shell: &mut impl Shell, status: Status) -> u32 {
        let index = self.oldest.index;
        if shell.send(index).is_none() {
            return index;
        }
        shell.sent(index, Some(status));
        index.wrapping_add(1)
    }

    fn go_on(&mut self, shell: &mut impl Shell, now: Time) -> Result<Step, Failed> {
        if matches!(self.clock, Clock::NotReady(_)) || self.is_stopped() {
            return Ok(Step::Blocked);
        }
        let Some(work) = shell.send(self.next.index) else {
            return Ok(Step::Blocked);
        };
        // What is repeated was begun before: neither the fence nor a drain holds it up.
        if self.next.index == self.begun {
            if !self.may_begin(&work) {
                return Ok(Step::Blocked);
            }
            if let Some(status) = self.refuse(&work) {
                return self.stop(shell, status);
            }
        }
        match work.operation {
            Operation::Local(local) => self.local(shell, local),
            Operation::Send(_) | Operation::Write(..) => self.message(shell, &work, now),
            Operation::Read(_) | Operation::Atomic(..) => self.fetch(shell, &work, now),
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.index == self.next.index)
    }

    fn may_begin(&self, work: &Work) -> bool {
        self.pace == Pace::Running && !(work.fence && self.fetches > 0)
    }

    /// Returns the status of a send that fails with any peer; `None` if it may be sent.
    fn refuse(&self, work: &Work) -> Option<Status> {
        if work.length > MAX_MESSAGE {
            return Some(Status::LocalLength);
        }
        match work.operation {
            Operation::Atomic(..) if work.length != 8 => Some(Status::LocalLength),
            Operation::Read(_) | Operation::Atomic(..) if self.terms.max_reads == 0 => {
                Some(Status::LocalOperation)
            }
            _ => None,
        }
    }

    /// The next send cannot be done, nor any after it.
    fn stop(&mut self, shell: &mut impl Shell, status: Status) -> Result<Step, Failed> {
        self.stop = Some(Stop {
            index: self.next.index,
            status,
        });
        self.settle(shell)?;
        Ok(Step::Blocked)
    }

    /// A registration or an invalidation. It is done once, however often what is before it has to
    /// be repeated.
    fn local(&mut self, shell: &mut impl Shell, local: Local) -> Result<Step, Failed> {
        let at = self.next;
        if at.index == self.begun {
            if local == Local::Invalidate && self.oldest.index != at.index {
                return Ok(Step::Blocked);
            }
            if shell.local(at.index).is_err() {
                return self.stop(shell, Status::MemoryManagement);
            }
            self.begun = at.index.wrapping_add(1);
        }
        self.next = at.following(at.first);
        self.settle(shell)?;
        Ok(Step::Done)
    }

    /// A packet of a SEND or an RDMA WRITE.
    fn message(&mut self, shell: &mut impl Shell, work: &Work, now: Time) -> Result<Step, Failed> {
        if ahead(self.window, self.next.psn) >= WINDOW || !shell.room() {
            return Ok(Step::Blocked);
        }
        let Some(mut segment) = segment(work, &self.next, self.mtu) else {
            return Ok(Step::Blocked);
        };
        let done = self.next.done() + 1;
        segment.packet.ack_request = segment.last || done % ACK_EVERY == 0;
        if shell.emit(&segment.packet).is_err() {
            return self.stop(shell, Status::LocalProtection);
        }
        self.passed(1, segment.last, now);
        Ok(Step::Done)
    }

    /// A READ, or what is still missing of it, or an atomic operation.
    fn fetch(&mut self, shell: &mut impl Shell, work: &Work, now: Time) -> Result<Step, Failed> {
        let done = self.next.done();
        let rest = packets(work, self.mtu).saturating_sub(done);
        let reached = ahead(self.oldest.psn, self.next.psn) + rest;
        // The answer to a READ uses up numbers. Of more than half of all numbers old and new
        // could not be told apart.
        if self.fetches >= self.terms.max_reads || reached > REACH - WINDOW || !shell.room() {
            return Ok(Step::Blocked);
        }
        let request = match work.operation {
            Operation::Read(target) => {
                let skipped = done.wrapping_mul(self.mtu.bytes());
                Request::Read(target.of(work.length).skip(skipped))
            }
            Operation::Atomic(target, atomic) => Request::Atomic(target.of(8), atomic),
            _ => return Ok(Step::Blocked),
        };
        // Its answer acknowledges it, and there is no payload that could be denied.
        let _ = shell.emit(&Outgoing {
            body: Body::Request(request),
            psn: self.next.psn,
            ack_request: false,
            solicited: false,
            payload: Payload::None,
        });
        self.fetches += 1;
        self.passed(rest, true, now);
        self.window = self.next.psn;
        Ok(Step::Done)
    }

    /// Notes that the next send has used so many numbers; if `last`, that it ends with them.
    fn passed(&mut self, packets: u32, last: bool, now: Time) {
        let psn = after(self.next.psn, packets);
        if self.next.index == self.begun {
            self.begun = self.begun.wrapping_add(1);
        }
        self.next = if last {
            self.next.following(psn)
        } else {
            Cursor { psn, ..self.next }
        };
        if distance(self.sent, psn) > 0 {
            self.sent = psn;
        }
        if self.clock == Clock::Stopped {
            self.await_answer(now);
        }
    }

    /// Starts the clock, if there is one.
    fn await_answer(&mut self, now: Time) {
        self.clock = match ack_timeout(self.terms.timeout) {
            Some(nanoseconds) => Clock::Acknowledge(now.after(nanoseconds)),
            None => Clock::Stopped,
        };
    }

    /// Reports the registrations and invalidations at the oldest place, which are done, and the
    /// send that could not be done when all before it are.
    fn settle(&mut self, shell: &mut impl Shell) -> Result<(), Failed> {
        loop {
            if let Some(stop) = self.stop {
                if stop.index == self.oldest.index {
                    return Err(Failed(stop.status));
                }
            }
            if self.oldest.index == self.begun {
                return Ok(());
            }
            match shell.send(self.oldest.index) {
                Some(work) if matches!(work.operation, Operation::Local(_)) => {
                    self.retire(shell, &work);
                }
                _ => return Ok(()),
            }
        }
    }

    /// The oldest send is complete.
    fn retire(&mut self, shell: &mut impl Shell, work: &Work) {
        shell.sent(self.oldest.index, work.success());
        // After a rewind it is not counted, as it is yet to be sent again.
        if work.is_fetch() && self.next.index != self.oldest.index {
            self.fetches = self.fetches.saturating_sub(1);
        }
        let end = end(work, &self.oldest, self.mtu);
        let following = self.oldest.following(end);
        if end == self.oldest.psn {
            self.oldest = following;
            self.catch_up();
        } else {
            self.advance(following);
        }
    }

    /// Skips packets that are acknowledged: they need not be sent, even if they were to be
    /// repeated.
    fn catch_up(&mut self) {
        if self.next.is_behind(&self.oldest) {
            self.next = self.oldest;
        }
        if distance(self.window, self.oldest.psn) > 0 {
            self.window = self.oldest.psn;
        }
    }
}
