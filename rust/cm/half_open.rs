// SPDX-License-Identifier: GPL-2.0-only

//! Connections of a listener that are not finished: how many there may be, and whose.
//!
//! Nobody knows of a stranger whether he means to finish what he asks for, and until then he holds a
//! place. So a source has at most as many as are left for others: one alone half of them, two a
//! third each, and somebody who holds none finds one. Sources that are more than there are places
//! take the last, too. Then whoever has kept us waiting longest gives up his, if he has had time
//! to finish.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    id::{
        Id,
        Inner,
        Next, //
    },
    machine::{
        actions::Report,
        source::Source,
        time::Time, //
    },
    notice::Notice,
    table::hash,
    Manager, //
};
use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    rdma::management::random,
    wire::cm::CommId, //
};

/// Counters of a row.
const COLUMNS: usize = 256;

/// How long a peer has for its RTU before somebody else may have its place, in milliseconds: two of
/// the tries of `rdma_cm`.
const TIME_TO_FINISH: u64 = 8192;

/// How many are looked at to find one that gives up its place.
const LOOKED_AT: u32 = 16;

/// Of how many it is remembered, at most, in which order they came.
const REMEMBERED: usize = 4096;

/// The places of a listener.
#[pin_data]
pub(super) struct Places {
    most: u32,
    taken: AtomicU32,
    /// How many each source holds, at least: each counts in one column of either row, which it
    /// shares with others. That which is shared less says it.
    counts: KVec<AtomicU32>,
    /// So that nobody chooses with whom he shares.
    seed: u32,
    #[pin]
    order: IrqLock<Order>,
}

/// One place.
pub(super) struct HalfOpen {
    places: Arc<Places>,
    columns: [u8; 2],
}

impl Drop for HalfOpen {
    fn drop(&mut self) {
        for count in self.places.counts_of(self.columns) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
        self.places.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why there is no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Full {
    /// The source has its share.
    OfOne,
    /// Many have theirs.
    OfMany,
}

impl Places {
    /// So many of them.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(most: u32) -> Result<Arc<Self>> {
        let mut counts = KVec::with_capacity(2 * COLUMNS, GFP_KERNEL)?;
        for _ in 0..2 * COLUMNS {
            counts.push(AtomicU32::new(0), GFP_KERNEL)?;
        }
        Arc::pin_init(
            pin_init!(Self {
                most,
                taken: AtomicU32::new(0),
                counts,
                seed: random(),
                order <- new_irq_lock!(Order::default(), "oxib_cm_places"),
            }),
            GFP_KERNEL,
        )
    }

    /// Takes a place for the connection that we call `name`. Sleeps.
    pub(super) fn take(
        self: &Arc<Self>,
        source: &Source,
        name: CommId,
    ) -> core::result::Result<HalfOpen, Full> {
        let (place, taken, held) = self.hold(source);
        if held < self.most.saturating_sub(taken) {
            self.note(name, taken);
            Ok(place)
        } else if held <= self.share_of_many() {
            Err(Full::OfMany)
        } else {
            Err(Full::OfOne)
        }
    }

    /// Takes the place that another gave up for it.
    fn take_over(self: &Arc<Self>, source: &Source, name: CommId) -> HalfOpen {
        let (place, taken, _) = self.hold(source);
        self.note(name, taken);
        place
    }

    /// One place more, and how many were taken before: of all, and by this source as it seems.
    fn hold(self: &Arc<Self>, source: &Source) -> (HalfOpen, u32, u32) {
        let bits = hash(&(self.seed, *source));
        let columns = [bits as u8, (bits >> 8) as u8];
        let place = HalfOpen {
            places: self.clone(),
            columns,
        };
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        let counts = self.counts_of(columns);
        let held = counts.map(|count| count.fetch_add(1, Ordering::Relaxed));
        (place, taken, held.min().unwrap_or(0))
    }

    /// What a source may seem to hold if all are taken by sources that hold one each: twice what
    /// sharing its columns makes of it on average.
    fn share_of_many(&self) -> u32 {
        2 * self.most.div_ceil(COLUMNS as u32)
    }

    fn counts_of(&self, columns: [u8; 2]) -> impl Iterator<Item = &AtomicU32> {
        let rows = self.counts.chunks(COLUMNS).zip(columns);
        rows.filter_map(|(row, column)| row.get(usize::from(column)))
    }

    /// Remembers in which order they came from when half of the places are taken. Without memory,
    /// nobody gives up his.
    fn note(&self, name: CommId, taken: u32) {
        if taken < self.most / 2 {
            return;
        }
        if self.order.with(|order| order.names.is_empty()) {
            let Ok(memory) = Order::memory(self.most) else {
                return;
            };
            // Another may have been faster: then this one goes, after the lock.
            let _unused = self.order.with(|order| match order.names.is_empty() {
                true => core::mem::replace(&mut order.names, memory),
                false => memory,
            });
        }
        self.order.with(|order| order.push(name));
    }
}

/// Names in the order in which they came. The oldest are forgotten when there are too many.
#[derive(Default)]
struct Order {
    /// A ring.
    names: KVec<CommId>,
    first: usize,
    number: usize,
}

impl Order {
    fn memory(most: u32) -> Result<KVec<CommId>> {
        let length = REMEMBERED.min(most as usize);
        Ok(KVec::from_elem(CommId::ZERO, length, GFP_KERNEL)?)
    }

    fn push(&mut self, name: CommId) {
        let length = self.names.len();
        if self.number == length {
            let _ = self.pop();
        }
        let last = (self.first + self.number) % length.max(1);
        if let Some(slot) = self.names.get_mut(last) {
            *slot = name;
            self.number += 1;
        }
    }

    /// Puts the oldest back.
    fn unpop(&mut self, name: CommId) {
        let length = self.names.len();
        if self.number == length {
            return;
        }
        let before = self.first.checked_sub(1);
        self.first = before.unwrap_or(length.saturating_sub(1));
        if let Some(slot) = self.names.get_mut(self.first) {
            *slot = name;
            self.number += 1;
        }
    }

    fn pop(&mut self) -> Option<CommId> {
        if self.number == 0 {
            return None;
        }
        let name = self.names.get(self.first).copied();
        self.first = (self.first + 1) % self.names.len().max(1);
        self.number -= 1;
        name
    }
}

/// What becomes of a place that another wants.
enum Wanted {
    /// Its holder has given it up.
    GivenUp,
    /// It has been free for long.
    Free,
    /// Its peer has time still, and so have those of all that came later.
    InTime,
    /// It is the consumer who has not answered.
    Unanswered,
}

impl Manager {
    /// Takes a place of a listener's, which another may have to give up. Sleeps.
    pub(super) fn half_open(
        &self,
        places: &Arc<Places>,
        source: &Source,
        name: CommId,
    ) -> Option<HalfOpen> {
        match places.take(source, name) {
            Ok(place) => Some(place),
            Err(Full::OfOne) => None,
            Err(Full::OfMany) => self
                .has_made_room(places)
                .then(|| places.take_over(source, name)),
        }
    }

    /// Frees the place of him who has held one longest, if that is too long.
    fn has_made_room(&self, places: &Places) -> bool {
        for _ in 0..LOOKED_AT {
            let Some(name) = places.order.with(Order::pop) else {
                return false;
            };
            let wanted = self.ids.get(&name).map(|id| id.give_up_place(places));
            match wanted.unwrap_or(Wanted::Free) {
                Wanted::GivenUp => return true,
                Wanted::Free => {}
                Wanted::InTime => {
                    places.order.with(|order| order.unpop(name));
                    return false;
                }
                Wanted::Unanswered => places.order.with(|order| order.push(name)),
            }
        }
        false
    }
}

impl Id {
    /// Ends a connection that has waited long enough for its peer's RTU. Its consumer is told that
    /// none came in time.
    fn give_up_place(self: &Arc<Self>, places: &Places) -> Wanted {
        let Ok(notice) = Notice::new(Report::TimewaitExit, GFP_KERNEL) else {
            return Wanted::InTime;
        };
        let now = self.manager.now();
        let (wanted, next) = self.with(|inner| {
            let wanted = inner.place_wanted(places, now);
            let next = match wanted {
                Wanted::GivenUp => {
                    let actions = inner.machine.give_up();
                    inner.follow(self, &actions, now, Some(notice))
                }
                _ => Next::Nothing(Some(notice)),
            };
            (wanted, next)
        });
        self.then(next);
        wanted
    }
}

impl Inner {
    /// What becomes of its place.
    fn place_wanted(&self, places: &Places, now: Time) -> Wanted {
        let is_held = |held: &HalfOpen| core::ptr::eq(&*held.places, places);
        if self.gone || !self.half_open.as_ref().is_some_and(is_held) {
            return Wanted::Free;
        }
        match self.machine.asked_at() {
            None => Wanted::Unanswered,
            Some(asked) if now.since(asked) < TIME_TO_FINISH => Wanted::InTime,
            Some(_) => Wanted::GivenUp,
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_cm_half_open)]
mod tests {
    use super::*;

    fn from(lid: u32) -> Source {
        Source::new(lid, 0, None)
    }

    fn take(places: &Arc<Places>, lid: u32) -> core::result::Result<HalfOpen, Full> {
        places.take(&from(lid), CommId::new(1 + lid))
    }

    /// Takes what a source gets.
    fn take_all(places: &Arc<Places>, lid: u32) -> Result<KVec<HalfOpen>> {
        let mut taken = KVec::new();
        while let Ok(place) = take(places, lid) {
            taken.push(place, GFP_KERNEL)?;
        }
        Ok(taken)
    }

    #[test]
    fn a_source_has_as_many_as_are_left() -> Result {
        let places = Places::new(4096)?;
        let first = take_all(&places, 1)?;
        assert_eq!(first.len(), 2048);
        assert_eq!(take(&places, 1).err(), Some(Full::OfOne));
        let second = take_all(&places, 2)?;
        assert_eq!(second.len(), 1024);
        // What one gives back, the other may have.
        drop(first);
        assert_eq!(take_all(&places, 2)?.len(), 1024);
        drop(second);
        assert_eq!(take_all(&places, 3)?.len(), 2048);
        Ok(())
    }

    #[test]
    fn one_place_is_one() -> Result {
        let places = Places::new(1)?;
        let place = take(&places, 1);
        assert!(place.is_ok());
        assert!(take(&places, 2).is_err());
        drop(place);
        assert!(take(&places, 2).is_ok());
        Ok(())
    }

    #[test]
    fn many_sources_have_all() -> Result {
        let places = Places::new(4096)?;
        let mut taken = KVec::new();
        let mut refused = 0;
        for lid in 0..4096 {
            match take(&places, lid) {
                Ok(place) => taken.push(place, GFP_KERNEL)?,
                Err(_) => refused += 1,
            }
        }
        // Columns are shared: when few are left, some seem to have theirs.
        assert!(refused < 64);
        // Each of them would have another give up his.
        for lid in 4096..5096 {
            assert_ne!(take(&places, lid).err(), Some(Full::OfOne));
        }
        Ok(())
    }

    #[test]
    fn the_oldest_come_first() -> Result {
        let mut order = Order {
            names: Order::memory(3)?,
            ..Order::default()
        };
        assert_eq!(order.pop(), None);
        for name in 1..=5 {
            order.push(CommId::new(name));
        }
        let oldest = order.pop().ok_or(EINVAL)?;
        order.unpop(oldest);
        for name in 3..=5 {
            assert_eq!(order.pop(), Some(CommId::new(name)));
        }
        assert_eq!(order.pop(), None);
        Ok(())
    }
}
