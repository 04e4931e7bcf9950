// SPDX-License-Identifier: GPL-2.0-only

//! Communication identifiers of connections and of service ID resolutions.

use core::fmt;

/// The number by which one side of a connection knows it (IBTA 12.6.5); the other side repeats it
/// in what it sends. In a service ID resolution it is the request's identifier (IBTA 12.11.1).
///
/// It means something only to the side that chose it, so its byte order is a matter of reading:
/// here it is the number that the four bytes in network byte order are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommId(u32);

impl CommId {
    /// The identifier that stands for one never chosen, as in a rejection before a connection.
    pub const ZERO: CommId = CommId(0);

    /// Takes the number in host byte order.
    pub const fn new(number: u32) -> CommId {
        CommId(number)
    }

    /// The number in host byte order.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for CommId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

impl fmt::Debug for CommId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
