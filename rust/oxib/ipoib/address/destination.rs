// SPDX-License-Identifier: GPL-2.0-only

//! The states of a destination.

use kernel::prelude::*;

use super::revalidation::SETTLING;
use crate::ipoib::throttle::Throttle;

/// Time until a destination that was not found is looked for again, in seconds; it doubles up to
/// [`Policy::longest_wait`](super::Policy::longest_wait).
pub(super) const RETRY_SECS: u64 = 1;

/// Time until a path is looked for again of which nothing could be learned, in seconds; it doubles
/// with each try, [`DOUBLINGS`] times at most.
pub(in crate::ipoib) const SILENCE_SECS: u64 = 1;
const DOUBLINGS: u32 = 5;

/// Time until a path is looked for again to a neighbour that goes on failing, in seconds; it
/// doubles up to [`DOUBT_MAX_SECS`].
pub(super) const DOUBT_SECS: u64 = 4;
pub(super) const DOUBT_MAX_SECS: u64 = 64;

/// State of a destination.
pub(super) enum State<H, P> {
    /// A search is under way; packets wait for its end.
    Resolving(Resolving<P>),
    /// The path is known.
    Ready(Ready<H>),
    /// The last search failed.
    Failed(Failed),
}

/// A destination that is searched for.
pub(super) struct Resolving<P> {
    /// Only packets for strangers ([`Errand::Stranger`](super::Errand::Stranger)) asked for it.
    pub(super) is_stranger: bool,
    pub(super) waiting: KVec<P>,
    pub(super) ticket: Ticket,
    /// The wait before the search, if one has failed before; in seconds.
    pub(super) waited: u64,
}

/// A destination that was found; times in seconds.
pub(super) struct Ready<H> {
    /// Only packets for strangers ([`Errand::Stranger`](super::Errand::Stranger)) asked for it.
    pub(super) is_stranger: bool,
    pub(super) handle: H,
    pub(super) used: u64,
    /// Time of the last search that found the path.
    pub(super) found: u64,
    /// Time of the next search, if the path is in use.
    pub(super) due: Due,
    /// Failures of the neighbour there.
    pub(super) doubts: Doubts,
    /// Time from which on a report that the destination is elsewhere may be followed up, if there
    /// is one.
    pub(super) move_hint: Option<u64>,
    /// The search that is under way, if the path is being revalidated.
    pub(super) search: Option<Ticket>,
    /// Number of those searches in turn that did not find it.
    pub(super) refused: u32,
    /// Number of searches in turn that learned nothing of it.
    pub(super) tries: u32,
}

/// Time of the next search for a known path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// No search unless an event asks for one.
    Never,
    /// A search at this time.
    At(u64),
    /// A search at once: the path may be wrong.
    Now,
    /// A search once the path is used [`SETTLING`] after that time, unless something shows that it
    /// still leads there.
    Stale(u64),
    /// A search at this time, as the last one learned nothing.
    Again(u64),
}

impl Due {
    /// Returns the time of the next search after one that ended at time `now`.
    pub(super) fn after(refresh: Option<u64>, now: u64) -> Self {
        refresh.map_or(Self::Never, |refresh| Self::At(now + refresh))
    }

    /// Returns whether a path that was used last at time `used` may be looked for again by time
    /// `now`.
    pub(super) fn has_come(self, used: u64, now: u64) -> bool {
        match self {
            Self::Never => false,
            Self::At(due) | Self::Again(due) => due <= now,
            Self::Now => true,
            Self::Stale(since) => used >= since + SETTLING,
        }
    }

    /// Returns when to search after `tries` in turn that learned nothing, the last at time `now`.
    pub(super) fn again(tries: u32, now: u64) -> Self {
        Self::Again(now + (SILENCE_SECS << tries.min(DOUBLINGS)))
    }

    /// Returns whether the subnet administrator is asked slowly: most such paths still lead there,
    /// or it does not answer.
    pub(super) fn is_patient(self) -> bool {
        matches!(self, Self::Stale(_) | Self::Again(_))
    }
}

/// A destination that was not found, with the time of the retry of its path query. The time
/// between retries doubles with each of them. Times are in seconds.
pub(super) struct Failed {
    /// Time before which it is not looked for again.
    pub(super) until: u64,
    /// The wait before that time.
    pub(super) wait: u64,
}

impl Failed {
    /// Creates the state at time `now` after a search that failed, before which packets were
    /// refused for `waited` seconds. They are refused for `longest` seconds at most now.
    pub(super) fn new(now: u64, waited: u64, longest: u64) -> Self {
        let wait = (2 * waited).clamp(RETRY_SECS, longest.max(RETRY_SECS));
        Self {
            until: now + wait,
            wait,
        }
    }
}

/// Failures of a neighbour that make the path to it doubtful. One that is gone while its port is
/// still there fails again every few seconds, and the subnet administrator confirms its path each
/// time.
pub(super) type Doubts = Throttle<DOUBT_SECS, DOUBT_MAX_SECS>;

/// State of the port that a search was begun in: results from another state are stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ipoib) struct Ticket {
    pub(super) generation: u32,
    /// A path is known, and in use, while it is looked for again.
    pub(super) refresh: bool,
}

impl Ticket {
    /// Returns whether a path is known, and in use, while it is looked for again.
    pub(in crate::ipoib) fn is_refresh(self) -> bool {
        self.refresh
    }
}

/// Has the path looked for again, or a failed search repeated at once.
pub(super) fn invalidate<H, P>(state: &mut State<H, P>) {
    match state {
        State::Ready(ready) => ready.due = Due::Now,
        State::Failed(failed) => *failed = Failed { until: 0, wait: 0 },
        State::Resolving(_) => {}
    }
}

/// Adds a packet to those that wait; gives it back if there is no memory.
pub(super) fn hold<P>(waiting: &mut KVec<P>, packet: P) -> core::result::Result<(), P> {
    if waiting.reserve(1, GFP_ATOMIC).is_err() {
        return Err(packet);
    }
    waiting
        .push_within_capacity(packet)
        .map_err(|error| error.0)
}
