// SPDX-License-Identifier: GPL-2.0-only

//! State of the exchange with each peer. Policy alone, without messages or a clock.
//!
//! A limited number of exchanges is under way at a time; the others wait in order. A peer that
//! does not answer is not asked again for a while. Look-ups for it fail at once meanwhile.
//!
//! Times are in milliseconds.

use core::net::{
    IpAddr,
    Ipv4Addr, //
};

use kernel::{
    alloc::KVVec,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    }, //
};

use super::Failure;
use crate::{
    acm::fifo::Fifo,
    wire::{
        gid::Gid,
        qpn::Qpn,
        resolution::Request, //
    }, //
};

mod tests;

/// Most exchanges under way.
pub(super) const WINDOW: usize = 64;

/// Most peers that are remembered, and most exchanges that wait for their turn: those with peers
/// that have moved since wait, too.
const PEERS: usize = 16_384;

/// Time until a peer that did not answer is asked again: one that has answered before, and one
/// that never has, or to which no path was found. So long may a peer be back without being found.
const RETRY_MS: u64 = 1_000;
const MEMORY_MS: u64 = 4_000;

/// Time for which an answer is believed, whatever the stack thinks of the peer.
const FRESH_MS: u64 = 3_000;

/// Time after which nothing is known any more of a peer that nobody looks for.
const LIFETIME_MS: u64 = 1_200_000;

/// An exchange that is under way, or is to begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::acm) struct PendingExchange {
    /// The asker's and the target's address.
    pub(in crate::acm) request: Request,
    /// The GID of the peer's port.
    pub(in crate::acm) gid: Gid,
    number: u64,
}

/// A peer that was looked for, with the state of its exchange.
struct Peer<P> {
    request: Request,
    gid: Gid,
    state: State<P>,
    /// The queue pair in its last answer.
    qpn: Option<Qpn>,
}

/// State of the exchange with a peer.
enum State<P> {
    /// Under way, or waiting for its turn.
    Asked { number: u64, held: Option<P> },
    /// Answered `at` this time.
    Answered { at: u64 },
    /// The exchange failed; the peer is not to be asked before this time.
    Failed { until: u64, why: Failure },
}

/// Outcome of looking a peer up.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Verdict<P> {
    /// The caller begins this exchange.
    Begin(PendingExchange),
    /// An exchange is under way or queued, and its end is reported.
    Waits,
    /// The peer does not answer.
    Failed(Option<P>),
    /// The interface is down, all peers in the table are being asked, the queue is full, or memory
    /// is short.
    Busy(Option<P>),
}

/// The end of an exchange.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct End<P> {
    /// The packet that waited for the end.
    pub(super) held: Option<P>,
    /// The peer's queue pair is another one than it was before.
    pub(super) is_new: bool,
}

/// The peers of an interface: `P` is a packet that waits.
pub(super) struct Peers<P> {
    table: RBTree<IpAddr, Peer<P>>,
    count: usize,
    fifo: Fifo<PendingExchange>,
    queued: usize,
    under_way: usize,
    last: u64,
    /// The last exchange that began before all were forgotten: those are none of ours any more.
    before: u64,
    /// The address at which the search for a peer to evict goes on.
    hand: IpAddr,
    /// The interface is up, so that exchanges may begin.
    is_open: bool,
}

impl<P> Peers<P> {
    /// Creates an empty table, in which no exchange may begin yet.
    pub(super) fn new() -> Self {
        Self {
            table: RBTree::new(),
            count: 0,
            fifo: Fifo::default(),
            queued: 0,
            under_way: 0,
            last: 0,
            before: 0,
            hand: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            is_open: false,
        }
    }

    /// Lets exchanges begin, as the interface is up.
    pub(super) fn open(&mut self) {
        self.is_open = true;
    }

    /// Returns the number of exchanges under way, and of those queued.
    pub(super) fn in_flight(&self) -> (usize, usize) {
        (self.under_way, self.queued)
    }

    /// Looks for the peer of `request`, which is at `gid`; `held` waits for the end.
    pub(super) fn ask(
        &mut self,
        request: Request,
        gid: Gid,
        held: Option<P>,
        now: u64,
    ) -> Verdict<P> {
        if !self.is_open {
            return Verdict::Busy(held);
        }
        let address = request.target;
        // Of one that has moved nothing is known.
        if self.table.get(&address).is_some_and(|peer| peer.gid != gid) {
            self.remove(&address);
        }
        match self.table.get_mut(&address).map(|peer| &mut peer.state) {
            None => self.note(request, gid, held),
            Some(State::Asked { held: waiting, .. }) => {
                // What waits already asks for the same.
                if waiting.is_none() {
                    *waiting = held;
                }
                Verdict::Waits
            }
            Some(State::Failed { until, .. }) if now < *until => Verdict::Failed(held),
            Some(State::Failed { .. } | State::Answered { .. }) => self.begin(request, gid, held),
        }
    }

    fn note(&mut self, request: Request, gid: Gid, held: Option<P>) -> Verdict<P> {
        // Unless all are being asked.
        if self.count >= PEERS && self.under_way + self.queued < self.count {
            self.make_room();
        }
        let node = match RBTreeNodeReservation::new(GFP_ATOMIC) {
            Ok(node) if self.count < PEERS => node,
            _ => return Verdict::Busy(held),
        };
        let peer = Peer {
            request,
            gid,
            state: State::Failed {
                until: 0,
                why: Failure::Silent,
            },
            qpn: None,
        };
        self.table.insert(node.into_node(request.target, peer));
        self.count += 1;
        self.begin(request, gid, held)
    }

    /// Forgets a peer that is not being asked, another one each time: all that is lost is
    /// that the peer is watched.
    fn make_room(&mut self) {
        for _ in 0..2 {
            let mut cursor = self.table.cursor_lower_bound_mut(&self.hand);
            while let Some(current) = cursor {
                let (address, peer) = current.current();
                if !matches!(peer.state, State::Asked { .. }) {
                    self.hand = *address;
                    let _ = current.remove_current();
                    self.count -= 1;
                    return;
                }
                cursor = current.move_next();
            }
            // From the beginning.
            self.hand = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        }
    }

    /// Begins the exchange with a peer in the table, or queues it.
    fn begin(&mut self, request: Request, gid: Gid, held: Option<P>) -> Verdict<P> {
        let pending = PendingExchange {
            request,
            gid,
            number: self.last + 1,
        };
        let starts = self.under_way < WINDOW;
        if !starts && (self.queued >= PEERS || self.fifo.push(pending).is_err()) {
            return Verdict::Busy(held);
        }
        self.last += 1;
        if let Some(peer) = self.table.get_mut(&request.target) {
            peer.request = request;
            peer.state = State::Asked {
                number: pending.number,
                held,
            };
        }
        if starts {
            self.under_way += 1;
            Verdict::Begin(pending)
        } else {
            self.queued += 1;
            Verdict::Waits
        }
    }

    /// Returns whether the result of an exchange is still wanted.
    pub(super) fn is_wanted(&self, pending: &PendingExchange) -> bool {
        self.table
            .get(&pending.request.target)
            .is_some_and(|peer| match peer.state {
                State::Asked { number, .. } => number == pending.number,
                _ => false,
            })
    }

    /// Ends an exchange that was under way: the peer has that queue pair, or has not answered.
    /// `None` if the outcome is not wanted any more.
    pub(super) fn ended(
        &mut self,
        pending: &PendingExchange,
        found: core::result::Result<Qpn, Failure>,
        now: u64,
    ) -> Option<End<P>> {
        // `take_all` starts the count at 0: what is older is not in it.
        if pending.number <= self.before {
            return None;
        }
        self.under_way = self.under_way.saturating_sub(1);
        if !self.is_wanted(pending) {
            return None;
        }
        let peer = self.table.get_mut(&pending.request.target)?;
        let next = match found {
            Ok(_) => State::Answered { at: now },
            Err(why) => {
                // One that was there a moment ago may be there again in a moment, but all of a
                // subnet are without a path at the same time.
                let is_brief =
                    peer.qpn.is_some() && !matches!(why, Failure::NoPath | Failure::SaSilent);
                let wait = if is_brief { RETRY_MS } else { MEMORY_MS };
                State::Failed {
                    until: now + wait,
                    why,
                }
            }
        };
        let State::Asked { held, .. } = core::mem::replace(&mut peer.state, next) else {
            return None;
        };
        let is_new = found.is_ok() && peer.qpn.is_some() && peer.qpn != found.ok();
        if found.is_ok() {
            peer.qpn = found.ok();
        }
        Some(End { held, is_new })
    }

    /// Notes that the peer that `request` asks for has said itself that it has the queue pair
    /// `qpn` at `gid`: it is looked after from now on like one that was asked.
    pub(super) fn notified(&mut self, request: Request, gid: Gid, qpn: Qpn, now: u64) {
        let peer = Peer {
            request,
            gid,
            state: State::Answered { at: now },
            qpn: Some(qpn),
        };
        match self.table.get_mut(&request.target) {
            // It answers in a moment.
            Some(known) if matches!(known.state, State::Asked { .. }) => {}
            Some(known) => *known = peer,
            None => self.insert(peer),
        }
    }

    /// Notes that the cache knows the peer that `request` asks for from before: it is looked
    /// after, too.
    pub(super) fn known(&mut self, request: Request, gid: Gid, qpn: Qpn, now: u64) {
        match self.table.get_mut(&request.target) {
            // The cache kept the queue pair when the peer could not be asked, or the peer is being
            // asked for the first time. A wait goes on.
            Some(peer) if peer.gid == gid => peer.qpn = peer.qpn.or(Some(qpn)),
            Some(_) => {}
            None => {
                // Not fresh: what is known from before is checked by the next look.
                let at = now.saturating_sub(FRESH_MS);
                self.insert(Peer {
                    request,
                    gid,
                    state: State::Answered { at },
                    qpn: Some(qpn),
                });
            }
        }
    }

    /// Adds a peer to look after, unless memory is short or there are too many: those that we
    /// look for ourselves have to find room.
    fn insert(&mut self, peer: Peer<P>) {
        if !self.is_open || self.count >= PEERS / 2 {
            return;
        }
        if let Ok(node) = RBTreeNodeReservation::new(GFP_ATOMIC) {
            self.table.insert(node.into_node(peer.request.target, peer));
            self.count += 1;
        }
    }

    /// Takes the next exchange of the queue, if one may begin.
    pub(super) fn next(&mut self) -> Option<PendingExchange> {
        while self.under_way < WINDOW {
            let pending = self.fifo.pop()?;
            self.queued -= 1;
            if self.is_wanted(&pending) {
                self.under_way += 1;
                return Some(pending);
            }
        }
        None
    }

    /// Returns whether an exchange with the peer with that address is under way, or waits for its
    /// turn.
    pub(super) fn is_asked(&self, address: &IpAddr) -> bool {
        self.table
            .get(address)
            .is_some_and(|peer| matches!(peer.state, State::Asked { .. }))
    }

    /// Returns why the last exchange with that peer failed, or was called off, unless the peer has
    /// answered.
    pub(super) fn failure(&self, address: &IpAddr) -> Option<Failure> {
        match self.table.get(address).map(|peer| &peer.state) {
            Some(State::Answered { .. }) => None,
            Some(State::Failed { why, .. }) => Some(*why),
            // Peers that were never found are forgotten as the interface goes down.
            Some(State::Asked { .. }) | None => Some(Failure::NotSent),
        }
    }

    /// Notes in `out`, as far as it has room, the peers of which an exchange has come to an end.
    pub(super) fn settled(&self, out: &mut KVVec<(IpAddr, Gid)>) {
        for (address, peer) in self.table.iter() {
            let is_settled = !matches!(peer.state, State::Asked { .. });
            if is_settled && out.push_within_capacity((*address, peer.gid)).is_err() {
                return;
            }
        }
    }

    /// Returns whether the peer with that address answered a moment ago.
    pub(super) fn is_fresh(&self, address: &IpAddr, now: u64) -> bool {
        self.table
            .get(address)
            .is_some_and(|peer| match peer.state {
                State::Answered { at } => now < at + FRESH_MS,
                _ => false,
            })
    }

    /// Returns the number of peers.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Notes in `out`, as far as it has room, the peers that were found, and may be elsewhere or
    /// not there at all by now.
    pub(super) fn stale(&self, now: u64, out: &mut KVVec<(Request, Gid)>) {
        for peer in self.table.values() {
            let is_stale = match peer.state {
                State::Answered { at } => at + FRESH_MS <= now,
                State::Failed { until, .. } => peer.qpn.is_some() && until <= now,
                State::Asked { .. } => false,
            };
            if is_stale && out.push_within_capacity((peer.request, peer.gid)).is_err() {
                return;
            }
        }
    }

    /// Forgets the peer with that address, unless it is being asked. Whether there was one.
    pub(super) fn forget(&mut self, address: &IpAddr) -> bool {
        let settled = self
            .table
            .get(address)
            .is_some_and(|peer| !matches!(peer.state, State::Asked { .. }));
        if settled {
            self.remove(address);
        }
        settled
    }

    fn remove(&mut self, address: &IpAddr) {
        if self.table.remove(address).is_some() {
            self.count -= 1;
        }
    }

    /// Forgets peers that nobody has looked for in a long time.
    pub(super) fn age(&mut self, now: u64) {
        let is_old = |peer: &Peer<P>| match peer.state {
            State::Answered { at } => at + LIFETIME_MS <= now,
            State::Failed { until, .. } => {
                let memory = if peer.qpn.is_none() {
                    MEMORY_MS
                } else {
                    LIFETIME_MS
                };
                until + memory <= now
            }
            State::Asked { .. } => false,
        };
        let mut cursor = self.table.cursor_front_mut();
        while let Some(current) = cursor {
            if is_old(current.current().1) {
                cursor = current.remove_current().0;
                self.count -= 1;
            } else {
                cursor = current.move_next();
            }
        }
    }

    /// Takes all out. What is under way ends without a result, and nothing begins.
    pub(super) fn take_all(&mut self) -> Self {
        let fresh = Self {
            // Numbers go on: an exchange under way must match no peer that is noted later.
            last: self.last,
            before: self.last,
            ..Self::new()
        };
        core::mem::replace(self, fresh)
    }

    /// Keeps those of the removed peers that had been found: the stack and the cache still have
    /// them, and they are checked when exchanges may begin again. Drops the packets that wait.
    pub(super) fn found_before(mut self) -> Self {
        let mut cursor = self.table.cursor_front_mut();
        while let Some(mut current) = cursor {
            let (_, peer) = current.current_mut();
            if peer.qpn.is_none() {
                cursor = current.remove_current().0;
                self.count -= 1;
                continue;
            }
            // Its exchange ends without a result, and may begin again at once.
            if matches!(peer.state, State::Asked { .. }) {
                peer.state = State::Failed {
                    until: 0,
                    why: Failure::NotSent,
                };
            }
            cursor = current.move_next();
        }
        self
    }

    /// Takes those back. Nobody was noted meanwhile, as nothing began.
    pub(super) fn give_back(&mut self, found: Self) {
        self.table = found.table;
        self.count = found.count;
    }
}
