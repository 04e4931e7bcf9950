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

/// Most searches at a time: each holds a worker until the peer answers or the search times out.
const SEARCHES: usize = 512;

/// Time until a destination that was not found is looked for again, in seconds.
const RETRY: u64 = 1;

/// Time after which the way to a destination in use is looked for anew, in seconds: a peer may have
/// got another Ethernet address or another router since.
const REFRESH: u64 = 60;

/// Time after which an unused destination is forgotten, in seconds.
pub(super) const LIFETIME: u64 = 120;

/// A destination.
enum State<H, P> {
    /// A search is under way; packets wait for its end.
    Resolving(KVec<P>, Ticket),
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

/// What a search was begun with: the state of the port that its result belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    generation: u32,
    /// A way is known, and in use, while it is looked for anew.
    refresh: bool,
}

impl Ticket {
    /// Whether a known way is looked for anew.
    pub(super) fn is_refresh(self) -> bool {
        self.refresh
    }
}

/// What the end of a search leads to.
pub(super) enum End<P> {
    /// The packets that waited, to be sent again or dropped.
    Settled(KVec<P>),
    /// The port has changed since: another search, with this ticket.
    Again(Ticket),
}

/// The destinations of one interface: `H` is the way there, `P` a packet.
pub(super) struct Destinations<H, P> {
    table: RBTree<Gid, State<H, P>>,
    count: usize,
    searches: usize,
    /// Counts the changes of the port that make all ways useless.
    generation: u32,
}

/// What to do with a packet.
pub(super) enum Verdict<H, P> {
    /// Send it that way.
    Send(H, P),
    /// It waits for a search to end that is under way.
    Waits,
    /// It waits for a search to end that the caller starts now.
    Search(Ticket),
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
    /// Too many searches at a time.
    Busy,
}

impl<H: Clone, P> Destinations<H, P> {
    /// None.
    pub(super) fn new() -> Self {
        Self {
            table: RBTree::new(),
            count: 0,
            searches: 0,
            generation: 0,
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
            Some(State::Resolving(waiting, _)) => {
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
            Some(State::Failed(_)) => self.begin(gid, packet),
        }
    }

    fn note(&mut self, gid: Gid, packet: P) -> Verdict<H, P> {
        let node = match RBTreeNodeReservation::new(GFP_ATOMIC) {
            Ok(node) if self.count < DESTINATIONS => node,
            _ => return Verdict::Drop(packet, Reason::NoMemory),
        };
        self.table.insert(node.into_node(gid, State::Failed(0)));
        self.count += 1;
        self.begin(gid, packet)
    }

    /// Begins the search for a destination in the table, for which `packet` waits.
    fn begin(&mut self, gid: Gid, packet: P) -> Verdict<H, P> {
        if self.searches >= SEARCHES {
            return Verdict::Drop(packet, Reason::Busy);
        }
        let mut waiting = KVec::new();
        if let Err(packet) = hold(&mut waiting, packet) {
            return Verdict::Drop(packet, Reason::NoMemory);
        }
        let ticket = Ticket {
            generation: self.generation,
            refresh: false,
        };
        if let Some(state) = self.table.get_mut(&gid) {
            *state = State::Resolving(waiting, ticket);
            self.searches += 1;
        }
        Verdict::Search(ticket)
    }

    /// Whether the result of a search is still wanted.
    pub(super) fn is_wanted(&self, gid: &Gid, ticket: Ticket) -> bool {
        match self.table.get(gid) {
            Some(State::Resolving(_, own)) => *own == ticket,
            Some(State::Ready(_)) => ticket.refresh && ticket.generation == self.generation,
            Some(State::Failed(_)) | None => false,
        }
    }

    /// Ends a search at time `now`. A destination that was forgotten meanwhile stays so, and a
    /// result from before a change of the port is of no use.
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
        let current = self.generation;
        let Some(state) = self.table.get_mut(gid) else {
            return End::Settled(KVec::new());
        };
        let (waiting, used) = match state {
            State::Resolving(_, own) if ticket.generation != current => {
                own.generation = current;
                return End::Again(*own);
            }
            State::Resolving(waiting, _) => {
                self.searches -= 1;
                (core::mem::take(waiting), now)
            }
            // A new search that failed for want of memory says nothing about the way.
            State::Ready(_) if matches!(found, Err(ENOMEM)) => return End::Settled(KVec::new()),
            State::Ready(ready) => (KVec::new(), ready.used),
            State::Failed(_) => return End::Settled(KVec::new()),
        };
        *state = match found {
            Ok(way) => State::Ready(Ready {
                way,
                used,
                checked: now,
            }),
            Err(_) => State::Failed(now + RETRY),
        };
        End::Settled(waiting)
    }

    /// Notes in `out`, as far as it has room, the destinations in use that are to be looked for
    /// anew at time `now`: the caller starts a search for each, with the ticket returned.
    pub(super) fn take_stale(&mut self, now: u64, out: &mut KVec<Gid>) -> Ticket {
        let ticket = Ticket {
            generation: self.generation,
            refresh: true,
        };
        for (gid, state) in self.table.iter_mut() {
            if let State::Ready(ready) = state {
                let in_use = ready.used + REFRESH > now;
                if in_use && ready.checked + REFRESH <= now {
                    if out.push_within_capacity(*gid).is_err() {
                        break;
                    }
                    ready.checked = now;
                }
            }
        }
        ticket
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

    /// Forgets all destinations that are found or failed, and returns them for the caller to drop:
    /// the port has changed. Searches go on, to be done again when they end.
    pub(super) fn forget_settled(&mut self) -> Self {
        let mut settled = self.take_all();
        let mut cursor = settled.table.cursor_front_mut();
        while let Some(current) = cursor {
            if let State::Resolving(..) = current.current().1 {
                let (next, node) = current.remove_current();
                cursor = next;
                settled.count -= 1;
                settled.searches -= 1;
                self.table.insert(node);
                self.count += 1;
                self.searches += 1;
            } else {
                cursor = current.move_next();
            }
        }
        settled
    }

    /// Forgets everything at once, searches included.
    pub(super) fn take_all(&mut self) -> Self {
        let generation = self.generation.wrapping_add(1);
        let fresh = Self {
            generation,
            ..Self::new()
        };
        core::mem::replace(self, fresh)
    }

    /// How many packets wait.
    pub(super) fn waiting(&self) -> usize {
        self.table
            .values()
            .map(|state| match state {
                State::Resolving(waiting, _) => waiting.len(),
                _ => 0,
            })
            .sum()
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

    /// The ticket of the search that a first packet starts.
    fn search(table: &mut Table, gid: Gid, now: u64) -> Result<Ticket> {
        match table.request(gid, 0, now) {
            Verdict::Search(ticket) => Ok(ticket),
            _ => Err(EINVAL),
        }
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

    /// Number of packets that a search's end lets go.
    fn settled(end: &End<u32>) -> Option<usize> {
        match end {
            End::Settled(waited) => Some(waited.len()),
            End::Again(_) => None,
        }
    }

    #[test]
    fn few_packets_wait_and_all_leave() -> Result {
        let mut table = Table::new();
        let ticket = search(&mut table, host(1), 0)?;
        for n in 1..WAITING as u32 {
            assert!(waits(&table.request(host(1), n, 0)));
        }
        let full = table.request(host(1), 9, 0);
        assert_eq!(dropped(&full), Some(Reason::QueueFull));
        assert_eq!(table.waiting(), WAITING);
        let end = table.resolved(&host(1), ticket, Ok(7), 1);
        assert_eq!(settled(&end), Some(WAITING));
        assert!(matches!(table.request(host(1), 5, 1), Verdict::Send(7, 5)));
        Ok(())
    }

    #[test]
    fn groups_hold_more() -> Result {
        let mut table = Table::new();
        let mut bytes = [0; 16];
        bytes[0] = 0xff;
        let group = Gid::from_bytes(bytes);
        search(&mut table, group, 0)?;
        for n in 1..WAITING_FOR_GROUP as u32 {
            assert!(waits(&table.request(group, n, 0)));
        }
        let full = table.request(group, 0, 0);
        assert_eq!(dropped(&full), Some(Reason::QueueFull));
        Ok(())
    }

    #[test]
    fn searches_are_bounded() -> Result {
        let mut table = Table::new();
        let gid = |n: usize| Gid::from_ipv4([10, 1, (n >> 8) as u8, n as u8]);
        let first = search(&mut table, gid(0), 0)?;
        for n in 1..SEARCHES {
            search(&mut table, gid(n), 0)?;
        }
        let busy = table.request(gid(SEARCHES), 0, 0);
        assert_eq!(dropped(&busy), Some(Reason::Busy));
        table.resolved(&gid(0), first, Err(ETIMEDOUT), 0);
        search(&mut table, gid(SEARCHES), 0)?;
        Ok(())
    }

    #[test]
    fn not_found_is_remembered_for_a_while() -> Result {
        let mut table = Table::new();
        let ticket = search(&mut table, host(1), 10)?;
        let end = table.resolved(&host(1), ticket, Err(ETIMEDOUT), 10);
        assert_eq!(settled(&end), Some(1));
        let early = table.request(host(1), 1, 10);
        assert_eq!(dropped(&early), Some(Reason::Unreachable));
        search(&mut table, host(1), 10 + RETRY)?;
        assert!(waits(&table.request(host(1), 3, 10 + RETRY)));
        Ok(())
    }

    #[test]
    fn unused_ones_are_forgotten() -> Result {
        let mut table = Table::new();
        for n in 1..=3 {
            let ticket = search(&mut table, host(n), 0)?;
            table.resolved(&host(n), ticket, Ok(n), 0);
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
            let ticket = search(&mut table, host(n), 0)?;
            table.resolved(&host(n), ticket, Ok(n), 0);
        }
        let mut stale = KVec::with_capacity(8, GFP_KERNEL)?;
        table.used(&host(1), REFRESH);
        table.take_stale(REFRESH - 1, &mut stale);
        assert_eq!(stale.len(), 0);
        // The other one is not in use.
        let ticket = table.take_stale(REFRESH, &mut stale);
        assert_eq!(&stale[..], &[host(1)]);
        // Not twice; and packets go the old way until the new one is known, also if memory is short.
        table.take_stale(REFRESH, &mut stale);
        assert_eq!(stale.len(), 1);
        table.resolved(&host(1), ticket, Err(ENOMEM), REFRESH);
        assert!(matches!(
            table.request(host(1), 5, REFRESH),
            Verdict::Send(1, 5)
        ));
        table.resolved(&host(1), ticket, Ok(9), REFRESH);
        assert!(matches!(
            table.request(host(1), 5, REFRESH),
            Verdict::Send(9, 5)
        ));
        table.resolved(&host(1), ticket, Err(ETIMEDOUT), REFRESH);
        let gone = table.request(host(1), 5, REFRESH);
        assert_eq!(dropped(&gone), Some(Reason::Unreachable));
        Ok(())
    }

    #[test]
    fn searches_outlive_a_change_but_not_their_results() -> Result {
        let mut table = Table::new();
        let first = search(&mut table, host(1), 0)?;
        let second = search(&mut table, host(2), 0)?;
        table.resolved(&host(1), first, Ok(1), 0);
        let forgotten = table.forget_settled();
        assert_eq!((forgotten.len(), table.len()), (1, 1));
        // The search began before the change: once more, and the packet waits on.
        let End::Again(again) = table.resolved(&host(2), second, Ok(2), 0) else {
            return Err(EINVAL);
        };
        assert!(waits(&table.request(host(2), 3, 0)));
        let end = table.resolved(&host(2), again, Ok(4), 0);
        assert_eq!(settled(&end), Some(2));
        assert!(matches!(table.request(host(2), 5, 0), Verdict::Send(4, 5)));
        Ok(())
    }

    #[test]
    fn late_results_are_ignored() -> Result {
        let mut table = Table::new();
        let old = search(&mut table, host(1), 0)?;
        drop(table.take_all());
        let end = table.resolved(&host(1), old, Ok(1), 0);
        assert_eq!((settled(&end), table.len()), (Some(0), 0));
        // Nor does one end the search of a later life.
        let new = search(&mut table, host(1), 0)?;
        let end = table.resolved(&host(1), old, Ok(1), 0);
        assert_eq!(settled(&end), Some(0));
        assert!(table.is_wanted(&host(1), new));
        Ok(())
    }
}
