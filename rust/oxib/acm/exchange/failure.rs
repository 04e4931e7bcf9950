// SPDX-License-Identifier: GPL-2.0-only

//! Why a peer's queue pair was not found, and what of the peer is forgotten then.

use kernel::prelude::*;

use crate::cm;

/// Reason why a peer's queue pair was not found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// The port's connection manager is not oxib's.
    NoManager,
    /// The subnet administrator gives no path to the peer. Nor does the node on which a subnet
    /// manager has ended: its kernel refuses the query.
    NoPath,
    /// The subnet administrator does not answer, or cannot be asked now.
    SaSilent,
    /// The peer does not answer.
    Silent,
    /// The peer does not know the service, or not the address.
    Refused,
    /// The answer is about something else, or of no use.
    Wrong,
    /// The request could not be sent, or was called off.
    NotSent,
    /// The kernel is short of memory.
    NoMemory,
}

impl Failure {
    /// Returns the reason that `error` gives: `otherwise`, unless memory is short.
    pub(super) fn of(error: Error, otherwise: Self) -> Self {
        match error {
            ENOMEM => Self::NoMemory,
            _ => otherwise,
        }
    }

    /// Returns the reason that an error of [`Host::path`](super::Host::path) gives.
    pub(super) fn of_path(error: Error) -> Self {
        match error {
            ENXIO => Self::NoPath,
            _ => Self::of(error, Self::SaSilent),
        }
    }

    /// Returns whether the queue pair that the peer told before is to be forgotten. If the stack
    /// may ask the peer by ARP or neighbour discovery, it is found by that then. Nothing else finds
    /// it: its queue pair stays, unless the failure shows something of the peer.
    pub(super) fn is_reason_to_forget(self, stack_may_ask: bool) -> bool {
        stack_may_ask || matches!(self, Self::Silent | Self::Refused | Self::Wrong)
    }
}

impl From<cm::Failure> for Failure {
    /// Returns the reason for which the connection manager gave a request up.
    fn from(failure: cm::Failure) -> Self {
        match failure {
            cm::Failure::Timeout => Self::Silent,
            cm::Failure::Send => Self::NotSent,
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_acm_exchange_failure)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_forgotten_for_what_shows_something_of_it() {
        // Why a peer was not found, and whether that shows something of it.
        for (failure, is_of_peer) in [
            (Failure::NoManager, false),
            (Failure::NoPath, false),
            (Failure::SaSilent, false),
            (Failure::Silent, true),
            (Failure::Refused, true),
            (Failure::Wrong, true),
            (Failure::NotSent, false),
            (Failure::NoMemory, false),
        ] {
            assert_eq!(failure.is_reason_to_forget(false), is_of_peer);
            // ARP or neighbour discovery finds it again.
            assert!(failure.is_reason_to_forget(true));
        }
    }

    #[test]
    fn failures_are_told_apart() {
        for (error, expected) in [
            (ENXIO, Failure::NoPath),
            (EAGAIN, Failure::SaSilent),
            (ENODEV, Failure::SaSilent),
            (ENOMEM, Failure::NoMemory),
        ] {
            assert_eq!(Failure::of_path(error), expected);
        }
        for otherwise in [Failure::NoManager, Failure::NotSent] {
            assert_eq!(Failure::of(ENODEV, otherwise), otherwise);
            assert_eq!(Failure::of(ENOMEM, otherwise), Failure::NoMemory);
        }
        assert_eq!(Failure::from(cm::Failure::Timeout), Failure::Silent);
        assert_eq!(Failure::from(cm::Failure::Send), Failure::NotSent);
    }
}
