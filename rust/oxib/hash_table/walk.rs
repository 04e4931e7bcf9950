// SPDX-License-Identifier: GPL-2.0-only

//! Ways through a table.

use core::{
    ops::ControlFlow,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

use super::{
    node::Linked,
    rest,
    Key,
    Retired,
    Table,
    Writer,
    TURN, //
};
use crate::bindings;

/// Entries taken out before others get their turn.
const TAKEN: usize = 64;

/// A way through a table in parts, between which it may change. Entries that stay are seen: once,
/// or some twice if others come and go meanwhile.
///
/// # Invariants
///
/// The iterator is entered, at a place that does not change, and between two parts stopped.
pub(crate) struct Walk<T: Send + Sync, S: Send> {
    _table: Arc<Table<T, S>>,
    iterator: KBox<Opaque<bindings::rhashtable_iter>>,
}

// SAFETY: Between two parts the iterator is data of the table, under its lock.
unsafe impl<T: Send + Sync, S: Send> Send for Walk<T, S> {}

impl<T: Send + Sync, S: Send> Walk<T, S> {
    /// Begins one, once the table has taken the size for what it holds. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(table: Arc<Table<T, S>>) -> Result<Self> {
        let iterator = KBox::new(Opaque::uninit(), GFP_KERNEL)?;
        // SAFETY: The table is initialised.
        unsafe { bindings::oxib_table_settle(table.raw.get()) };
        // SAFETY: The table is initialised and lives as long as the value; the iterator is pinned
        // by its box, and exited before its end.
        unsafe { bindings::rhashtable_walk_enter(table.raw.get(), Opaque::get(&iterator)) };
        // INVARIANT: Just entered.
        Ok(Self {
            _table: table,
            iterator,
        })
    }

    /// Goes on until `visit` breaks; the next part begins with that entry again. `visit` must not
    /// sleep. Tells whether the end was reached.
    pub(crate) fn go_on(&mut self, mut visit: impl FnMut(&Key, &T) -> ControlFlow<()>) -> bool {
        let iterator = Opaque::get(&self.iterator);
        // SAFETY: By the type invariant.
        let mut part = unsafe { Part::<T>::start(iterator) };
        let mut step = part.peek();
        loop {
            match step {
                Step::End => return true,
                Step::Again => {}
                Step::At(node) => {
                    // SAFETY: Valid while the part lasts.
                    let linked = unsafe { node.as_ref() };
                    if visit(linked.key(), linked.value()).is_break() {
                        return false;
                    }
                }
            }
            step = part.next();
        }
    }
}

impl<T: Send + Sync, S: Send> Drop for Walk<T, S> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant entered, and stopped.
        unsafe { bindings::rhashtable_walk_exit(Opaque::get(&self.iterator)) };
    }
}

/// A part of a walk: RCU is held.
///
/// # Invariants
///
/// The iterator is started.
struct Part<T>(*mut bindings::rhashtable_iter, core::marker::PhantomData<T>);

/// Outcome of a step of the walk.
enum Step<T> {
    /// An entry, valid until the part ends.
    At(NonNull<Linked<T>>),
    /// The table has grown: from its beginning again.
    Again,
    /// The end of the table.
    End,
}

impl<T> Part<T> {
    /// Starts the iterator, which takes RCU until the value is dropped.
    ///
    /// # Safety
    ///
    /// The iterator is entered for a table of [`Linked<T>`], stopped, and not used otherwise
    /// while the value lives.
    unsafe fn start(iterator: *mut bindings::rhashtable_iter) -> Self {
        // SAFETY: The caller gives an iterator that is entered and stopped, and that this value
        // alone uses. If the table has grown, the iterator goes back to its beginning.
        unsafe { bindings::rhashtable_walk_start_check(iterator) };
        // INVARIANT: Just started.
        Self(iterator, core::marker::PhantomData)
    }

    /// Returns the entry at which the walk stands.
    fn peek(&mut self) -> Step<T> {
        // SAFETY: By the type invariant.
        Self::step(unsafe { bindings::rhashtable_walk_peek(self.0) })
    }

    /// Goes to the next entry, and returns it.
    fn next(&mut self) -> Step<T> {
        // SAFETY: By the type invariant.
        Self::step(unsafe { bindings::rhashtable_walk_next(self.0) })
    }

    fn step(found: *mut c_void) -> Step<T> {
        // SAFETY: Looks at the pointer's value.
        if unsafe { bindings::oxib_is_error(found) } {
            return Step::Again;
        }
        NonNull::new(found.cast()).map_or(Step::End, Step::At)
    }
}

impl<T> Drop for Part<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant started.
        unsafe { bindings::rhashtable_walk_stop(self.0) };
    }
}

impl<T: Send + Sync, S: Send + Unpin> Writer<'_, T, S> {
    /// Goes through the table once, and tells whether that must be done again.
    pub(super) fn retain_once(
        &mut self,
        keep: &mut impl FnMut(&Key, &T) -> bool,
        removed: &mut impl FnMut(&mut S, &Retired<T>),
    ) -> bool {
        let iterator = Opaque::uninit();
        // SAFETY: The table is initialised; the iterator does not move until it is exited below.
        unsafe { bindings::rhashtable_walk_enter(self.table.raw.get(), iterator.get()) };
        let mut again = false;
        loop {
            let mut taken = [const { None }; TAKEN];
            let (ended, number) = self.retain_part(iterator.get(), keep, &mut taken);
            for retired in taken.into_iter().flatten() {
                removed(self.state(), &retired);
            }
            if ended {
                break;
            }
            again |= number != 0;
            rest();
        }
        // SAFETY: Entered above, and stopped.
        unsafe { bindings::rhashtable_walk_exit(iterator.get()) };
        again
    }

    /// Does a part of [`Writer::retain_once`]: tells whether it came to the end, and how many
    /// entries were removed.
    fn retain_part(
        &mut self,
        iterator: *mut bindings::rhashtable_iter,
        keep: &mut impl FnMut(&Key, &T) -> bool,
        taken: &mut [Option<Retired<T>>; TAKEN],
    ) -> (bool, usize) {
        let mut number = 0;
        let mut slots = taken.iter_mut();
        // SAFETY: The caller's iterator is entered for our table, and stopped.
        let mut part = unsafe { Part::<T>::start(iterator) };
        for _ in 0..TURN {
            let node = match part.next() {
                Step::End => return (true, number),
                Step::Again => continue,
                Step::At(node) => node,
            };
            // SAFETY: Valid while the part lasts.
            let linked = unsafe { node.as_ref() };
            if keep(linked.key(), linked.value()) {
                continue;
            }
            number += 1;
            if let Some(slot) = slots.next() {
                *slot = Some(self.unlink(node));
            }
            if number == TAKEN {
                break;
            }
        }
        (false, number)
    }
}
