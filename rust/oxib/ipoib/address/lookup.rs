// SPDX-License-Identifier: GPL-2.0-only

//! Look-ups in the table of destinations, which change nothing.

use super::{
    destination::{
        Due,
        State, //
    },
    Destinations,
    Handle,
    FRESH_SECS, //
};
use crate::wire::gid::Gid;

impl<H: Handle, P> Destinations<H, P> {
    /// Returns the address handle of the path to `gid`, if it is known.
    pub(in crate::ipoib) fn handle(&self, gid: &Gid) -> Option<&H> {
        match self.table.get(gid) {
            Some(State::Ready(ready)) => Some(&ready.handle),
            _ => None,
        }
    }

    /// Returns whether packets were sent to `gid` at time `since` or later, as far as is known.
    pub(in crate::ipoib) fn is_used_since(&self, gid: &Gid, since: u64) -> bool {
        match self.table.get(gid) {
            Some(State::Ready(ready)) => ready.used >= since,
            // Its packets wait here and not in a queue's cache, so no use of theirs is noted yet.
            Some(State::Resolving(_)) => true,
            // Nothing notes what is dropped meanwhile.
            Some(State::Failed(failed)) => failed.until >= since,
            None => false,
        }
    }

    /// Returns whether the path to `gid` was found, or not found, a moment ago.
    pub(in crate::ipoib) fn is_fresh(&self, gid: &Gid, now: u64) -> bool {
        match self.table.get(gid) {
            Some(State::Ready(ready)) => {
                let is_believed = matches!(ready.due, Due::Never | Due::At(_));
                is_believed && ready.found + FRESH_SECS > now
            }
            Some(State::Failed(failed)) => failed.until + FRESH_SECS > now + failed.wait,
            _ => false,
        }
    }

    /// Returns whether a path to `gid` is known that is looked for again, or is due for that by
    /// time `now`.
    pub(in crate::ipoib) fn is_due(&self, gid: &Gid, now: u64) -> bool {
        match self.table.get(gid) {
            Some(State::Ready(ready)) => {
                ready.search.is_some() || ready.due.has_come(ready.used, now)
            }
            _ => false,
        }
    }

    /// Returns whether `gid` was looked for in vain.
    pub(in crate::ipoib) fn is_missing(&self, gid: &Gid) -> bool {
        matches!(self.table.get(gid), Some(State::Failed(_)))
    }

    /// Returns whether anything is known of `gid`.
    pub(in crate::ipoib) fn is_known(&self, gid: &Gid) -> bool {
        self.table.get(gid).is_some()
    }
}
