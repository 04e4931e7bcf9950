// SPDX-License-Identifier: GPL-2.0-only

//! Paths that may be wrong, and which of them are looked for again.

use kernel::prelude::*;

use super::{
    destination::{
        invalidate,
        Due,
        Ready,
        State,
        Ticket,
        SILENCE_SECS, //
    },
    Destinations,
    Handle,
    FRESH_SECS,
    IN_USE_SECS, //
};
use crate::wire::gid::Gid;

/// Time after paths became stale before any is looked for again, in seconds: meanwhile most of
/// those in use are seen to lead there. One second is lost to rounding.
pub(super) const SETTLING: u64 = 2;

/// Most seconds that are added to that by chance: all ports of a subnet that is handed over to
/// another manager hear of it at once.
pub(in crate::ipoib) const SETTLING_SPREAD: u32 = 3;

/// Number of stale paths that an interface looks for in an interval then: 8 a second. All
/// interfaces of a port together look for no more ([`crate::acm::budget::STALE_PATHS`]).
pub(in crate::ipoib) const STALE_BATCH: usize = 4;
pub(in crate::ipoib) const STALE_INTERVAL_MS: u32 = 500;

impl<H: Handle, P> Destinations<H, P> {
    /// Notes in `out`, as far as it has room, the destinations that are to be looked for again at
    /// time `now` and were used since `since`: the caller starts a search for each, with the
    /// ticket returned. Those that can wait are for [`Destinations::take_stale`].
    pub(in crate::ipoib) fn take_due(
        &mut self,
        now: u64,
        since: u64,
        out: &mut KVec<Gid>,
    ) -> Ticket {
        let is_chosen = |ready: &Ready<H>| {
            !ready.due.is_patient() && ready.due.has_come(ready.used, now) && ready.used >= since
        };
        self.take(is_chosen, out)
    }

    /// Does as [`Destinations::take_due`] for those that are stale, and used since then, and
    /// for those in use of which nothing was learned; as many as `may_ask` grants.
    pub(in crate::ipoib) fn take_stale(
        &mut self,
        now: u64,
        may_ask: impl Fn() -> bool,
        out: &mut KVec<Gid>,
    ) -> Ticket {
        let in_use = Self::in_use_since(now);
        let is_chosen = |ready: &Ready<H>| {
            let is_due = ready.due.is_patient() && ready.due.has_come(ready.used, now);
            is_due && ready.used >= in_use && may_ask()
        };
        self.take(is_chosen, out)
    }

    /// Does as [`Destinations::take_due`] for destinations in use that are reported elsewhere,
    /// as many as `take_query_token` grants.
    pub(in crate::ipoib) fn take_move_hints(
        &mut self,
        now: u64,
        take_query_token: impl Fn() -> bool,
        out: &mut KVec<Gid>,
    ) -> Ticket {
        let in_use = Self::in_use_since(now);
        let is_due = |ready: &Ready<H>| {
            ready.move_hint.is_some_and(|at| at <= now)
                && ready.used >= in_use
                && take_query_token()
        };
        self.take(is_due, out)
    }

    fn take(&mut self, is_chosen: impl Fn(&Ready<H>) -> bool, out: &mut KVec<Gid>) -> Ticket {
        let ticket = Ticket {
            generation: self.generation,
            refresh: true,
        };
        for (gid, state) in self.table.iter_mut() {
            if let State::Ready(ready) = state {
                if out.len() == out.capacity() {
                    break;
                }
                if ready.search.is_none() && is_chosen(ready) {
                    let _ = out.push_within_capacity(*gid);
                    ready.search = Some(ticket);
                    ready.move_hint = None;
                }
            }
        }
        ticket
    }

    /// Returns whether a path that is in use at time `now` is to be looked for again soon.
    pub(in crate::ipoib) fn is_due_soon(&self, now: u64) -> bool {
        let in_use = Self::in_use_since(now);
        self.table.values().any(|state| match state {
            State::Ready(ready) => {
                let is_due = match ready.due {
                    // As soon as it is used, and it is its turn.
                    due if due.is_patient() => true,
                    due => due.has_come(ready.used, now + SILENCE_SECS),
                };
                let is_due = is_due || ready.move_hint.is_some();
                ready.search.is_none() && is_due && ready.used >= in_use
            }
            State::Resolving(_) | State::Failed(_) => false,
        })
    }

    /// Returns the time since when a destination has to be used to be in use at time `now`.
    pub(in crate::ipoib) fn in_use_since(now: u64) -> u64 {
        now.saturating_sub(IN_USE_SECS - 1)
    }

    /// Invalidates all paths, as the subnet has changed. Those in use are due to be looked for
    /// again, and what was not found may be looked for at once; searches begin again when they
    /// end.
    pub(in crate::ipoib) fn invalidate_all(&mut self) {
        // Searches under way keep the old generation, so their results are not used.
        self.generation = self.generation.wrapping_add(1);
        for state in self.table.values_mut() {
            invalidate(state);
        }
    }

    /// Invalidates the path to `gid`: it is due to be looked for again, and a failed search may be
    /// repeated at once. Returns whether a path is known.
    pub(in crate::ipoib) fn invalidate(&mut self, gid: &Gid) -> bool {
        let Some(state) = self.table.get_mut(gid) else {
            return false;
        };
        invalidate(state);
        matches!(state, State::Ready(_))
    }

    /// Notes at time `now` that the neighbour at `gid` does not answer. Returns whether the path to
    /// it is to be invalidated for that.
    pub(in crate::ipoib) fn neighbour_failed(&mut self, gid: &Gid, now: u64) -> bool {
        match self.table.get_mut(gid) {
            Some(State::Ready(ready)) => ready.doubts.allow(now),
            // Other interfaces may know a path, and a search that failed is to be repeated.
            Some(State::Resolving(_) | State::Failed(_)) | None => true,
        }
    }

    /// Marks all paths stale since time `since`: any may be wrong, though most are not. Those that
    /// are used from then on are looked for again, unless something shows meanwhile that they
    /// lead there. Searches and groups are handled as by [`Destinations::invalidate_all`].
    pub(in crate::ipoib) fn mark_all_stale(&mut self, since: u64) {
        self.generation = self.generation.wrapping_add(1);
        for (gid, state) in self.table.iter_mut() {
            match state {
                // `Due::Now` stays: it is the stronger doubt, which no confirmed neighbour lifts.
                State::Ready(ready) if ready.due != Due::Now && !gid.is_multicast() => {
                    ready.due = Due::Stale(since);
                }
                _ => invalidate(state),
            }
        }
    }

    /// Notes a hint at time `now` that `gid` has moved, to be followed up in a while. Returns
    /// whether a path is known.
    pub(in crate::ipoib) fn note_move_hint(&mut self, gid: &Gid, now: u64) -> bool {
        match self.table.get_mut(gid) {
            Some(State::Ready(ready)) => {
                ready.move_hint.get_or_insert(now + FRESH_SECS);
                true
            }
            _ => false,
        }
    }

    /// Returns whether [`Destinations::take_stale`] may find any.
    pub(in crate::ipoib) fn has_stale(&self) -> bool {
        let is_one =
            |state: &State<H, P>| matches!(state, State::Ready(ready) if ready.due.is_patient());
        self.table.values().any(is_one)
    }

    /// Notes that packets to `gid` got there at time `at`.
    pub(in crate::ipoib) fn confirm(&mut self, gid: &Gid, at: u64) {
        let due = Due::after(self.policy.refresh, at);
        if let Some(State::Ready(ready)) = self.table.get_mut(gid) {
            if matches!(ready.due, Due::Stale(since) if since < at) {
                ready.due = due;
            }
        }
    }

    /// Notes that there is a path to `gid`: if it was not found, it may be looked for at once.
    pub(in crate::ipoib) fn retry(&mut self, gid: &Gid) {
        if let Some(state @ State::Failed(_)) = self.table.get_mut(gid) {
            invalidate(state);
        }
    }

    /// Lets destinations be looked for at once that were looked for in vain, as the broadcast group
    /// is back: no search for a group ends well without it, and the subnet administrator has
    /// answered. Packets may still go to some groups, by a membership that has ended.
    pub(in crate::ipoib) fn retry_failed(&mut self) {
        for (gid, state) in self.table.iter_mut() {
            let is_in_vain = match state {
                State::Failed(_) => true,
                State::Ready(ready) => gid.is_multicast() && matches!(ready.due, Due::Again(_)),
                State::Resolving(_) => false,
            };
            if is_in_vain {
                invalidate(state);
            }
        }
    }
}
