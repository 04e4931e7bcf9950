// SPDX-License-Identifier: GPL-2.0-only

//! Asking the peer for time when the consumer is slow to answer (IBTA 12.6.6).

use super::time;
use super::time::Time;

/// The MRA of a request that the consumer has not answered.
///
/// The peer waits for as long as the request says. A consumer that knows it will need longer
/// prepares an MRA; for the others it goes out by itself, at half of that time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mra {
    /// The consumer has prepared it; it goes out then, or with a duplicate of the request.
    Prepared(Time),
    /// The MRA was sent without the consumer's call.
    Unasked,
    /// The MRA was sent, and the consumer has prepared it.
    Sent,
}

impl Mra {
    /// The time at which an MRA has to be sent for a request that comes now: half of the time for
    /// which the peer waits, which this exponent gives.
    pub(super) fn due_after(response_timeout: u8, now: Time) -> Time {
        let half = time::milliseconds(response_timeout) / 2;
        now.after(half.max(1).into())
    }

    /// The time at which it is due, if it has not been sent.
    pub(super) fn due(self) -> Option<Time> {
        match self {
            Mra::Prepared(due) => Some(due),
            Mra::Unasked | Mra::Sent => None,
        }
    }

    /// The consumer prepares it, which it may do once.
    pub(super) fn prepare(self) -> Option<Mra> {
        (self == Mra::Unasked).then_some(Mra::Sent)
    }

    /// Notes that the MRA has been sent.
    pub(super) fn sent(self) -> Mra {
        match self {
            Mra::Prepared(_) => Mra::Sent,
            Mra::Unasked | Mra::Sent => self,
        }
    }
}
