// SPDX-License-Identifier: GPL-2.0-only

//! Many changes of a table that are made all, or none of them.

use kernel::{
    alloc::KVVec,
    prelude::*, //
};

use super::{
    index::Index,
    rest,
    Key,
    Node,
    Retired,
    Writer,
    TURN, //
};

/// Entries to be put into a table, in the order in which they came, each key once.
pub(crate) struct Batch<T> {
    slots: KVVec<Slot<T>>,
    index: Index,
}

/// State of an entry of the batch.
enum Slot<T> {
    /// The entry waits for [`Batch::apply`].
    Waiting(Node<T>),
    /// The entry was put under this key, which was new. The table owns it.
    Entered(Key),
    /// The entry was put in the place of this one.
    Replaced(Retired<T>),
    /// The entry was removed again, or could not be put into the table.
    Undone,
}

// SAFETY: The values are the batch's, or plain data that readers of any thread see.
unsafe impl<T: Send + Sync> Send for Batch<T> {}

/// Reason why an entry cannot be added to a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// The entry at this place has the same key.
    Duplicate(usize),
    /// The kernel is short of memory.
    NoMemory,
}

impl<T: Send + Sync> Batch<T> {
    /// Makes an empty one.
    pub(crate) fn new() -> Self {
        Self {
            slots: KVVec::new(),
            index: Index::new(),
        }
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Adds an entry. Sleeps.
    ///
    /// # Errors
    ///
    /// The batch is as it was, and the entry gone.
    pub(crate) fn push(&mut self, node: Node<T>) -> Result<(), Refused> {
        let slots = &self.slots;
        let key_at = |place: usize| match slots.get(place) {
            Some(Slot::Waiting(node)) => Some(node.key()),
            _ => None,
        };
        if let Some(place) = self.index.find(node.key(), key_at) {
            return Err(Refused::Duplicate(place));
        }
        self.index
            .make_room(key_at)
            .map_err(|_| Refused::NoMemory)?;
        let (key, place) = (*node.key(), self.slots.len());
        self.slots
            .push(Slot::Waiting(node), GFP_KERNEL_ACCOUNT)
            .map_err(|_| Refused::NoMemory)?;
        self.index.enter(&key, place);
        Ok(())
    }

    /// The entries that wait.
    pub(crate) fn nodes(&mut self) -> impl Iterator<Item = &mut Node<T>> {
        self.slots.iter_mut().filter_map(|slot| match slot {
            Slot::Waiting(node) => Some(node),
            _ => None,
        })
    }

    /// Puts all entries into the table. `hand_over` gets the value of each that replaces another
    /// one just before readers see it, and the value that it replaces. Sleeps.
    ///
    /// # Errors
    ///
    /// The errors of [`Writer::put`]. The table is then as it was, and the batch empty.
    pub(crate) fn apply<S: Send + Unpin>(
        &mut self,
        writer: &mut Writer<'_, T, S>,
        mut hand_over: impl FnMut(&T, &T),
    ) -> Result {
        for place in 0..self.slots.len() {
            if place % TURN == 0 {
                rest();
            }
            let Some(slot) = self.slots.get_mut(place) else {
                break;
            };
            let Slot::Waiting(node) = core::mem::replace(slot, Slot::Undone) else {
                continue;
            };
            let key = *node.key();
            *slot = match writer.put_with(node, &mut hand_over) {
                Ok(None) => Slot::Entered(key),
                Ok(Some(old)) => Slot::Replaced(old),
                Err((error, _)) => {
                    self.undo(writer);
                    return Err(error);
                }
            };
        }
        Ok(())
    }

    /// Takes all that was put out again, last first.
    pub(super) fn undo<S: Send + Unpin>(&mut self, writer: &mut Writer<'_, T, S>) {
        while let Some(slot) = self.slots.pop() {
            match slot {
                Slot::Entered(key) => drop(writer.remove(&key)),
                Slot::Replaced(old) => writer.put_back(old),
                Slot::Waiting(_) | Slot::Undone => {}
            }
        }
    }

    /// Shows what was put and is still there: the key, the value, and the one that it took the
    /// place of. Sleeps.
    pub(crate) fn outcome<S: Send + Unpin>(
        &self,
        writer: &mut Writer<'_, T, S>,
        mut see: impl FnMut(&mut S, &Key, &T, Option<&T>),
    ) {
        for (place, slot) in self.slots.iter().enumerate() {
            if place % TURN == 0 {
                rest();
            }
            let (key, old) = match slot {
                Slot::Entered(key) => (key, None),
                Slot::Replaced(old) => (old.key(), Some(old.value())),
                Slot::Waiting(_) | Slot::Undone => continue,
            };
            // The caller may have taken it out since.
            let Some(new) = writer.find(key) else {
                continue;
            };
            // SAFETY: In the table, and stays there until `see` returns, as that has the writer's
            // data alone, and not the right to change the table.
            let linked = unsafe { new.as_ref() };
            see(writer.state(), linked.key(), linked.value(), old);
        }
    }
}
