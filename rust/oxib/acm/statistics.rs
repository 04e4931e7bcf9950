// SPDX-License-Identifier: GPL-2.0-only

//! Counters of each namespace's cache and of the resolution that uses it.

use crate::counters::Index;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $attribute:literal,)*) => {
        /// Counters, with the numbers of their attributes in netlink.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub(crate) enum Counter {
            $($(#[$doc])* $name,)*
        }

        impl Counter {
            /// All counters, in the order of their attributes.
            pub(crate) const ALL: &'static [Counter] = &[$(Counter::$name,)*];

            /// The number of the attribute in a request for statistics.
            pub(crate) const fn attribute(self) -> u16 {
                match self {
                    $(Counter::$name => $attribute,)*
                }
            }
        }
    };
}

counters! {
    /// Look-ups that found an entry.
    Hits = 7,
    /// Look-ups that found none.
    Misses = 8,
    /// Entries that were too old.
    Expired = 9,
    /// Reports of an address that were refused: an entry of higher rank has it, or the asker is
    /// elsewhere.
    Refused = 10,
    /// ARP requests of our own stack that were answered.
    ArpAnswered = 11,
    /// Neighbour solicitations of our own stack that were answered.
    NdAnswered = 12,
    /// Requests for a peer's queue pair that were sent.
    SidrSent = 13,
    /// Requests for a peer's queue pair that were answered.
    SidrAnswered = 14,
    /// Requests for a peer's queue pair that the peer refused, or answered wrongly.
    SidrRefused = 15,
    /// Requests for a peer's queue pair that were not answered.
    SidrTimeouts = 16,
    /// Requests that are out now.
    SidrInFlight = 17,
    /// Requests that wait for their turn now.
    SidrWaiting = 18,
    /// Requests of peers that were answered.
    SidrServed = 19,
    /// Paths that are known now.
    Paths = 20,
    /// Look-ups that found a path.
    PathHits = 21,
    /// Look-ups that found none.
    PathMisses = 22,
    /// Queries to the subnet administrator.
    PathQueries = 23,
    /// Paths that an event invalidated.
    PathInvalidated = 24,
    /// Peers across a router that do not answer.
    RouterNoOxib = 25,
    /// Bulk loads that took effect.
    Loads = 26,
    /// Questions of programs for a path or an address that were answered.
    ProgramsAnswered = 28,
    /// Questions of programs that were left to the subnet administrator.
    ProgramsDeclined = 29,
}

impl Index for Counter {
    const NUMBER: usize = Counter::ALL.len();

    fn place(self) -> usize {
        self as usize
    }
}

#[kernel::prelude::kunit_tests(oxib_acm_statistics)]
mod tests {
    use super::*;

    #[test]
    fn places_and_attributes_are_in_order() {
        for (place, counter) in Counter::ALL.iter().enumerate() {
            assert_eq!(counter.place(), place);
            // 27 is for alignment.
            let expected = place + 7 + usize::from(place >= 20);
            assert_eq!(usize::from(counter.attribute()), expected);
        }
    }
}
