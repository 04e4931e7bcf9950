// SPDX-License-Identifier: GPL-2.0-only

//! How many connections there may be, and which gives way when there are as many.
//!
//! A peer that asks for one connection too many cannot just be rejected: the kernel's driver sends no
//! datagrams instead, and asks again for each packet. So one of ours gives way, for whose peer we have
//! datagrams; else the one that has received nothing for longest, whose peer may ask again.

use core::sync::atomic::{
    AtomicBool,
    AtomicU32,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    passive::Inbound,
    session::Session, //
};

/// A connection that received in the last so many seconds does not give way.
const IN_USE: u64 = 2;

/// One of the connections that an interface may have.
pub(super) struct Seat(Arc<AtomicU32>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connections of both directions.
pub(super) struct Seats(Arc<AtomicU32>);

impl Seats {
    /// None is taken.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        Ok(Self(Arc::new(AtomicU32::new(0), GFP_KERNEL)?))
    }

    /// One more, unless there are `most`.
    fn take(&self, most: u32) -> Option<Seat> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let seat = Seat(self.0.clone());
        (before < most).then_some(seat)
    }
}

/// Whether a connection was asked to give way. Each does so once.
#[derive(Default)]
pub(super) struct Leaving(AtomicBool);

impl Leaving {
    /// Whether it is asked for the first time.
    pub(super) fn begin(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }

    /// Whether it was asked.
    pub(super) fn is(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Session {
    /// A place for one more connection, unless there are as many as there may be.
    pub(super) fn seat(&self) -> Option<Seat> {
        self.seats.take(self.interface.options().max_connections)
    }

    /// The same for a peer's connection; if there is none, another connection gives way. Until that has
    /// ended there is one too many.
    pub(super) fn seat_for_peer(self: &Arc<Self>) -> Option<Seat> {
        if let Some(seat) = self.seat() {
            return Some(seat);
        }
        self.give_way()?;
        self.seats.take(u32::MAX)
    }

    /// Has a connection end, soon, as that sleeps. Nothing if none can.
    fn give_way(self: &Arc<Self>) -> Option<()> {
        let queue = &self.interface.searches;
        let spawned = if let Some(ours) = self.outbound_to_leave() {
            queue.spawn(move || ours.close())
        } else {
            let peers = self.inbound_to_leave(IN_USE)?;
            queue.spawn(move || {
                if let Some(connection) = Inbound::of(&peers) {
                    connection.close();
                }
            })
        };
        // Without memory at the moment it stays, and is closed when it is idle.
        spawned.ok()
    }
}

#[kernel::prelude::kunit_tests(oxib_connected_seats)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_and_no_more() -> Result {
        let seats = Seats::new()?;
        let first = seats.take(2);
        let second = seats.take(2);
        assert!(first.is_some() && second.is_some());
        assert!(seats.take(2).is_none());
        // Who was refused takes no place.
        drop(second);
        assert!(seats.take(2).is_some());
        Ok(())
    }

    #[test]
    fn one_gives_way_once() {
        let leaving = Leaving::default();
        assert!(!leaving.is());
        assert!(leaving.begin());
        assert!(!leaving.begin());
        assert!(leaving.is());
    }
}
