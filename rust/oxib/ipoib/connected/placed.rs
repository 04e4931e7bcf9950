// SPDX-License-Identifier: GPL-2.0-only

//! A list of connections that each leave without a search: when a device goes, tens of thousands
//! end one after the other.

use core::{
    ops::Deref,
    sync::atomic::{
        AtomicUsize,
        Ordering, //
    }, //
};

use kernel::prelude::*;

/// The place of an element in its list.
pub(super) struct Place(AtomicUsize);

impl Default for Place {
    /// Returns the place of an element that is in no list.
    fn default() -> Self {
        Self(AtomicUsize::new(usize::MAX))
    }
}

/// An element of a [`PlacedList`]. It is in one list at most.
pub(super) trait Placed {
    /// Returns the element's place; `None` for an element that never leaves alone.
    fn place(&self) -> Option<&Place>;
}

/// A list whose elements know their places. The order of the list means nothing.
pub(super) struct PlacedList<T>(KVec<T>);

impl<T> Default for PlacedList<T> {
    fn default() -> Self {
        Self(KVec::new())
    }
}

impl<T> Deref for PlacedList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Placed> PlacedList<T> {
    /// Adds an element. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn push(&mut self, element: T) -> Result {
        self.0.push(element, GFP_KERNEL)?;
        self.note_place(self.0.len() - 1);
        Ok(())
    }

    /// Takes the element with that place out of the list; `None` if it is not in this list.
    pub(super) fn remove(&mut self, place: &Place) -> Option<T> {
        // Relaxed, here and below: places change by the only reference to the list.
        let index = place.0.load(Ordering::Relaxed);
        let found = self.0.get(index)?.place()?;
        // The place may be one in a list that has been taken away as a whole.
        if !core::ptr::eq(found, place) {
            return None;
        }
        let last = self.0.len() - 1;
        self.0.swap(index, last);
        self.note_place(index);
        self.0.pop()
    }

    /// Tells the element at `index` that it is there.
    fn note_place(&self, index: usize) {
        if let Some(place) = self.0.get(index).and_then(Placed::place) {
            place.0.store(index, Ordering::Relaxed);
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_connected_placed)]
mod tests {
    use core::cell::Cell;

    use kernel::sync::Arc;

    use super::*;

    /// An element that counts, with all others, how often places are looked at.
    struct Counting<'a> {
        place: Place,
        looks: &'a Cell<usize>,
    }

    impl Placed for Arc<Counting<'_>> {
        fn place(&self) -> Option<&Place> {
            self.looks.set(self.looks.get() + 1);
            Some(&self.place)
        }
    }

    type List<'a> = PlacedList<Arc<Counting<'a>>>;

    /// Adds an element to a list, and returns it.
    fn add<'a>(list: &mut List<'a>, looks: &'a Cell<usize>) -> Result<Arc<Counting<'a>>> {
        let place = Place::default();
        let element = Arc::new(Counting { place, looks }, GFP_KERNEL)?;
        list.push(element.clone())?;
        Ok(element)
    }

    #[test]
    fn elements_leave_without_a_search() -> Result {
        const NUMBER: usize = 1000;
        let looks = Cell::new(0);
        let mut list = PlacedList::default();
        let mut elements = KVec::new();
        for _ in 0..NUMBER {
            elements.push(add(&mut list, &looks)?, GFP_KERNEL)?;
        }
        looks.set(0);
        for element in &elements {
            let removed = list.remove(&element.place);
            assert!(removed.is_some_and(|removed| Arc::ptr_eq(&removed, element)));
        }
        assert!(list.is_empty());
        // At the element itself, and at the one that gets its place.
        assert!(looks.get() <= 2 * NUMBER);
        Ok(())
    }

    #[test]
    fn elements_leave_once_and_no_others_with_them() -> Result {
        let looks = Cell::new(0);
        let mut list = PlacedList::default();
        let first = add(&mut list, &looks)?;
        let second = add(&mut list, &looks)?;
        let third = add(&mut list, &looks)?;
        assert!(list.remove(&first.place).is_some());
        // Another one has its place by now.
        assert!(list.remove(&first.place).is_none());
        assert!(list.remove(&Place::default()).is_none());
        assert_eq!(list.len(), 2);
        assert!(list.remove(&third.place).is_some());
        // A session that closes takes the whole list away; what ends then is in the other one.
        let taken = core::mem::take(&mut list);
        let fourth = add(&mut list, &looks)?;
        assert!(list.remove(&second.place).is_none());
        assert!(list.remove(&fourth.place).is_some());
        assert_eq!((list.len(), taken.len()), (0, 1));
        Ok(())
    }
}
