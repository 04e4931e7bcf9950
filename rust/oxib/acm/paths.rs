// SPDX-License-Identifier: GPL-2.0-only

//! The paths of a port: what the subnet administrator (SA) said of each.
//!
//! The first that wants a path asks the SA, the others wait for that. The answer is kept for a
//! while, and until an event of the port invalidates it. All interfaces of the port share it, and
//! what connections and exchanges of queue pairs need is among it.
//!
//! Negative results are not cached; callers decide when to retry.
//!
//! Times are in milliseconds.

use kernel::{
    alloc::flags::__GFP_NOWARN,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    }, //
};

use crate::{
    rdma::path::PathRecord,
    wire::{
        acm::family::PATHS,
        gid::Gid,
        pkey::Pkey, //
    }, //
};

mod partitions;
mod tests;

pub(crate) use partitions::Partitions;

/// Time for which a path is believed of which nothing was heard: a day, in milliseconds. Events
/// of the port and failures of its users report changes, so it is asked for again only for the
/// sake of what was missed.
pub(crate) const LIFETIME_MS: u64 = 86_400_000;

/// Time for which a path is kept at least, in milliseconds, when there is no room for another one.
const CROWDED: u64 = 900_000;

/// Most paths that are looked at without a pause, as the table is locked meanwhile: to make room
/// for one, or for a program that wants to see or to forget them.
const LOOKS: usize = 128;

/// Most paths of a port that are for services, which any program of the node makes known by
/// connecting: IP keeps the rest. With `acm_programs=shared` the paths of programs name no service,
/// and are counted and evicted as those of IP are.
const SERVICES: usize = PATHS / 2;

/// Most waiters of a port, for all its paths together. Any program of the node makes more of them
/// by connecting.
const WAITERS: usize = 16_384;

/// Key of a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    /// GID of the destination port.
    pub(crate) dgid: Gid,
    /// GID of the source port.
    pub(crate) sgid: Gid,
    /// P_Key. Its membership bit does not count in look-ups by partition.
    pub(crate) pkey: u16,
    /// Traffic class that the SA is asked with.
    pub(crate) traffic_class: u8,
    /// Service, if a program asked.
    pub(crate) service: Option<Service>,
}

/// Service that a program wants a path for. The subnet administrator may choose by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Service {
    /// The service ID that the program names.
    pub(crate) id: u64,
    /// The class of the quality of service.
    pub(crate) qos_class: Option<u16>,
}

impl Key {
    /// The lowest key.
    pub(crate) const FIRST: Self = Self::first_to(Gid::ZERO);

    /// Returns the key of the path that a query asks for.
    pub(crate) fn of(wanted: &PathRecord) -> Self {
        Self {
            dgid: wanted.dgid(),
            sgid: wanted.sgid(),
            pkey: wanted.pkey(),
            traffic_class: wanted.traffic_class(),
            service: None,
        }
    }

    /// Returns the first key to `dgid` in the order of keys, in which all paths to a destination
    /// stand together.
    const fn first_to(dgid: Gid) -> Self {
        Self {
            dgid,
            sgid: Gid::ZERO,
            pkey: 0,
            traffic_class: 0,
            service: None,
        }
    }

    /// Returns the key of the path for a program's service.
    pub(crate) fn for_service(self, service: Option<Service>) -> Self {
        Self { service, ..self }
    }

    /// Returns whether the path is in one of these partitions.
    fn is_in(&self, partitions: &Partitions) -> bool {
        partitions.has(Pkey::new(self.pkey))
    }
}

/// A path that is known.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    /// Path record that the SA returned.
    pub(crate) record: PathRecord,
    /// Time of that answer, in milliseconds.
    pub(crate) since: u64,
}

/// State of a path, with waiters of type `W`.
enum State<W> {
    /// The SA is asked.
    Asked { number: u64, waiting: KVec<W> },
    /// The SA has answered.
    Known(Path),
}

/// The duty to ask the SA, and to say what came of it: [`Paths::ended`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Duty {
    key: Key,
    number: u64,
}

/// Outcome of a claim to a path.
pub(crate) enum Claim<W> {
    /// The path is known.
    Known(PathRecord, W),
    /// The waiter asks the SA, with this duty; `None` if there is no room to keep what comes of it,
    /// or for another waiter.
    Ask(Option<Duty>, W),
    /// The SA is being asked for the path, and the waiter is kept until the answer.
    Waits,
}

/// Outcome of a part of a walk through the paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Walk<R> {
    /// The result, which ends the walk.
    Found(R),
    /// The walk goes on behind this key.
    Pause(Key),
    /// There are no more paths.
    End,
}

/// The paths of a port.
pub(crate) struct Paths<W> {
    table: RBTree<Key, State<W>>,
    count: usize,
    /// Number of those that are for services.
    services: usize,
    /// Number of waiters, of all paths.
    waiters: usize,
    last: u64,
    /// The key at which the search for a path to evict goes on.
    hand: Key,
}

impl<W> Paths<W> {
    /// Creates an empty table.
    pub(crate) fn new() -> Self {
        Self {
            table: RBTree::new(),
            count: 0,
            services: 0,
            waiters: 0,
            last: 0,
            hand: Key::FIRST,
        }
    }

    /// Wants a path, for `waiter`.
    pub(crate) fn claim(&mut self, key: Key, waiter: W, now: u64) -> Claim<W> {
        match self.table.get_mut(&key) {
            Some(State::Known(path)) if now < path.since + LIFETIME_MS => {
                return Claim::Known(path.record, waiter);
            }
            Some(State::Asked { waiting, .. }) => {
                let has_room =
                    self.waiters < WAITERS && waiting.reserve(1, GFP_ATOMIC | __GFP_NOWARN).is_ok();
                if !has_room {
                    // The caller asks alone, or not at all.
                    return Claim::Ask(None, waiter);
                }
                let _ = waiting.push_within_capacity(waiter);
                self.waiters += 1;
                return Claim::Waits;
            }
            Some(State::Known(_)) | None => {}
        }
        Claim::Ask(self.begin(key, now), waiter)
    }

    /// Notes that the SA is asked.
    fn begin(&mut self, key: Key, now: u64) -> Option<Duty> {
        self.last += 1;
        let number = self.last;
        let asked = State::Asked {
            number,
            waiting: KVec::new(),
        };
        if let Some(state) = self.table.get_mut(&key) {
            *state = asked;
            return Some(Duty { key, number });
        }
        if !self.has_room(&key) {
            self.make_room(&key, now);
        }
        let node = RBTreeNodeReservation::new(GFP_ATOMIC).ok()?;
        if !self.has_room(&key) {
            return None;
        }
        self.table.insert(node.into_node(key, asked));
        self.count += 1;
        self.services += usize::from(key.service.is_some());
        Some(Duty { key, number })
    }

    fn has_room(&self, key: &Key) -> bool {
        self.count < PATHS && (key.service.is_none() || self.services < SERVICES)
    }

    /// Evicts a path that has been known for long, so that there may be room for `key`. Any program
    /// makes paths for services known, so these take the place of each other alone, and never of
    /// one that names no service. Each call goes on with the paths behind those of the last one.
    fn make_room(&mut self, key: &Key, now: u64) {
        let is_for_all = key.service.is_none();
        let mut looks = 0;
        // To the last path, and on from the first.
        for _ in 0..2 {
            let mut cursor = self.table.cursor_lower_bound_mut(&self.hand);
            while let Some(current) = cursor {
                let (other, state) = current.current();
                self.hand = *other;
                if looks == LOOKS {
                    return;
                }
                looks += 1;
                let is_old = matches!(state, State::Known(path) if path.since + CROWDED <= now);
                if is_old && (is_for_all || other.service.is_some()) {
                    self.count -= 1;
                    self.services -= usize::from(other.service.is_some());
                    // A known path has no waiters, so it may be dropped under the table's lock.
                    let _ = current.remove_current();
                    return;
                }
                cursor = current.move_next();
            }
            self.hand = Key::FIRST;
        }
    }

    /// Ends a query with the SA's answer, or without one. Returns the waiters: they claim the
    /// path again.
    pub(crate) fn ended(&mut self, duty: Duty, found: Option<&PathRecord>, now: u64) -> KVec<W> {
        let Some(State::Asked { number, waiting }) = self.table.get_mut(&duty.key) else {
            return KVec::new();
        };
        if *number != duty.number {
            // What was asked before an event is of no use.
            return KVec::new();
        }
        let waiting = core::mem::take(waiting);
        self.waiters -= waiting.len();
        match found {
            Some(record) => {
                let path = Path {
                    record: *record,
                    since: now,
                };
                if let Some(state) = self.table.get_mut(&duty.key) {
                    *state = State::Known(path);
                }
            }
            None => self.remove(&duty.key),
        }
        waiting
    }

    fn remove(&mut self, key: &Key) {
        if self.table.remove(key).is_some() {
            self.count -= 1;
            self.services -= usize::from(key.service.is_some());
        }
    }

    /// Forgets the paths of which `is_gone` is true, among the first `most` from `from` on: they
    /// are asked for again, also if the SA is being asked.
    fn forget(&mut self, from: &Key, most: usize, is_gone: impl Fn(&Key) -> bool) -> Gone<W> {
        let (mut known, mut table, mut rest) = (0, RBTree::new(), None);
        let mut cursor = self.table.cursor_lower_bound_mut(from);
        let mut looks = 0;
        while let Some(current) = cursor {
            let (key, state) = current.current();
            if looks == most {
                rest = Some(*key);
                break;
            }
            looks += 1;
            if !is_gone(key) {
                cursor = current.move_next();
                continue;
            }
            match state {
                State::Known(_) => known += 1,
                State::Asked { waiting, .. } => self.waiters -= waiting.len(),
            }
            self.services -= usize::from(key.service.is_some());
            let (next, node) = current.remove_current();
            cursor = next;
            self.count -= 1;
            // Moved, not dropped: a waiter's end takes locks, and the caller holds the table's.
            table.insert(node);
        }
        Gone { known, table, rest }
    }

    /// Forgets all: the subnet, the port's GIDs or its partitions have changed.
    pub(crate) fn forget_all(&mut self) -> Gone<W> {
        self.forget(&Key::FIRST, usize::MAX, |_| true)
    }

    /// Forgets those in some partitions, among at most [`LOOKS`] paths from `from` on.
    pub(crate) fn forget_in(&mut self, from: &Key, partitions: &Partitions) -> Gone<W> {
        self.forget(from, LOOKS, |key| key.is_in(partitions))
    }

    /// Forgets what is known of the paths to `dgid`, which may be wrong. Returns how many there
    /// were. Looks at no other paths: each neighbour that fails leads here.
    pub(crate) fn forget_to(&mut self, dgid: &Gid) -> usize {
        let mut known = 0;
        let mut cursor = self.table.cursor_lower_bound_mut(&Key::first_to(*dgid));
        while let Some(current) = cursor {
            let (key, state) = current.current();
            if key.dgid != *dgid {
                break;
            }
            if matches!(state, State::Asked { .. }) {
                cursor = current.move_next();
                continue;
            }
            known += 1;
            self.count -= 1;
            self.services -= usize::from(key.service.is_some());
            // Known paths have no waiters, so they may be dropped under the table's lock.
            (cursor, _) = current.remove_current();
        }
        known
    }

    /// Adds the number of known paths in some partitions to `count`, for a part of the walk behind
    /// `after`.
    pub(crate) fn count_known(
        &mut self,
        after: Option<&Key>,
        partitions: &Partitions,
        count: &mut usize,
    ) -> Walk<()> {
        self.walk(after, partitions, |_, _| {
            *count += 1;
            None
        })
    }

    /// Looks for the first path that is known behind `after`, in some partitions.
    pub(crate) fn next(
        &mut self,
        after: Option<&Key>,
        partitions: &Partitions,
    ) -> Walk<(Key, Path)> {
        self.walk(after, partitions, |key, path| Some((*key, *path)))
    }

    /// Walks through at most [`LOOKS`] paths behind `after`, until `use_it` returns something for
    /// one that is known, in some partitions.
    fn walk<R>(
        &mut self,
        after: Option<&Key>,
        partitions: &Partitions,
        mut use_it: impl FnMut(&Key, &Path) -> Option<R>,
    ) -> Walk<R> {
        if partitions.is_empty() {
            return Walk::End;
        }
        let mut cursor = match after {
            Some(after) => self.table.cursor_lower_bound_mut(after),
            None => self.table.cursor_front_mut(),
        };
        let mut looks = 0;
        while let Some(current) = cursor {
            let (key, state) = current.current();
            match state {
                State::Known(path) if Some(key) != after && key.is_in(partitions) => {
                    if let Some(result) = use_it(key, path) {
                        return Walk::Found(result);
                    }
                }
                State::Known(_) | State::Asked { .. } => {}
            }
            looks += 1;
            if looks == LOOKS {
                return Walk::Pause(*key);
            }
            cursor = current.move_next();
        }
        Walk::End
    }
}

/// Forgotten paths, to be processed without the lock of the table.
pub(crate) struct Gone<W> {
    /// Number of paths that were known.
    pub(crate) known: usize,
    /// The first path that was not looked at, if there is one.
    pub(crate) rest: Option<Key>,
    table: RBTree<Key, State<W>>,
}

impl<W> Gone<W> {
    /// Passes on each waiter for one of the paths; waiters claim theirs again.
    pub(crate) fn for_each_waiting(mut self, mut use_it: impl FnMut(W)) {
        let mut cursor = self.table.cursor_front_mut();
        while let Some(current) = cursor {
            let (next, node) = current.remove_current();
            cursor = next;
            if let (_, State::Asked { waiting, .. }) = node.to_key_value() {
                waiting.into_iter().for_each(&mut use_it);
            }
        }
    }
}
