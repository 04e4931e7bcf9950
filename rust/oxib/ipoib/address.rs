// SPDX-License-Identifier: GPL-2.0-only

//! The destinations of an interface: resolved, being resolved, or not to be found now.
//!
//! A few packets to a destination that is being resolved wait here. The first of them starts the
//! search, and its end sends them again or drops them.

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    }, //
};

use crate::{
    acm::sources::Source,
    wire::gid::Gid, //
};

mod destination;
mod lookup;
mod revalidation;
mod room;
#[cfg(CONFIG_KUNIT = "y")]
mod tests;

use destination::{
    hold,
    Doubts,
    Due,
    Failed,
    Ready,
    Resolving,
    State, //
};
use room::{
    Count,
    CROWD,
    CROWD_LIFETIME_SECS,
    DESTINATIONS, //
};

pub(super) use destination::{
    Ticket,
    SILENCE_SECS, //
};
pub(super) use revalidation::{
    SETTLING_SPREAD,
    STALE_BATCH,
    STALE_INTERVAL_MS, //
};

/// Packets that wait for one destination (as many as the kernel's own driver holds).
const WAITING: usize = 3;

/// Packets that wait for one group.
const WAITING_FOR_GROUP: usize = 64;

/// Failed searches in turn after which a known path is dropped: an SA that is busy refuses, too.
const REFUSALS: u32 = 3;

/// Time for which a path that was just found is kept whatever a peer says, in seconds.
pub(super) const FRESH_SECS: u64 = 2;

/// Longest time until a group that was not joined is asked for again, in seconds. The kernel's own
/// driver asks twice in that time while packets go there.
const GROUP_RETRY_SECS: u64 = 2;

/// A destination is in use if packets went there in the last so many seconds.
const IN_USE_SECS: u64 = 60;

/// A destination is used just now if packets went there in the last so many seconds.
pub(super) const JUST_USED_SECS: u64 = 2;

/// Time after which an unused destination is forgotten, in seconds.
pub(super) const LIFETIME_SECS: u64 = 120;

/// An address handle as the table keeps it, until the path is forgotten.
pub(super) trait Handle {
    /// The handle as queues keep it: for as long as the device may use it.
    type ForQueue;

    /// Returns the handle for a queue.
    fn for_queue(&self) -> Self::ForQueue;

    /// Returns whether `other` leads to the destination by the same path.
    fn is_same(&self, other: &Self) -> bool;
}

/// Limits of a table of destinations, and lifetimes of its results; times in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// Most destinations for which packets wait at a time.
    pub(super) searches: usize,
    /// Most of them that are searched for strangers.
    pub(super) strangers: usize,
    /// Time after which the path to a destination in use is looked for again, if it may change and
    /// nothing tells.
    pub(super) refresh: Option<u64>,
    /// Longest time until a port that was not found is looked for again.
    pub(super) memory: u64,
}

impl Policy {
    /// Returns the longest time until `gid` is looked for again if it was not found, in seconds.
    fn longest_wait(&self, gid: &Gid) -> u64 {
        match gid.is_multicast() {
            true => self.memory.min(GROUP_RETRY_SECS),
            false => self.memory,
        }
    }
}

/// Outcome of the end of a search.
pub(super) enum End<P> {
    /// The packets that waited, to be sent again or dropped.
    Settled(KVec<P>),
    /// The path has changed: users of the old one have to forget it.
    Changed,
    /// The port has changed since: another search, with this ticket.
    Again(Ticket),
}

/// A destination as it is shown.
pub(super) enum Seen<H> {
    /// A search is under way; so many packets wait.
    Searched(usize),
    /// The path is known.
    Found(H),
    /// The last search failed.
    Lost,
}

/// The destinations of one interface: `H` is an address handle, `P` a packet.
pub(super) struct Destinations<H, P> {
    table: RBTree<Gid, State<H, P>>,
    count: Count,
    searches: Count,
    /// Number of searches that strangers have us begin.
    strangers: usize,
    /// Counts the changes of the port or of the subnet that make results useless.
    generation: u32,
    /// Place in the table at which the next search for room begins.
    hand: Gid,
    policy: Policy,
}

/// The sender that a packet serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Errand {
    /// This node: its own packets need the path.
    Own,
    /// A node that has asked this one something.
    Stranger(Source),
}

impl Errand {
    fn is_stranger(self) -> bool {
        self != Self::Own
    }
}

/// The decision about a packet.
pub(super) enum Verdict<H, P> {
    /// The caller sends the packet with that handle.
    Send(H, P),
    /// The packet waits for the end of a search that is under way.
    Waits,
    /// The packet waits for the end of a search that the caller starts now.
    Search(Ticket),
    /// The packet is dropped.
    Drop(P, Reason),
}

/// Reason for dropping a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Many packets wait for the destination already.
    QueueFull,
    /// The destination was not found a moment ago.
    Unreachable,
    /// No memory, or too many destinations.
    NoMemory,
    /// Many searches are under way already.
    Busy,
}

impl<H: Handle, P> Destinations<H, P> {
    /// Creates an empty table.
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            table: RBTree::new(),
            count: Count::default(),
            searches: Count::default(),
            strangers: 0,
            generation: 0,
            hand: room::FIRST,
            policy,
        }
    }

    /// Returns the number of destinations.
    pub(super) fn len(&self) -> usize {
        self.count.all
    }

    /// Returns whether there is little room for others: [`Self::expire`] makes some then.
    pub(super) fn is_crowded(&self) -> bool {
        self.count.all >= CROWD
    }

    /// Asks for the path of `packet` to `gid` at time `now` (seconds). A stranger's search begins
    /// if `may_search` grants it.
    pub(super) fn request(
        &mut self,
        (gid, errand): (Gid, Errand),
        packet: P,
        may_search: impl FnOnce(Source) -> bool,
        now: u64,
    ) -> Verdict<H::ForQueue, P> {
        let limit = if gid.is_multicast() {
            WAITING_FOR_GROUP
        } else {
            WAITING
        };
        match self.table.get_mut(&gid) {
            None => self.note((gid, errand), packet, may_search),
            Some(State::Ready(ready)) => {
                ready.used = now;
                // One packet of this node's own is enough: when the table is full, the path stays.
                ready.is_stranger &= errand.is_stranger();
                Verdict::Send(ready.handle.for_queue(), packet)
            }
            Some(State::Resolving(resolving)) => {
                // A search that this node wants itself takes no place of the strangers' share.
                if resolving.is_stranger && !errand.is_stranger() {
                    resolving.is_stranger = false;
                    self.strangers -= 1;
                }
                if resolving.waiting.len() >= limit {
                    return Verdict::Drop(packet, Reason::QueueFull);
                }
                match hold(&mut resolving.waiting, packet) {
                    Ok(()) => Verdict::Waits,
                    Err(packet) => Verdict::Drop(packet, Reason::NoMemory),
                }
            }
            Some(State::Failed(failed)) if now < failed.until => {
                Verdict::Drop(packet, Reason::Unreachable)
            }
            Some(State::Failed(failed)) => {
                let waited = failed.wait;
                if !self.may_begin(&gid, errand, may_search) {
                    return Verdict::Drop(packet, Reason::Busy);
                }
                self.begin((gid, errand), packet, waited)
            }
        }
    }

    /// Begins the search for a destination that is not in the table.
    fn note(
        &mut self,
        (gid, errand): (Gid, Errand),
        packet: P,
        may_search: impl FnOnce(Source) -> bool,
    ) -> Verdict<H::ForQueue, P> {
        // Nothing is kept of what is refused.
        if !self.may_begin(&gid, errand, may_search) {
            return Verdict::Drop(packet, Reason::Busy);
        }
        self.make_room(&gid);
        let node = match RBTreeNodeReservation::new(GFP_ATOMIC) {
            Ok(node) if self.count.has_room(&gid, DESTINATIONS) => node,
            _ => return Verdict::Drop(packet, Reason::NoMemory),
        };
        // A placeholder for `begin`. It stays if that has no memory, and then forbids no retry.
        let state = State::Failed(Failed { until: 0, wait: 0 });
        self.table.insert(node.into_node(gid, state));
        self.count.add(&gid);
        self.begin((gid, errand), packet, 0)
    }

    /// Returns whether a search for `gid` may begin.
    fn may_begin(
        &self,
        gid: &Gid,
        errand: Errand,
        may_search: impl FnOnce(Source) -> bool,
    ) -> bool {
        let has_room = self.searches.has_room(gid, self.policy.searches);
        has_room
            && match errand {
                Errand::Own => true,
                Errand::Stranger(source) => {
                    self.strangers < self.policy.strangers && may_search(source)
                }
            }
    }

    /// Begins the search for a destination in the table, for which `packet` waits.
    fn begin(
        &mut self,
        (gid, errand): (Gid, Errand),
        packet: P,
        waited: u64,
    ) -> Verdict<H::ForQueue, P> {
        let mut waiting = KVec::new();
        // What can fail comes first: the state changes only once the packet is kept.
        if let Err(packet) = hold(&mut waiting, packet) {
            return Verdict::Drop(packet, Reason::NoMemory);
        }
        let ticket = Ticket {
            generation: self.generation,
            refresh: false,
        };
        if let Some(state) = self.table.get_mut(&gid) {
            *state = State::Resolving(Resolving {
                is_stranger: errand.is_stranger(),
                waiting,
                ticket,
                waited,
            });
            self.searches.add(&gid);
            self.strangers += usize::from(errand.is_stranger());
        }
        Verdict::Search(ticket)
    }

    /// Returns whether the result of a search is still wanted.
    pub(super) fn is_wanted(&self, gid: &Gid, ticket: Ticket) -> bool {
        match self.table.get(gid) {
            Some(State::Resolving(resolving)) => resolving.ticket == ticket,
            Some(State::Ready(ready)) => ready.search == Some(ticket),
            Some(State::Failed(_)) | None => false,
        }
    }

    /// Ends a search at time `now`. A destination that was forgotten meanwhile stays so, and a
    /// result from before a change of the port is of no use. `ENOMEM` and `EAGAIN` say nothing
    /// about a path that is known; other errors do, when they come [`REFUSALS`] times in turn.
    pub(super) fn resolved(
        &mut self,
        gid: &Gid,
        ticket: Ticket,
        found: Result<H>,
        now: u64,
    ) -> End<P> {
        if !self.is_wanted(gid, ticket) {
            return End::Settled(KVec::new());
        }
        let current = Ticket {
            generation: self.generation,
            ..ticket
        };
        let longest_wait = self.policy.longest_wait(gid);
        let due = Due::after(self.policy.refresh, now);
        let Some(state) = self.table.get_mut(gid) else {
            return End::Settled(KVec::new());
        };
        match state {
            // The answer may be of the subnet before the change: the packets wait for another one.
            State::Resolving(resolving) if ticket != current => {
                resolving.ticket = current;
                End::Again(current)
            }
            State::Resolving(resolving) => {
                self.searches.remove(gid);
                self.strangers -= usize::from(resolving.is_stranger);
                let waiting = core::mem::take(&mut resolving.waiting);
                *state = match found {
                    Ok(handle) => State::Ready(Ready {
                        is_stranger: resolving.is_stranger,
                        handle,
                        used: now,
                        found: now,
                        due,
                        doubts: Doubts::default(),
                        move_hint: None,
                        search: None,
                        refused: 0,
                        tries: 0,
                    }),
                    Err(_) => State::Failed(Failed::new(now, resolving.waited, longest_wait)),
                };
                End::Settled(waiting)
            }
            State::Ready(ready) if ticket != current => {
                ready.search = Some(current);
                End::Again(current)
            }
            State::Ready(ready) => {
                ready.search = None;
                let is_refused = !matches!(found, Ok(_) | Err(ENOMEM | EAGAIN));
                match found {
                    // An equal path keeps the old handle: no queue has to forget it, so no packet
                    // misses.
                    Ok(handle) => {
                        ready.due = due;
                        ready.found = now;
                        ready.refused = 0;
                        ready.tries = 0;
                        if !handle.is_same(&ready.handle) {
                            ready.handle = handle;
                            ready.doubts = Doubts::default();
                            return End::Changed;
                        }
                    }
                    Err(_) if is_refused && ready.refused + 1 >= REFUSALS => {
                        // The back-off begins at its minimum: the path was good until this search.
                        *state = State::Failed(Failed::new(now, 0, longest_wait));
                        return End::Changed;
                    }
                    Err(_) => {
                        ready.due = Due::again(ready.tries, now);
                        ready.tries = ready.tries.saturating_add(1);
                        ready.refused += u32::from(is_refused);
                    }
                }
                End::Settled(KVec::new())
            }
            State::Failed(_) => End::Settled(KVec::new()),
        }
    }

    /// Notes that packets were sent to `gid` up to time `until`.
    pub(super) fn used(&mut self, gid: &Gid, until: u64) {
        if let Some(State::Ready(ready)) = self.table.get_mut(gid) {
            ready.used = ready.used.max(until);
        }
    }

    /// Notes that packets went to `gid` by a connection up to time `until`. Only packets of this
    /// node's own begin one.
    pub(super) fn used_by_connection(&mut self, gid: &Gid, until: u64) {
        if let Some(State::Ready(ready)) = self.table.get_mut(gid) {
            ready.used = ready.used.max(until);
            ready.is_stranger = false;
        }
    }

    /// Forgets destinations that were not used for [`LIFETIME_SECS`], those that may be wrong and
    /// are not in use and, if there is little room for others, those that this node did not ask for
    /// and peers that were not used for [`CROWD_LIFETIME_SECS`].
    /// Adds forgotten ones to `gids` and `handles`, as far as both have room.
    pub(super) fn expire(&mut self, now: u64, gids: &mut KVec<Gid>, handles: &mut KVec<H>) {
        let in_use = Self::in_use_since(now);
        let is_crowded = self.is_crowded();
        let idle = |gid: &Gid, state: &State<H, P>| match state {
            State::Ready(ready)
                if is_crowded && ready.is_stranger && ready.used + FRESH_SECS <= now =>
            {
                true
            }
            State::Ready(ready) => {
                let may_be_wrong = matches!(ready.due, Due::Now | Due::Stale(_));
                // With a path to a group goes a membership, which costs the SA requests.
                let lifetime = match is_crowded && !gid.is_multicast() {
                    true => CROWD_LIFETIME_SECS,
                    false => LIFETIME_SECS,
                };
                ready.used + lifetime <= now || (may_be_wrong && ready.used < in_use)
            }
            State::Failed(failed) => failed.until + LIFETIME_SECS <= now,
            State::Resolving(_) => false,
        };
        let mut cursor = self.table.cursor_front_mut();
        while let Some(current) = cursor {
            if gids.len() == gids.capacity() || handles.len() == handles.capacity() {
                return;
            }
            let (gid, state) = current.current();
            if !idle(gid, state) {
                cursor = current.move_next();
                continue;
            }
            let (next, node) = current.remove_current();
            cursor = next;
            let (gid, state) = node.to_key_value();
            self.count.remove(&gid);
            let _ = gids.push_within_capacity(gid);
            if let State::Ready(ready) = state {
                let _ = handles.push_within_capacity(ready.handle);
            }
        }
    }

    /// Forgets the path to `gid`, which is returned for the caller to drop.
    pub(super) fn forget(&mut self, gid: &Gid) -> Option<H> {
        // A search under way stays: packets wait for its end.
        if !matches!(self.table.get(gid), Some(State::Ready(_))) {
            return None;
        }
        let (_, state) = self.table.remove_node(gid)?.to_key_value();
        self.count.remove(gid);
        match state {
            State::Ready(ready) => Some(ready.handle),
            State::Resolving(_) | State::Failed(_) => None,
        }
    }

    /// Forgets all destinations that are found or failed, and returns them for the caller to drop:
    /// the port has changed. Searches go on, to be done again when they end.
    pub(super) fn forget_settled(&mut self) -> Self {
        // `take_all` raises the generation, so the searches that stay are repeated when they end.
        let mut settled = self.take_all();
        let mut cursor = settled.table.cursor_front_mut();
        while let Some(current) = cursor {
            if let (&gid, State::Resolving(resolving)) = current.current() {
                self.strangers += usize::from(resolving.is_stranger);
                let (next, node) = current.remove_current();
                cursor = next;
                self.table.insert(node);
                for (from, to) in [
                    (&mut settled.count, &mut self.count),
                    (&mut settled.searches, &mut self.searches),
                ] {
                    from.remove(&gid);
                    to.add(&gid);
                }
            } else {
                cursor = current.move_next();
            }
        }
        settled
    }

    /// Forgets everything at once, searches included.
    pub(super) fn take_all(&mut self) -> Self {
        // Not from 0: the ticket of a search under way must match none of the new table.
        let generation = self.generation.wrapping_add(1);
        let fresh = Self {
            generation,
            ..Self::new(self.policy)
        };
        core::mem::replace(self, fresh)
    }

    /// Adds to `out`, as far as it has room, the destinations from `from` on, as they are shown.
    /// Returns the destination to go on at, if there are more.
    pub(super) fn list(
        &mut self,
        from: &Gid,
        out: &mut KVec<(Gid, Seen<H::ForQueue>)>,
    ) -> Option<Gid> {
        let mut cursor = self.table.cursor_lower_bound_mut(from);
        while let Some(current) = cursor {
            let (&gid, state) = current.current();
            if out.len() == out.capacity() {
                return Some(gid);
            }
            let seen = match state {
                State::Resolving(resolving) => Seen::Searched(resolving.waiting.len()),
                State::Ready(ready) => Seen::Found(ready.handle.for_queue()),
                State::Failed(_) => Seen::Lost,
            };
            let _ = out.push_within_capacity((gid, seen));
            cursor = current.move_next();
        }
        None
    }

    /// Returns the number of packets that wait for searches.
    pub(super) fn waiting(&self) -> usize {
        self.table
            .values()
            .map(|state| match state {
                State::Resolving(resolving) => resolving.waiting.len(),
                _ => 0,
            })
            .sum()
    }
}
