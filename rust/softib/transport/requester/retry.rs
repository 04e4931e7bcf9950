// SPDX-License-Identifier: GPL-2.0-only

//! Repetition of requests, and its end (IBTA 9.7.5.2.8, 9.7.6.1).

use super::super::attributes::RNR_RETRY_FOREVER;
use super::super::segment::Cursor;
use super::super::time::{
    rnr_timer,
    Time, //
};
use super::super::work::Status;
use super::{
    Clock,
    Failed,
    Requester,
    Tries, //
};

impl Requester {
    /// The time may have come that was asked for.
    pub(in super::super) fn timer(&mut self, now: Time) -> Result<(), Failed> {
        match self.clock {
            Clock::NotReady(time) if time <= now => {
                self.clock = Clock::Stopped;
                Ok(())
            }
            Clock::Acknowledge(time) if time <= now => {
                // The repetition is lost as well, so an answer may be found missing once more.
                self.recovering = false;
                self.repeat()
            }
            _ => Ok(()),
        }
    }

    /// Repeats, as something under way is lost: the responder misses a request, or the answer to
    /// a READ or an atomic operation is missing, as something after it was answered (IBTA
    /// 9.7.5.2.4, "implied NAK").
    pub(super) fn missing(&mut self) -> Result<(), Failed> {
        // While the receiver is not ready nothing is sent, and then everything from the oldest
        // on.
        if self.recovering || matches!(self.clock, Clock::NotReady(_)) {
            return Ok(());
        }
        self.repeat()?;
        self.recovering = true;
        Ok(())
    }

    /// Waits and repeats, as the responder has no receive.
    pub(super) fn not_ready(&mut self, timer: u8, now: Time) -> Result<(), Failed> {
        if matches!(self.clock, Clock::NotReady(_)) {
            return Ok(());
        }
        if self.terms.rnr_retry != RNR_RETRY_FOREVER {
            self.tries.not_ready = self
                .tries
                .not_ready
                .checked_sub(1)
                .ok_or(Failed(Status::RnrRetryExceeded))?;
        }
        self.rewind();
        self.clock = Clock::NotReady(now.after(rnr_timer(timer)));
        Ok(())
    }

    /// Moves the oldest place on over packets: that is progress, and everything may be tried
    /// again.
    pub(super) fn advance(&mut self, to: Cursor) {
        self.oldest = to;
        self.tries = Tries::new(&self.terms);
        self.recovering = false;
        if let Clock::NotReady(_) = self.clock {
            self.clock = Clock::Stopped;
        }
        self.catch_up();
    }

    /// Begins again from the oldest packet on, if that was not tried too often.
    fn repeat(&mut self) -> Result<(), Failed> {
        self.tries.unanswered = self
            .tries
            .unanswered
            .checked_sub(1)
            .ok_or(Failed(Status::RetryExceeded))?;
        self.rewind();
        Ok(())
    }

    fn rewind(&mut self) {
        self.next = self.oldest;
        self.window = self.oldest.psn;
        self.fetches = 0;
        self.clock = Clock::Stopped;
    }
}
