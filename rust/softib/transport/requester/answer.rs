// SPDX-License-Identifier: GPL-2.0-only

//! Handling of answers by a requester (IBTA 9.7.5.1, 9.7.5.2, 9.9.2).

use super::super::packet::{
    Acknowledgement,
    Response, //
};
use super::super::segment::{
    end,
    Cursor, //
};
use super::super::sequence::{
    after,
    ahead,
    before,
    distance, //
};
use super::super::shell::Shell;
use super::super::time::Time;
use super::super::wire::aeth::{
    NakCode,
    Syndrome, //
};
use super::super::wire::psn::Psn;
use super::super::work::{
    Operation,
    Status,
    Work, //
};
use super::{
    Clock,
    Failed,
    Requester, //
};

/// The part of what was acknowledged that is now complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    /// All that was acknowledged.
    Whole,
    /// Only what is before a READ or an atomic with a missing answer.
    Missing,
}

/// The place of a packet in the data of a READ.
struct Place {
    offset: u32,
    length: u32,
    last: bool,
}

impl Requester {
    /// Takes an answer. One to a packet that is already acknowledged or was never sent is ignored,
    /// and `false` is the answer to it.
    pub(in super::super) fn receive(
        &mut self,
        shell: &mut impl Shell,
        response: &Response,
        psn: Psn,
        payload: &[u8],
        now: Time,
    ) -> Result<bool, Failed> {
        if ahead(self.oldest.psn, psn) >= ahead(self.oldest.psn, after(self.sent, most(response))) {
            return Ok(false);
        }
        let oldest = self.oldest.psn;
        self.answered(shell, response, psn, payload, now)?;
        if self.oldest.psn != oldest {
            self.restart_clock(now);
        }
        Ok(true)
    }

    fn answered(
        &mut self,
        shell: &mut impl Shell,
        response: &Response,
        psn: Psn,
        payload: &[u8],
        now: Time,
    ) -> Result<(), Failed> {
        match response {
            Response::Acknowledge(acknowledgement) => {
                self.acknowledged(shell, acknowledgement, psn, now)
            }
            Response::ReadFirst(_) | Response::ReadMiddle => self.read(shell, psn, payload, false),
            Response::ReadLast(_) | Response::ReadOnly(_) => self.read(shell, psn, payload, true),
            Response::Atomic(_, original) => self.found(shell, psn, *original),
        }
    }

    fn acknowledged(
        &mut self,
        shell: &mut impl Shell,
        acknowledgement: &Acknowledgement,
        psn: Psn,
        now: Time,
    ) -> Result<(), Failed> {
        if let Syndrome::Ack(_) = acknowledgement.syndrome {
            return match self.complete(shell, psn)? {
                Reach::Whole => Ok(()),
                Reach::Missing => self.missing(),
            };
        }
        // A negative one acknowledges all before.
        let reach = self.complete_before(shell, psn)?;
        match acknowledgement.syndrome {
            // It says so once: the same again is a copy, or came late.
            Syndrome::Nak(NakCode::SequenceError) if self.oldest.psn == self.sent => Ok(()),
            Syndrome::Nak(NakCode::SequenceError) => self.missing(),
            Syndrome::RnrNak(_) if reach == Reach::Missing => self.missing(),
            Syndrome::RnrNak(timer) => self.not_ready(timer, now),
            Syndrome::Nak(code) => Err(self.refused(shell, psn, status_of(code))),
            Syndrome::Ack(_) => Ok(()),
        }
    }

    /// The responder has done everything up to this packet.
    fn complete(&mut self, shell: &mut impl Shell, through: Psn) -> Result<Reach, Failed> {
        self.settle(shell)?;
        while distance(self.oldest.psn, through) >= 0 {
            let Some(work) = shell.send(self.oldest.index) else {
                break;
            };
            if work.is_fetch() {
                return Ok(Reach::Missing);
            }
            // A part of a message is acknowledged: what is left of it begins after that packet.
            if distance(through, end(&work, &self.oldest, self.mtu)) > 1 {
                self.advance(Cursor {
                    psn: after(through, 1),
                    ..self.oldest
                });
                break;
            }
            self.retire(shell, &work);
            self.settle(shell)?;
        }
        Ok(Reach::Whole)
    }

    fn complete_before(&mut self, shell: &mut impl Shell, psn: Psn) -> Result<Reach, Failed> {
        if psn == self.oldest.psn {
            self.settle(shell)?;
            return Ok(Reach::Whole);
        }
        self.complete(shell, before(psn))
    }

    /// The send that answer is to, if nothing is missing before it.
    fn awaiting(&mut self, shell: &mut impl Shell, psn: Psn) -> Result<Option<Work>, Failed> {
        if self.complete_before(shell, psn)? == Reach::Missing {
            self.missing()?;
            return Ok(None);
        }
        Ok(shell.send(self.oldest.index))
    }

    /// A packet of the data of a READ.
    fn read(
        &mut self,
        shell: &mut impl Shell,
        psn: Psn,
        payload: &[u8],
        last: bool,
    ) -> Result<(), Failed> {
        let Some(work) = self.awaiting(shell, psn)? else {
            return Ok(());
        };
        let place = match work.operation {
            Operation::Read(_) => self.place(&work),
            _ => return Err(Failed(Status::BadResponse)),
        };
        if payload.len() != place.length as usize || last != place.last {
            return Err(Failed(Status::BadResponse));
        }
        if !payload.is_empty() {
            shell
                .scatter_send(self.oldest.index, place.offset, payload)
                .map_err(|_| Failed(Status::LocalProtection))?;
        }
        if last {
            self.retire(shell, &work);
        } else {
            self.advance(Cursor {
                psn: after(psn, 1),
                ..self.oldest
            });
        }
        self.settle(shell)
    }

    /// Returns the place of the next packet of the oldest READ.
    fn place(&self, work: &Work) -> Place {
        let mtu = self.mtu.bytes();
        let offset = self.oldest.done().wrapping_mul(mtu);
        let rest = work.length.saturating_sub(offset);
        Place {
            offset,
            length: rest.min(mtu),
            last: rest <= mtu,
        }
    }

    /// Takes the original value that an atomic operation found.
    fn found(&mut self, shell: &mut impl Shell, psn: Psn, original: u64) -> Result<(), Failed> {
        let Some(work) = self.awaiting(shell, psn)? else {
            return Ok(());
        };
        if !matches!(work.operation, Operation::Atomic(..)) {
            return Err(Failed(Status::BadResponse));
        }
        shell
            .scatter_send(self.oldest.index, 0, &original.to_ne_bytes())
            .map_err(|_| Failed(Status::LocalProtection))?;
        self.retire(shell, &work);
        self.settle(shell)
    }

    /// The responder will not do the send of this packet, nor any other. READs before it are
    /// flushed if their answers were lost: these never come.
    fn refused(&mut self, shell: &mut impl Shell, psn: Psn, status: Status) -> Failed {
        while let Some(work) = shell.send(self.oldest.index) {
            let end = end(&work, &self.oldest, self.mtu);
            if distance(psn, end) > 0 {
                break;
            }
            shell.sent(self.oldest.index, Some(Status::Flushed));
            self.oldest = self.oldest.following(end);
        }
        Failed(status)
    }

    /// Restarts the clock, as something new is acknowledged: what is still under way has its full
    /// time again.
    fn restart_clock(&mut self, now: Time) {
        if matches!(self.clock, Clock::NotReady(_)) {
            return;
        }
        if self.next.psn == self.oldest.psn {
            self.clock = Clock::Stopped;
        } else {
            self.await_answer(now);
        }
    }
}

/// Returns how many packets an answer may be ahead of what was sent: the request that a responder
/// misses may have come to it in the meantime, and been the last one.
fn most(response: &Response) -> u32 {
    match response {
        Response::Acknowledge(acknowledgement) => {
            u32::from(acknowledgement.syndrome == Syndrome::Nak(NakCode::SequenceError))
        }
        _ => 0,
    }
}

/// Returns the status of a send that was refused with that code.
fn status_of(code: NakCode) -> Status {
    match code {
        NakCode::InvalidRequest | NakCode::SequenceError => Status::RemoteInvalidRequest,
        NakCode::RemoteAccess => Status::RemoteAccess,
        NakCode::RemoteOperation => Status::RemoteOperation,
    }
}
