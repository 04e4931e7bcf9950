// SPDX-License-Identifier: GPL-2.0-only

//! The destinations of an interface: resolved, being resolved, or not to be found now.
//!
//! Packets to a destination that is being resolved wait here, few of them. Who asked first starts
//! the search; its end sends them again or drops them.

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    }, //
};

use crate::wire::gid::Gid;

/// Packets that wait for one destination (as many as the kernel's own driver holds).
const WAITING: usize = 3;

/// Packets that wait for one group.
const WAITING_FOR_GROUP: usize = 64;

/// Most destinations, so that a scan of a large network does not take all memory.
const DESTINATIONS: usize = 16_384;

/// Time until a destination that was not found is looked for again, in seconds.
const RETRY: u64 = 1;

/// Time after which the way to a destination in use is looked for anew, in seconds: a peer may have
/// got another Ethernet address or another router since.
const REFRESH: u64 = 60;

/// Time after which an unused destination is forgotten, in seconds.
pub(super) const LIFETIME: u64 = 120;

/// A destination.
enum State<H, P> {
    /// A search is under way.
    Resolving(KVec<P>),
    /// Found.
    Ready(Ready<H>),
    /// Not found; not to be looked for again before a time in seconds.
    Failed(u64),
}

/// A destination that was found; times in seconds.
struct Ready<H> {
    way: H,
    used: u64,
    /// When the way was found, or a new search for it began.
    checked: u64,
}

/// The destinations of one interface: `H` is the way there, `P` a packet.
pub(super) struct Destinations<H, P> {
    table: RBTree<Gid, State<H, P>>,
    count: usize,
}

/// What to do with a packet.
pub(super) enum Verdict<H, P> {
    /// Send it that way.
    Send(H, P),
    /// It waits for a search to end that is under way.
    Waits,
    /// It waits for a search to end that the caller starts now.
    Search,
    /// It goes nowhere.
    Drop(P, Reason),
}

/// Why a packet goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Enough packets wait for the destination.
    QueueFull,
    /// The destination was not found a moment ago.
    Unreachable,
    /// No memory, or too many destinations.
    NoMemory,
}

impl<H: Clone, P> Destinations<H, P> {
    /// None.
    pub(super) fn new() -> Self {
        Self {
            table: RBTree::new(),
            count: 0,
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Asks for the way of `packet` to `gid` at time `now` (seconds).
    pub(super) fn request(&mut self, gid: Gid, packet: P, now: u64) -> Verdict<H, P> {
        let limit = if gid.is_multicast() {
            WAITING_FOR_GROUP
        } else {
            WAITING
        };
        match self.table.get_mut(&gid) {
            None => self.note(gid, packet),
            Some(State::Ready(ready)) => {
                ready.used = now;
                Verdict::Send(ready.way.clone(), packet)
            }
            Some(State::Resolving(waiting)) => {
                if waiting.len() >= limit {
                    return Verdict::Drop(packet, Reason::QueueFull);
                }
                match hold(waiting, packet) {
                    Ok(()) => Verdict::Waits,
                    Err(packet) => Verdict::Drop(packet, Reason::NoMemory),
                }
            }
            Some(State::Failed(until)) if now < *until => {
                Verdict::Drop(packet, Reason::Unreachable)
            }
            Some(state) => {
                let mut waiting = KVec::new();
                match hold(&mut waiting, packet) {
                    Ok(()) => {
                        *state = State::Resolving(waiting);
                        Verdict::Search
                    }
                    Err(packet) => Verdict::Drop(packet, Reason::NoMemory),
                }
            }
        }
    }

    fn note(&mut self, gid: Gid, packet: P) -> Verdict<H, P> {
        let node = match RBTreeNodeReservation::new(GFP_ATOMIC) {
            Ok(node) if self.count < DESTINATIONS => node,
            _ => return Verdict::Drop(packet, Reason::NoMemory),
        };
        let mut waiting = KVec::new();
        match hold(&mut waiting, packet) {
            Ok(()) => {
                self.table
                    .insert(node.into_node(gid, State::Resolving(waiting)));
                self.count += 1;
                Verdict::Search
            }
            Err(packet) => Verdict::Drop(packet, Reason::NoMemory),
        }
    }

    /// Ends a search at time `now`: the packets that waited are returned, to be sent again or, if
    /// nothing was `found`, dropped. A destination forgotten meanwhile stays so.
    pub(super) fn resolved(&mut self, gid: &Gid, found: Option<H>, now: u64) -> KVec<P> {
        let (waiting, used) = match self.table.get_mut(gid) {
            Some(State::Resolving(waiting)) => (core::mem::take(waiting), now),
            Some(State::Ready(ready)) => (KVec::new(), ready.used),
            Some(State::Failed(_)) | None => return KVec::new(),
        };
        if let Some(state) = self.table.get_mut(gid) {
            *state = match found {
                Some(way) => State::Ready(Ready {
                    way,
                    used,
                    checked: now,
                }),
                None => State::Failed(now + RETRY),
            };
        }
        waiting
    }

    /// Notes in `out`, as far as it has room, the destinations in use that are to be looked for
    /// anew at time `now`: the caller starts a search for each.
    pub(super) fn take_stale(&mut self, now: u64, out: &mut KVec<Gid>) {
        for (gid, state) in self.table.iter_mut() {
            if let State::Ready(ready) = state {
                let in_use = ready.used + REFRESH > now;
                if in_use && ready.checked + REFRESH <= now {
                    if out.push_within_capacity(*gid).is_err() {
                        return;
                    }
                    ready.checked = now;
                }
            }
        }
    }

    /// Notes that packets were sent to `gid` up to time `now`.
    pub(super) fn used(&mut self, gid: &Gid, now: u64) {
        if let Some(State::Ready(ready)) = self.table.get_mut(gid) {
            ready.used = now;
        }
    }

    /// Forgets destinations that were not used for [`LIFETIME`]. What is forgotten is added to
    /// `gids` and `handles`, as far as both have room.
    pub(super) fn expire(&mut self, now: u64, gids: &mut KVec<Gid>, handles: &mut KVec<H>) {
        let idle = |state: &State<H, P>| match state {
            State::Ready(ready) => ready.used + LIFETIME <= now,
            State::Failed(until) => until + LIFETIME <= now,
            _ => false,
        };
        let mut cursor = self.table.cursor_front_mut();
        while let Some(current) = cursor {
            if gids.len() == gids.capacity() || handles.len() == handles.capacity() {
                return;
            }
            if !idle(current.current().1) {
                cursor = current.move_next();
                continue;
            }
            let (next, node) = current.remove_current();
            cursor = next;
            self.count -= 1;
            let (gid, state) = node.to_key_value();
            let _ = gids.push_within_capacity(gid);
            if let State::Ready(ready) = state {
                let _ = handles.push_within_capacity(ready.way);
            }
        }
    }

    /// Forgets all destinations that are found or failed, and returns them for the caller to drop;
    /// searches go on, and their results are noted.
    pub(super) fn forget_settled(&mut self) -> Self {
        let mut settled = self.take_all();
        let mut cursor = settled.table.cursor_front_mut();
        while let Some(current) = cursor {
            if let State::Resolving(_) = current.current().1 {
                let (next, node) = current.remove_current();
                cursor = next;
                settled.count -= 1;
                self.table.insert(node);
                self.count += 1;
            } else {
                cursor = current.move_next();
            }
        }
        settled
    }

    /// Forgets everything at once, searches included.
    pub(super) fn take_all(&mut self) -> Self {
        core::mem::replace(self, Self::new())
    }
}

/// Adds a packet to those that wait; gives it back if there is no memory.
fn hold<P>(waiting: &mut KVec<P>, packet: P) -> core::result::Result<(), P> {
    if waiting.reserve(1, GFP_ATOMIC).is_err() {
        return Err(packet);
    }
    waiting
        .push_within_capacity(packet)
        .map_err(|error| error.0)
}

#[kernel::prelude::kunit_tests(oxib_address)]
mod tests {
    use super::*;

    type Table = Destinations<u8, u32>;

    fn host(n: u8) -> Gid {
        Gid::from_ipv4([10, 0, 0, n])
    }

    fn searches(verdict: &Verdict<u8, u32>) -> bool {
        matches!(verdict, Verdict::Search)
    }

    fn waits(verdict: &Verdict<u8, u32>) -> bool {
        matches!(verdict, Verdict::Waits)
    }

    fn dropped(verdict: &Verdict<u8, u32>) -> Option<Reason> {
        match verdict {
            Verdict::Drop(_, reason) => Some(*reason),
            _ => None,
        }
    }

    #[test]
    fn few_packets_wait_and_all_leave() {
        let mut table = Table::new();
        assert!(searches(&table.request(host(1), 0, 0)));
        for n in 1..WAITING as u32 {
            assert!(waits(&table.request(host(1), n, 0)));
        }
        let full = table.request(host(1), 9, 0);
        assert_eq!(dropped(&full), Some(Reason::QueueFull));
        let waited = table.resolved(&host(1), Some(7), 1);
        assert_eq!(waited.len(), WAITING);
        assert!(matches!(table.request(host(1), 5, 1), Verdict::Send(7, 5)));
    }

    #[test]
    fn groups_hold_more() {
        let mut table = Table::new();
        let mut bytes = [0; 16];
        bytes[0] = 0xff;
        let group = Gid::from_bytes(bytes);
        assert!(searches(&table.request(group, 0, 0)));
        for n in 1..WAITING_FOR_GROUP as u32 {
            assert!(waits(&table.request(group, n, 0)));
        }
        let full = table.request(group, 0, 0);
        assert_eq!(dropped(&full), Some(Reason::QueueFull));
    }

    #[test]
    fn not_found_is_remembered_for_a_while() {
        let mut table = Table::new();
        table.request(host(1), 0, 10);
        assert_eq!(table.resolved(&host(1), None, 10).len(), 1);
        let early = table.request(host(1), 1, 10);
        assert_eq!(dropped(&early), Some(Reason::Unreachable));
        assert!(searches(&table.request(host(1), 2, 10 + RETRY)));
        assert!(waits(&table.request(host(1), 3, 10 + RETRY)));
    }

    #[test]
    fn unused_ones_are_forgotten() -> Result {
        let mut table = Table::new();
        for n in 1..=3 {
            table.request(host(n), 0, 0);
            table.resolved(&host(n), Some(n), 0);
        }
        table.used(&host(2), LIFETIME);
        let mut gids = KVec::with_capacity(8, GFP_KERNEL)?;
        let mut handles = KVec::with_capacity(8, GFP_KERNEL)?;
        table.expire(LIFETIME - 1, &mut gids, &mut handles);
        assert_eq!(gids.len(), 0);
        table.expire(LIFETIME, &mut gids, &mut handles);
        assert_eq!(gids.len(), 2);
        assert_eq!(handles.len(), 2);
        assert_eq!(table.len(), 1);
        assert!(matches!(
            table.request(host(2), 1, LIFETIME),
            Verdict::Send(2, 1)
        ));
        Ok(())
    }

    #[test]
    fn ways_in_use_are_looked_for_anew() -> Result {
        let mut table = Table::new();
        for n in 1..=2 {
            table.request(host(n), 0, 0);
            table.resolved(&host(n), Some(n), 0);
        }
        let mut stale = KVec::with_capacity(8, GFP_KERNEL)?;
        table.used(&host(1), REFRESH);
        table.take_stale(REFRESH - 1, &mut stale);
        assert_eq!(stale.len(), 0);
        // The other one is not in use.
        table.take_stale(REFRESH, &mut stale);
        assert_eq!(&stale[..], &[host(1)]);
        // Not twice; and packets go the old way until the new one is known.
        table.take_stale(REFRESH, &mut stale);
        assert_eq!(stale.len(), 1);
        assert!(matches!(
            table.request(host(1), 5, REFRESH),
            Verdict::Send(1, 5)
        ));
        assert_eq!(table.resolved(&host(1), Some(9), REFRESH).len(), 0);
        assert!(matches!(
            table.request(host(1), 5, REFRESH),
            Verdict::Send(9, 5)
        ));
        // Gone: as if it had never been found.
        table.resolved(&host(1), None, REFRESH);
        let gone = table.request(host(1), 5, REFRESH);
        assert_eq!(dropped(&gone), Some(Reason::Unreachable));
        Ok(())
    }

    #[test]
    fn forgetting_spares_searches() {
        let mut table = Table::new();
        for n in 1..=2 {
            table.request(host(n), 0, 0);
        }
        table.resolved(&host(1), Some(1), 0);
        let forgotten = table.forget_settled();
        assert_eq!((forgotten.len(), table.len()), (1, 1));
        assert_eq!(table.resolved(&host(2), Some(2), 0).len(), 1);
    }

    #[test]
    fn late_results_are_ignored() {
        let mut table = Table::new();
        table.request(host(1), 0, 0);
        drop(table.take_all());
        assert_eq!(table.resolved(&host(1), Some(1), 0).len(), 0);
        assert_eq!(table.len(), 0);
    }
}
