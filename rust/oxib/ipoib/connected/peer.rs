// SPDX-License-Identifier: GPL-2.0-only

//! The peers of one transmit queue that take connections, and how far ours to each has come.
//!
//! ```text
//!            route              connected            break_off
//!   (idle) ───────▶ Connecting ──────────▶ Connected ─────────▶ Closing
//!      ▲                │                      │                   │
//!      │                ▼ end                  ▼ end               ▼ end
//!      └──────────── Refused ◀─────────────────┴───────────────────┘   or idle at once
//!         later
//! ```
//!
//! A peer that is not connected gets datagrams; packets that are too large for one wait while it is
//! being connected. This is policy alone: `L` is what sends on a connection, `P` a packet. The
//! holder of the queue's lock has it.

use kernel::{
    prelude::*,
    rbtree::RBTree, //
};

use crate::{
    rdma::rc_send::Tag,
    wire::{
        gid::Gid,
        hwaddr::HwAddr, //
    }, //
};

mod fate;
mod places;
mod tests;

pub(super) use fate::Fate;
use places::PEERS;

/// Packets that wait for one connection.
const WAITING: usize = 16;

/// Longest wait of packets for a connection that is being established, in seconds: a peer that
/// does not answer is asked for about a minute.
const PATIENCE_SECS: u64 = 3;

/// First and longest time without a try after one that failed, in seconds; the longest, too,
/// after a try to a peer where nobody takes connections, which may change soon.
const RETRY_SECS: u64 = 1;
const RETRY_MAX_SECS: u64 = 64;
const RETRY_UNWILLING_SECS: u64 = 2;

/// Time for which a peer may take no connections before packets that are too large for datagrams
/// are refused, in seconds. Until then the peer may be coming up; and senders keep a smaller path
/// MTU for ten minutes.
const GRACE_SECS: u64 = 30;

/// Time after which a peer is forgotten that was refused and not asked for again, in seconds.
const REMEMBER: u64 = 120;

/// Places of the table of peers asked for last; a power of two.
const RECENT: usize = 256;

/// State of the connection to a peer.
enum State<L, P> {
    Connecting(Connecting<P>),
    Connected(Connected<L>),
    Closing(Closing<L>),
    Refused(Refused),
}

/// A connection that is being established; packets wait for it.
struct Connecting<P> {
    waiting: KVec<P>,
    /// Time at which that began, in seconds.
    since: u64,
    before: Failures,
}

/// A connection that is established.
struct Connected<L> {
    link: L,
    /// A packet was sent since the last look of [`Peers::take_used`].
    is_unnoted: bool,
    /// A packet was sent since `since`.
    used: bool,
    /// Time at which `used` was last read and cleared, in seconds.
    since: u64,
}

/// A connection that failed: nothing more is sent on it, and it is to be closed.
struct Closing<L> {
    link: L,
}

/// The peer gets datagrams for a while.
struct Refused {
    until: u64,
    failures: Failures,
}

/// Failed tries since the last connection.
#[derive(Clone, Copy)]
struct Failures {
    /// Time of the first failure, in seconds; attempts that were postponed do not count.
    since: Option<u64>,
    /// The peer refused a connection: the path to it was looked for again then.
    is_path_doubted: bool,
    /// Wait after the next failure, in seconds.
    backoff: u64,
    /// Senders are notified that no packets go that are too large for datagrams.
    is_notified: bool,
}

impl<P> Connecting<P> {
    fn new(before: Failures, since: u64) -> Self {
        Self {
            waiting: KVec::new(),
            since,
            before,
        }
    }

    fn connected<L>(self, link: L, now: u64) -> (Connected<L>, KVec<P>) {
        let connected = Connected {
            link,
            is_unnoted: true,
            used: true,
            since: now,
        };
        (connected, self.waiting)
    }
}

impl<L> Connected<L> {
    fn close(self) -> Closing<L> {
        Closing { link: self.link }
    }

    /// Returns whether nothing was sent for `idle` seconds; called from time to time.
    fn is_idle(&mut self, now: u64, idle: u64) -> bool {
        if core::mem::take(&mut self.used) {
            self.since = now;
        }
        now.saturating_sub(self.since) >= idle
    }
}

impl Refused {
    /// Placeholder of a state while that is changed.
    const NONE: Self = Self {
        until: 0,
        failures: Failures::NONE,
    };

    /// Creates the state after an established connection has failed.
    fn broken(now: u64) -> Self {
        Self {
            until: now + RETRY_SECS,
            failures: Failures::NONE,
        }
    }
}

impl Failures {
    const NONE: Self = Self {
        since: None,
        is_path_doubted: false,
        backoff: RETRY_SECS,
        is_notified: false,
    };

    /// Returns the state after one more failed try.
    fn after(self, fate: Fate, now: u64) -> Refused {
        let since = self.since.unwrap_or(now);
        let longest = match fate {
            Fate::Unwilling => RETRY_UNWILLING_SECS,
            _ => RETRY_MAX_SECS,
        };
        let wait = self.backoff.min(longest);
        let failures = Self {
            since: match fate {
                Fate::Postponed => self.since,
                _ => Some(since),
            },
            is_path_doubted: self.is_path_doubted || fate == Fate::Unwilling,
            backoff: (wait * 2).min(longest),
            is_notified: match fate {
                Fate::Declined => true,
                Fate::Unwilling => now >= since + GRACE_SECS,
                // The peer has not said that there will be none.
                Fate::Over | Fate::Failed | Fate::Postponed | Fate::Moved => self.is_notified,
            },
        };
        Refused {
            until: now + wait,
            failures,
        }
    }
}

/// Remains of a connection that has ended.
pub(super) struct Ended<L, P> {
    /// The send side, if the connection was established.
    pub(super) link: Option<L>,
    /// Packets that waited for it.
    pub(super) waiting: KVec<P>,
    /// Senders of packets that are too large for datagrams are to be notified of a smaller MTU,
    /// as there will be no connection soon.
    pub(super) is_notified: bool,
}

/// Route of a packet to a peer.
pub(super) enum Route<'a, L> {
    /// The connection, which is established.
    Connection(&'a mut L, Tag),
    /// A datagram; a packet too large for one waits for the connection, which the caller has to
    /// make.
    Begin(Tag),
    /// A datagram; a packet too large for one waits for the connection, which is being
    /// established.
    Wait(Tag),
    /// A datagram; a packet too large for one is dropped and counted: there may be a connection
    /// again soon, and its sender would keep a smaller path MTU for minutes.
    Pause,
    /// A datagram; the sender of a packet too large for one is told of a smaller MTU.
    Datagram,
}

/// A place in the table.
struct Slot<L, P> {
    /// Counts the peers that the place has had.
    generation: u16,
    peer: Option<(HwAddr, State<L, P>)>,
}

/// The peers of one transmit queue.
pub(super) struct Peers<L, P> {
    slots: KVec<Slot<L, P>>,
    index: RBTree<HwAddr, u16>,
    /// Places by a hash of the address.
    recent: KVec<u16>,
    /// Most places.
    most: usize,
    /// Generation of the first peer of each place.
    first: u16,
}

/// A peer's address without what it offers, as a name.
fn name(address: &HwAddr) -> HwAddr {
    address.with_flags(0)
}

/// Returns the peer's place in the table of recent look-ups.
fn place(peer: &HwAddr) -> usize {
    let [.., a, b, c, d] = *peer.gid_bytes();
    let low = u32::from_be_bytes([a, b, c, d]) ^ peer.qpn().get().rotate_left(16);
    // Multiplicative hashing: the constant is 2^32 divided by the golden ratio.
    (low.wrapping_mul(0x9e37_79b9) >> (32 - RECENT.trailing_zeros())) as usize
}

/// The tag of the peer in a slot: never zero.
fn tag(slot: usize, generation: u16) -> Tag {
    Tag(u32::from(generation) << 16 | (slot as u32 + 1))
}

impl<L, P> Peers<L, P> {
    /// Creates an empty table. The generations of its tags begin with `first`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(first: u16) -> Result<Self> {
        Ok(Self {
            slots: KVec::new(),
            index: RBTree::new(),
            recent: KVec::from_elem(0, RECENT, GFP_KERNEL)?,
            most: PEERS,
            first,
        })
    }

    fn find(&mut self, peer: &HwAddr) -> Option<usize> {
        let place = place(peer);
        let recent = usize::from(*self.recent.get(place)?);
        // Bursts go to few peers: most look-ups end here, without the tree.
        let slot = self.slots.get(recent);
        if slot.is_some_and(|slot| matches!(&slot.peer, Some((name, _)) if name == peer)) {
            return Some(recent);
        }
        let found = *self.index.get(peer)?;
        *self.recent.get_mut(place)? = found;
        Some(found.into())
    }

    fn slot(&mut self, tag: Tag) -> Option<&mut Slot<L, P>> {
        let index = (tag.0 & 0xffff).checked_sub(1)?;
        let slot = self.slots.get_mut(index as usize)?;
        (u32::from(slot.generation) == tag.0 >> 16).then_some(slot)
    }

    fn state(&mut self, tag: Tag) -> Option<&mut State<L, P>> {
        let (_, state) = self.slot(tag)?.peer.as_mut()?;
        Some(state)
    }

    /// Returns the route of packets to the peer with `address` at time `now` (in seconds; `now`
    /// is only called if the peer is not connected).
    #[inline]
    pub(super) fn route(&mut self, address: &HwAddr, now: impl Fn() -> u64) -> Route<'_, L> {
        let peer = name(address);
        let Some(index) = self.find(&peer) else {
            return match self.note(peer, now()) {
                Ok(tag) => Route::Begin(tag),
                // The next packet finds memory again.
                Err(ENOMEM) => Route::Pause,
                Err(_) => Route::Datagram,
            };
        };
        let Some(slot) = self.slots.get_mut(index) else {
            return Route::Datagram;
        };
        let tag = tag(index, slot.generation);
        let Some((_, state)) = &mut slot.peer else {
            return Route::Datagram;
        };
        let next = match state {
            State::Refused(refused) if now() >= refused.until => {
                Some(State::Connecting(Connecting::new(refused.failures, now())))
            }
            _ => None,
        };
        if let Some(next) = next {
            *state = next;
            return Route::Begin(tag);
        }
        match state {
            State::Connected(connected) => {
                connected.used = true;
                connected.is_unnoted = true;
                Route::Connection(&mut connected.link, tag)
            }
            State::Connecting(connecting) if now() < connecting.since + PATIENCE_SECS => {
                Route::Wait(tag)
            }
            State::Connecting(Connecting { before, .. }) if before.is_notified => Route::Datagram,
            State::Refused(Refused { failures, .. }) if failures.is_notified => Route::Datagram,
            State::Connecting(_) | State::Closing(_) | State::Refused(_) => Route::Pause,
        }
    }

    /// Lets a packet wait for a connection that is being made.
    ///
    /// # Errors
    ///
    /// The packet back: enough wait, it is not being made any more, or there is no memory.
    pub(super) fn hold(&mut self, tag: Tag, packet: P) -> core::result::Result<(), P> {
        match self.state(tag) {
            Some(State::Connecting(connecting)) if connecting.waiting.len() < WAITING => {
                let waiting = &mut connecting.waiting;
                if waiting.reserve(1, GFP_ATOMIC).is_err() {
                    return Err(packet);
                }
                waiting
                    .push_within_capacity(packet)
                    .map_err(|refused| refused.0)
            }
            _ => Err(packet),
        }
    }

    /// Passes to `end` the packets that have waited for too long, at time `now`. Returns whether
    /// others wait.
    pub(super) fn expire_waits(&mut self, now: u64, mut end: impl FnMut(P)) -> bool {
        let mut others_wait = false;
        for slot in &mut self.slots {
            let Some((_, State::Connecting(connecting))) = &mut slot.peer else {
                continue;
            };
            if now < connecting.since + PATIENCE_SECS {
                others_wait |= !connecting.waiting.is_empty();
            } else {
                core::mem::take(&mut connecting.waiting)
                    .into_iter()
                    .for_each(&mut end);
            }
        }
        others_wait
    }

    /// Notes that a connection was established; returns the packets that waited for it.
    ///
    /// # Errors
    ///
    /// `link` back, if nobody wants it any more.
    pub(super) fn connected(
        &mut self,
        tag: Tag,
        link: L,
        now: u64,
    ) -> core::result::Result<KVec<P>, L> {
        let Some(state) = self.state(tag) else {
            return Err(link);
        };
        let before = core::mem::replace(state, State::Refused(Refused::NONE));
        match before {
            State::Connecting(connecting) => {
                let (connected, waiting) = connecting.connected(link, now);
                *state = State::Connected(connected);
                Ok(waiting)
            }
            other => {
                *state = other;
                Err(link)
            }
        }
    }

    /// Returns whether a connection is being established to a peer that has not refused one since
    /// the last established one.
    pub(super) fn is_first_refusal(&mut self, tag: Tag) -> bool {
        matches!(
            self.state(tag),
            Some(State::Connecting(connecting)) if !connecting.before.is_path_doubted
        )
    }

    /// Returns the send side of a connection, as long as it is known.
    pub(super) fn link(&mut self, tag: Tag) -> Option<&mut L> {
        match self.state(tag)? {
            State::Connected(Connected { link, .. }) | State::Closing(Closing { link }) => {
                Some(link)
            }
            State::Connecting(_) | State::Refused(_) => None,
        }
    }

    /// Returns the send side of the established connection to the peer with `address`.
    pub(super) fn link_to(&mut self, address: &HwAddr) -> Option<&mut L> {
        let index = self.find(&name(address))?;
        match &mut self.slots.get_mut(index)?.peer {
            Some((_, State::Connected(connected))) => Some(&mut connected.link),
            _ => None,
        }
    }

    /// A connection failed: nothing more is to be sent on it. Whether it was in use until now: then
    /// the caller has it taken away.
    pub(super) fn break_off(&mut self, tag: Tag) -> bool {
        let Some(state) = self.state(tag) else {
            return false;
        };
        let before = core::mem::replace(state, State::Refused(Refused::NONE));
        let (after, changed) = match before {
            State::Connected(connected) => (State::Closing(connected.close()), true),
            other => (other, false),
        };
        *state = after;
        changed
    }

    /// Notes that a connection has ended, or will not be established. Returns nothing if that is
    /// known.
    pub(super) fn end(&mut self, tag: Tag, fate: Fate, now: u64) -> Ended<L, P> {
        let mut ended = Ended {
            link: None,
            waiting: KVec::new(),
            is_notified: false,
        };
        let Some(slot) = self.slot(tag) else {
            return ended;
        };
        let Some((peer, state)) = slot.peer.take() else {
            return ended;
        };
        let refused = match state {
            State::Connecting(connecting) => {
                ended.waiting = connecting.waiting;
                (!fate.is_neutral()).then(|| connecting.before.after(fate, now))
            }
            State::Connected(Connected { link, .. }) => {
                ended.link = Some(link);
                (!fate.is_neutral()).then(|| Refused::broken(now))
            }
            // It failed, whatever was said of it since.
            State::Closing(closing) => {
                ended.link = Some(closing.link);
                Some(Refused::broken(now))
            }
            State::Refused(refused) => {
                slot.peer = Some((peer, State::Refused(refused)));
                return ended;
            }
        };
        // What may still come for the old tag finds nothing.
        slot.generation = slot.generation.wrapping_add(1);
        match refused {
            Some(refused) => {
                ended.is_notified = refused.failures.is_notified;
                // The place stays the peer's, with a new tag: the refusal is remembered here.
                slot.peer = Some((peer, State::Refused(refused)));
            }
            None => {
                // The next packet asks again.
                self.index.remove(&peer);
            }
        }
        ended
    }

    /// Notes in `out`, as far as it has room, the connections that are to be closed: those that
    /// failed, and those on which nothing was sent for `idle` seconds. Forgets peers that were
    /// refused long ago. Begins at the slot `from`, and returns the slot to go on at if there may
    /// be more.
    pub(super) fn take_idle(
        &mut self,
        now: u64,
        idle: u64,
        from: usize,
        out: &mut KVec<Tag>,
    ) -> Option<usize> {
        for (index, slot) in self.slots.iter_mut().enumerate().skip(from) {
            let Some((peer, state)) = &mut slot.peer else {
                continue;
            };
            let closes = match state {
                State::Connected(connected) => connected.is_idle(now, idle),
                State::Closing(_) => true,
                State::Connecting(_) => false,
                State::Refused(refused) => {
                    if now >= refused.until + REMEMBER {
                        self.index.remove(peer);
                        slot.peer = None;
                    }
                    continue;
                }
            };
            if closes {
                if out.len() == out.capacity() {
                    return Some(index);
                }
                let _ = out.push_within_capacity(tag(index, slot.generation));
            }
        }
        None
    }

    /// Notes in `out`, as far as it has room, the GIDs of the peers to which packets were sent by
    /// connections since the last look. Begins at the slot `from`, and returns the slot to go on
    /// at if there may be more.
    pub(super) fn take_used(&mut self, from: usize, out: &mut KVec<Gid>) -> Option<usize> {
        for (index, slot) in self.slots.iter_mut().enumerate().skip(from) {
            let Some((peer, State::Connected(connected))) = &mut slot.peer else {
                continue;
            };
            if connected.is_unnoted {
                if out.len() == out.capacity() {
                    return Some(index);
                }
                let _ = out.push_within_capacity(peer.gid());
                connected.is_unnoted = false;
            }
        }
        None
    }

    /// Bytes of memory that the table takes, without what it is about.
    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<L, P>>() + self.recent.capacity() * size_of::<u16>()
    }
}
