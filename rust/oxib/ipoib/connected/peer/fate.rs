// SPDX-License-Identifier: GPL-2.0-only

//! Consequences of a connection's end.

/// Consequence of a connection's end for the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ipoib::connected) enum Fate {
    /// No consequence: the connection was idle, or the peer thought so.
    Over,
    /// The connection failed: none is tried for a little while.
    Failed,
    /// The peer takes no connections: it is down, or in datagram mode.
    Unwilling,
    /// The peer, or this node, has as many connections as it takes.
    Declined,
    /// The peer has not answered a request, and may not have been sent one: the path to it is not
    /// known at the moment, there is no memory, or the session is being closed.
    Postponed,
    /// One of the ports has another LID: the next packet asks for another connection at once.
    Moved,
}

impl Fate {
    /// Returns the fate with this number.
    pub(in crate::ipoib::connected) fn from_number(number: u8) -> Self {
        let others = [
            Self::Failed,
            Self::Unwilling,
            Self::Declined,
            Self::Postponed,
            Self::Moved,
        ];
        let mut others = others.into_iter();
        others
            .find(|fate| *fate as u8 == number)
            .unwrap_or(Self::Over)
    }

    /// Returns whether the next packet asks for another connection at once.
    pub(super) fn is_neutral(self) -> bool {
        matches!(self, Self::Over | Self::Moved)
    }
}
