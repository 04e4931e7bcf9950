// SPDX-License-Identifier: GPL-2.0-only

//! Limits on the number of connections, and the choice of the one that gives way.
//!
//! A peer that asks for one connection too many cannot just be rejected: the kernel's driver
//! sends no datagrams instead, and asks again for each packet. So another connection gives way:
//! one that its peer has not confirmed in a while; else one of ours, as datagrams reach its
//! peer; else the one that has received nothing for longest, as its peer may ask again. That one
//! ends only once the request is accepted: a request that is refused ends nobody's connection.
//! Connections that end have their slots until the device has let go of them, so there may be twice
//! as many slots as connections for a moment, and no more.
//!
//! A source, which is a port or a router, has as many connections as it leaves for others: the half
//! of all if it is alone, a third each of two. Beyond that, only its own give way to it.

use core::sync::atomic::{
    AtomicU32,
    AtomicU8,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    active::Outbound,
    passive::Inbound,
    session::Session, //
};
use crate::{
    acm::sources::Source,
    cm::Id, //
};

/// A connection that received in the last so many seconds does not give way.
const IN_USE_SECS: u64 = 2;

/// One of the connections that an interface may have.
pub(super) struct ConnectionSlot(Arc<AtomicU32>);

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connections of both directions.
pub(super) struct ConnectionSlots(Arc<AtomicU32>);

impl ConnectionSlots {
    /// Creates the count without any connections.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        Ok(Self(Arc::new(AtomicU32::new(0), GFP_KERNEL)?))
    }

    /// Returns the number of those that are taken.
    fn taken(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes a slot for one more connection, unless there are `most`.
    fn take(&self, most: u32) -> Option<ConnectionSlot> {
        // Counted before it is compared: two at once cannot both get the last slot.
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let slot = ConnectionSlot(self.0.clone());
        (before < most).then_some(slot)
    }

    /// Takes a slot for a connection to which another one gives way, unless as many end already as
    /// there may be.
    fn take_in_exchange(&self, most: u32) -> Option<ConnectionSlot> {
        self.take(most.saturating_mul(2))
    }
}

/// Origin of the slot for one more connection of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Room {
    /// A slot that is free.
    Free,
    /// The slot of another connection of the source, which gives way.
    Own,
    /// The slot of a connection of any source, which gives way.
    Any,
}

/// Returns the origin of the slot for one more connection of a source that has `own`, when
/// `taken` of `most` are taken.
fn room(own: u32, taken: u32, most: u32) -> Room {
    let free = most.saturating_sub(taken);
    if own != 0 && own >= free {
        Room::Own
    } else if free != 0 {
        Room::Free
    } else {
        Room::Any
    }
}

/// A peer's connection, as one that may give way.
#[derive(Clone, Copy)]
pub(super) struct Held {
    /// Port that asked for it.
    pub(super) source: Source,
    /// Confirmed by its peer, or used by it.
    pub(super) is_established: bool,
    /// Seconds since something was received.
    pub(super) idle: u64,
}

/// Group of the peers' connections of which one may give way.
#[derive(Clone, Copy)]
pub(super) enum Among {
    /// Those of a source.
    Of(Source),
    /// Those that are not established.
    Unconfirmed,
    /// All of the peers' connections.
    All,
}

impl Held {
    /// Returns a rank, the higher the sooner it gives way; `None` if it stays.
    pub(super) fn rank(&self, among: Among) -> Option<(bool, u64)> {
        let is_meant = match among {
            Among::Of(source) => self.source == source,
            Among::Unconfirmed => !self.is_established,
            Among::All => true,
        };
        (is_meant && self.idle >= IN_USE_SECS).then_some((!self.is_established, self.idle))
    }
}

/// Whether a connection gives way. Each does so once.
#[derive(Default)]
pub(super) struct Leaving(AtomicU8);

impl Leaving {
    /// The connection stays.
    const STAYS: u8 = 0;
    /// The connection gives way if a request is accepted.
    const CHOSEN: u8 = 1;
    /// The connection was asked to give way.
    const LEAVES: u8 = 2;

    /// Asks the connection to give way; returns whether this is the first time.
    pub(super) fn begin(&self) -> bool {
        self.0.swap(Self::LEAVES, Ordering::Relaxed) != Self::LEAVES
    }

    /// Chooses the connection as the one that gives way, if it stays; returns whether it did.
    pub(super) fn choose(&self) -> bool {
        self.replace(Self::STAYS, Self::CHOSEN)
    }

    /// Lets the connection stay, if it was only chosen.
    fn release(&self) {
        self.replace(Self::CHOSEN, Self::STAYS);
    }

    /// Returns whether the connection gives way, or was chosen for that.
    pub(super) fn is(&self) -> bool {
        self.0.load(Ordering::Relaxed) != Self::STAYS
    }

    fn replace(&self, before: u8, after: u8) -> bool {
        self.0
            .compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

/// The connection that gives way to another one. It stays if this is dropped.
pub(super) struct Yielding(Connection);

/// A connection of either direction.
enum Connection {
    /// One that a peer made. Its consumer is [`Inbound`].
    Inbound(Arc<Id>),
    /// One of ours.
    Outbound(Arc<Outbound>),
}

impl Yielding {
    /// Returns the choice of a connection that a peer made.
    pub(super) fn inbound(id: Arc<Id>) -> Self {
        Self(Connection::Inbound(id))
    }

    /// Returns the choice of a connection of ours.
    pub(super) fn outbound(connection: Arc<Outbound>) -> Self {
        Self(Connection::Outbound(connection))
    }

    fn leaving(&self) -> Option<&Leaving> {
        match &self.0 {
            Connection::Inbound(id) => Inbound::of(id).map(|connection| &connection.leaving),
            Connection::Outbound(connection) => Some(&connection.leaving),
        }
    }

    /// Ends the connection. Sleeps.
    fn close(self) {
        if let Some(leaving) = self.leaving() {
            leaving.begin();
        }
        match &self.0 {
            Connection::Inbound(id) => {
                if let Some(connection) = Inbound::of(id) {
                    connection.close();
                }
            }
            Connection::Outbound(connection) => connection.close(),
        }
    }
}

impl Drop for Yielding {
    fn drop(&mut self) {
        if let Some(leaving) = self.leaving() {
            leaving.release();
        }
    }
}

impl Session {
    /// Takes a slot for one more connection, unless there are as many as there may be.
    pub(super) fn take_slot(&self) -> Option<ConnectionSlot> {
        self.slots.take(self.interface.options().max_connections)
    }

    /// Takes a slot for a connection that `source` asks for. If there is none, or `source` has its
    /// share, another connection is to give way, once the request is accepted: see
    /// [`Session::give_way`]. Until that has ended there is one too many.
    pub(super) fn take_slot_for_peer(
        &self,
        source: Source,
    ) -> Option<(ConnectionSlot, Option<Yielding>)> {
        let most = self.interface.options().max_connections;
        let only = match room(self.inbound_of(source), self.slots.taken(), most) {
            Room::Free => {
                if let Some(slot) = self.take_slot() {
                    return Some((slot, None));
                }
                None
            }
            Room::Own => Some(source),
            Room::Any => None,
        };
        let slot = self.slots.take_in_exchange(most)?;
        Some((slot, Some(self.choose(only)?)))
    }

    /// Chooses the connection that gives way: one of the source `only`, if there is that. `None` if
    /// none can.
    fn choose(&self, only: Option<Source>) -> Option<Yielding> {
        if let Some(source) = only {
            return self.inbound_to_leave(Among::Of(source));
        }
        self.inbound_to_leave(Among::Unconfirmed)
            .or_else(|| self.outbound_to_leave())
            .or_else(|| self.inbound_to_leave(Among::All))
    }

    /// Ends the connection that gives way: soon, as that sleeps.
    pub(super) fn give_way(&self, yielding: Yielding) {
        // Without memory at the moment it stays, and is closed when it is idle.
        let _ = self.interface.searches.spawn(move || yielding.close());
    }
}

#[kernel::prelude::kunit_tests(oxib_connected_slots)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_and_no_more() -> Result {
        let slots = ConnectionSlots::new()?;
        let first = slots.take(2);
        let second = slots.take(2);
        assert!(first.is_some() && second.is_some());
        assert!(slots.take(2).is_none());
        // A connection that is refused takes no slot.
        drop(second);
        assert!(slots.take(2).is_some());
        Ok(())
    }

    #[test]
    fn twice_as_many_have_slots_while_some_end() -> Result {
        let slots = ConnectionSlots::new()?;
        let made = (slots.take(2), slots.take(2));
        let first = slots.take_in_exchange(2);
        let second = slots.take_in_exchange(2);
        assert!(made.1.is_some() && first.is_some() && second.is_some());
        // A device that lets go of none leaves no room for others.
        assert!(slots.take_in_exchange(2).is_none());
        drop(made);
        assert!(slots.take_in_exchange(2).is_some());
        assert!(slots.take(2).is_none());
        Ok(())
    }

    /// A source that asks all the time and confirms nothing leaves room for those that come later.
    #[test]
    fn a_source_has_its_share() {
        const MOST: u32 = 1024;
        let mut taken = 0;
        for expected in [512, 256, 128, 64] {
            let mut own = 0;
            while room(own, taken, MOST) == Room::Free {
                own += 1;
                taken += 1;
            }
            assert_eq!((own, room(own, taken, MOST)), (expected, Room::Own));
        }
        assert_eq!(room(0, taken, MOST), Room::Free);
        // When all are taken, a source that has none takes another's slot.
        assert_eq!(room(0, MOST, MOST), Room::Any);
        assert_eq!(room(1, MOST, MOST), Room::Own);
        assert_eq!(room(0, 0, 1), Room::Free);
    }

    #[test]
    fn those_that_are_not_established_give_way_first() {
        let (one, other) = (Source::port(1, 0), Source::port(2, 0));
        let held = |source, is_established, idle| Held {
            source,
            is_established,
            idle,
        };
        let peers = [
            held(one, true, 200),
            held(one, false, IN_USE_SECS - 1),
            held(other, false, 5),
            held(other, false, 7),
            held(one, true, 300),
            held(one, true, 0),
        ];
        let first = |among| {
            let ranked = peers.iter().enumerate();
            ranked
                .filter_map(|(index, held)| Some((held.rank(among)?, index)))
                .max()
                .map(|(_, index)| index)
        };
        assert_eq!(first(Among::All), Some(3));
        assert_eq!(first(Among::Unconfirmed), Some(3));
        assert_eq!(first(Among::Of(one)), Some(4));
        assert_eq!(first(Among::Of(Source::UNKNOWN)), None);
    }

    #[test]
    fn one_gives_way_once() {
        let leaving = Leaving::default();
        assert!(!leaving.is());
        assert!(leaving.begin());
        assert!(!leaving.begin());
        assert!(leaving.is());
    }

    #[test]
    fn one_that_was_chosen_in_vain_stays() {
        let leaving = Leaving::default();
        assert!(leaving.choose());
        assert!(leaving.is() && !leaving.choose());
        leaving.release();
        assert!(!leaving.is() && leaving.choose());
        // Another cause ends it meanwhile, once.
        assert!(leaving.begin());
        leaving.release();
        assert!(leaving.is() && !leaving.choose() && !leaving.begin());
    }
}
