// SPDX-License-Identifier: GPL-2.0-only

//! All queue pairs of a device by their numbers.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    limits,
    queue_pair::{
        QueuePair,
        Type, //
    }, //
};
use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    wire::qpn::Qpn, //
};

/// The most ports of a device.
pub(crate) const PORTS: usize = 2;

/// The first number: lower ones are the special queue pairs', and easily mistaken for them.
const FIRST: u32 = 64;

/// The number of rounds after which numbers repeat. The highest bit, which the number for
/// multicast has, stays clear.
const ROUNDS: u32 = (Qpn::MAX >> 1) >> limits::QUEUE_PAIR_BITS;

const _: () = assert!(ROUNDS * limits::QUEUE_PAIRS + FIRST <= Qpn::MAX >> 1);

enum Slot {
    Free,
    Reserved,
    Used(Arc<QueuePair>),
}

struct Table {
    slots: KVec<Slot>,
    /// The slot at which the search for a free one begins, so that a number is not used again
    /// soon.
    next: usize,
    /// The number of times that places went around, for the high bits of a number.
    round: u32,
    /// Queue pairs 0 and 1 of each port.
    special: [[Slot; 2]; PORTS],
}

/// The queue pairs of a device.
#[pin_data]
pub(crate) struct QueuePairs {
    #[pin]
    table: IrqLock<Table>,
}

/// A number that a queue pair will have. Dropping it gives it back.
pub(crate) struct Place<'a> {
    table: &'a QueuePairs,
    number: Qpn,
    special: Option<(usize, usize)>,
    filled: bool,
}

impl Place<'_> {
    /// Returns the number of the reserved slot.
    pub(crate) fn number(&self) -> Qpn {
        self.number
    }

    /// Lets packets find the queue pair.
    pub(crate) fn fill(mut self, queue_pair: Arc<QueuePair>) {
        self.filled = true;
        self.table.table.with(|table| {
            if let Some(slot) = table.slot(self.number, self.special) {
                *slot = Slot::Used(queue_pair);
            }
        });
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.filled {
            self.table.table.with(|table| {
                if let Some(slot) = table.slot(self.number, self.special) {
                    *slot = Slot::Free;
                }
            });
        }
    }
}

/// Returns the slot of a special queue pair: its port, counted from 0, and its number. `None` for
/// others.
fn special(kind: Type, port: u8) -> Option<(usize, usize)> {
    let number = match kind {
        Type::Smi => 0,
        Type::Gsi => 1,
        _ => return None,
    };
    Some((usize::from(port.max(1)) - 1, number))
}

impl Table {
    fn slot(&mut self, number: Qpn, special: Option<(usize, usize)>) -> Option<&mut Slot> {
        match special {
            Some((port, place)) => self.special.get_mut(port)?.get_mut(place),
            None => self.slots.get_mut(place_of(number)?),
        }
    }

    /// Finds a free place, from where the last one was found.
    fn free(&mut self) -> Option<usize> {
        let count = self.slots.len();
        let free = |place: &usize| matches!(self.slots.get(*place), Some(Slot::Free));
        let found = (self.next..count).find(free);
        if found.is_none() {
            let found = (0..self.next).find(free)?;
            self.round = self.round.wrapping_add(1);
            return Some(found);
        }
        found
    }

    fn number(&self, place: usize) -> Qpn {
        let high = (self.round % ROUNDS) << limits::QUEUE_PAIR_BITS;
        Qpn::new((high | place as u32) + FIRST).unwrap_or(Qpn::MULTICAST)
    }
}

fn place_of(number: Qpn) -> Option<usize> {
    let counted = number.get().checked_sub(FIRST)?;
    Some((counted & (limits::QUEUE_PAIRS - 1)) as usize)
}

impl QueuePairs {
    /// Creates a table without queue pairs.
    pub(crate) fn new() -> impl PinInit<Self> {
        let table = Table {
            slots: KVec::new(),
            next: 0,
            round: 0,
            special: [const { [Slot::Free, Slot::Free] }; PORTS],
        };
        pin_init!(Self {
            table <- new_irq_lock!(table, "softib_qps"),
        })
    }

    /// Chooses a number. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also if there are too many; `EBUSY` if the port has that special queue pair.
    pub(crate) fn reserve(&self, kind: Type, port: u8) -> Result<Place<'_>> {
        if let Some((port, number)) = special(kind, port) {
            self.table.with(|table| {
                let slot = table.special.get_mut(port).ok_or(EINVAL)?;
                let slot = slot.get_mut(number).ok_or(EINVAL)?;
                if !matches!(slot, Slot::Free) {
                    return Err(EBUSY);
                }
                *slot = Slot::Reserved;
                Ok(())
            })?;
            return Ok(Place {
                table: self,
                number: Qpn::new(number as u32).ok_or(EINVAL)?,
                special: Some((port, number)),
                filled: false,
            });
        }
        loop {
            // Made before the lock is taken, for when it is needed.
            let wanted = self.table.with(|table| table.slots.len() + 1);
            let mut larger = KVec::with_capacity(wanted.next_power_of_two().max(16), GFP_KERNEL)?;
            let number = self.table.with(|table| table.reserve(&mut larger))?;
            if let Some(number) = number {
                return Ok(Place {
                    table: self,
                    number,
                    special: None,
                    filled: false,
                });
            }
        }
    }

    /// The queue pair that a packet for `number` is for at a port.
    #[inline]
    pub(crate) fn find(&self, port: u8, number: Qpn) -> Option<Arc<QueuePair>> {
        self.table.with(|table| {
            let special = number
                .is_special()
                .then(|| (usize::from(port.max(1)) - 1, number.get() as usize));
            match table.slot(number, special)? {
                // A number of an earlier round leads to the slot of another queue pair.
                Slot::Used(found) if found.number == number => Some(found.clone()),
                _ => None,
            }
        })
    }

    /// Takes out a queue pair that ends.
    pub(crate) fn remove(&self, number: Qpn, queue_pair: &QueuePair) {
        // Read before the table is locked, under which no lock of a queue pair is taken.
        let special = special(queue_pair.kind, queue_pair.query().1.port);
        // Dropped without the lock.
        let removed = self.table.with(|table| {
            let slot = table.slot(number, special)?;
            match slot {
                Slot::Used(found) if core::ptr::eq(&**found, queue_pair) => {
                    Some(core::mem::replace(slot, Slot::Free))
                }
                _ => None,
            }
        });
        drop(removed);
    }
}

impl Table {
    /// Reserves a place; `None` if there is none and `larger` is no larger.
    fn reserve(&mut self, larger: &mut KVec<Slot>) -> Result<Option<Qpn>> {
        // All places that the memory has room for are used before one is used again.
        let full = self.slots.len() as u32 >= limits::QUEUE_PAIRS;
        let grow = full || self.slots.len() == self.slots.capacity();
        let place = match (grow, self.free()) {
            (true, Some(place)) => place,
            (true, None) => {
                if full {
                    return Err(ENOMEM);
                }
                if larger.capacity() <= self.slots.len() {
                    return Ok(None);
                }
                for slot in self.slots.drain_all() {
                    let _ = larger.push_within_capacity(slot);
                }
                core::mem::swap(&mut self.slots, larger);
                self.append()
            }
            (false, _) => self.append(),
        };
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Slot::Reserved;
        }
        self.next = place + 1;
        Ok(Some(self.number(place)))
    }

    /// Adds a place; there is room for it.
    fn append(&mut self) -> usize {
        let _ = self.slots.push_within_capacity(Slot::Free);
        self.slots.len() - 1
    }
}

#[kernel::prelude::kunit_tests(softib_queue_pairs)]
mod tests {
    use super::*;

    /// Makes a table without queue pairs.
    fn table() -> Table {
        Table {
            slots: KVec::new(),
            next: 0,
            round: 0,
            special: [const { [Slot::Free, Slot::Free] }; PORTS],
        }
    }

    /// Reserves a place, with as much memory as that takes.
    fn reserve(table: &mut Table) -> Result<Qpn> {
        loop {
            let wanted = (table.slots.len() + 1).next_power_of_two().max(16);
            let mut larger = KVec::with_capacity(wanted, GFP_KERNEL)?;
            if let Some(number) = table.reserve(&mut larger)? {
                return Ok(number);
            }
        }
    }

    #[test]
    fn each_number_leads_to_a_place_of_its_own() -> Result {
        let mut table = table();
        for place in 0..limits::QUEUE_PAIRS as usize {
            let number = reserve(&mut table)?;
            assert!(number.get() >= FIRST);
            assert_eq!(place_of(number), Some(place));
            assert!(matches!(table.slot(number, None), Some(Slot::Reserved)));
        }
        // There are no more than the device promises.
        assert_eq!(reserve(&mut table), Err(ENOMEM));
        Ok(())
    }

    #[test]
    fn a_place_that_is_used_again_has_another_number() -> Result {
        let mut table = table();
        for _ in 0..16 {
            reserve(&mut table)?;
        }
        let last = 15;
        let mut before = table.number(last);
        for _ in 0..2 * ROUNDS {
            table.slots[last] = Slot::Free;
            let number = reserve(&mut table)?;
            assert_eq!(place_of(number), Some(last));
            assert!(number.get() >= FIRST && number.get() <= Qpn::MAX >> 1);
            assert!(number != before);
            before = number;
        }
        Ok(())
    }

    #[test]
    fn special_numbers_lead_to_no_place() {
        assert_eq!(Qpn::new(0).and_then(place_of), None);
        assert_eq!(Qpn::new(FIRST - 1).and_then(place_of), None);
        assert_eq!(Qpn::new(FIRST).and_then(place_of), Some(0));
    }
}
