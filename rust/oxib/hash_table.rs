// SPDX-License-Identifier: GPL-2.0-only

//! The kernel's resizable hash table: any number of readers without a lock, one writer at a time.
//!
//! Keys have 16 bytes. Values are plain data that stays as it is while readers can see it; what
//! changes in place is atomic. An entry costs what its value has, and 24 bytes, and its share of
//! the buckets: 11 to 22 bytes while the table grows.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    sync::{
        lock::{
            mutex::MutexBackend,
            Guard, //
        },
        new_mutex,
        rcu,
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    types::Opaque, //
};

use crate::bindings;

mod batch;
mod index;
mod node;
mod tests;
mod walk;

pub(crate) use batch::{
    Batch,
    Refused, //
};
pub(crate) use node::{
    Key,
    Node,
    Retired,
    Slab, //
};
pub(crate) use walk::Walk;

use node::Linked;

/// Entries looked at, or entered, before others get their turn.
const TURN: usize = 1024;

/// Returns a random number that cannot be guessed from outside.
fn random() -> u64 {
    // SAFETY: Asks the kernel's generator, which is always there.
    let word = || u64::from(unsafe { bindings::oxib_random() });
    word() << 32 | word()
}

/// Lets others run, in the middle of what takes long. Sleeps.
fn rest() {
    // SAFETY: Callers hold nothing that forbids to sleep, as their documentation says.
    unsafe { bindings::oxib_rest() };
}

/// A table of `T`, with data `S` of the holder of the writer's lock.
///
/// # Invariants
///
/// The table is initialised, and all that is in it are [`Linked<T>`], which live until no reader
/// sees them. Only the holder of `writer` changes what is in it.
#[pin_data(PinnedDrop)]
pub(crate) struct Table<T: Send + Sync, S> {
    #[pin]
    raw: Opaque<bindings::rhashtable>,
    #[pin]
    writer: Mutex<S>,
    slab: Arc<Slab<T>>,
    _values: PhantomData<T>,
}

// SAFETY: Readers of any thread see `T` at the same time, and any thread frees it; the table has
// its own locks.
unsafe impl<T: Send + Sync, S: Send> Send for Table<T, S> {}
// SAFETY: Readers of any thread share `T`, as `T: Sync` allows; `S` is used under the lock
// `writer` alone, by any thread, as `S: Send`.
unsafe impl<T: Send + Sync, S: Send> Sync for Table<T, S> {}

impl<T: Send + Sync, S: Send> Table<T, S> {
    /// Makes an empty table with nodes from `slab`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(slab: Arc<Slab<T>>, state: S) -> Result<Arc<Self>> {
        Arc::pin_init(
            try_pin_init!(Self {
                // INVARIANT: Initialised here, and empty.
                raw <- Opaque::try_ffi_init(|slot: *mut bindings::rhashtable| {
                    // SAFETY: The slot is ours, and stays where it is.
                    kernel::error::to_result(unsafe { bindings::oxib_table_init(slot) })
                }),
                writer <- new_mutex!(state, "oxib_table"),
                slab,
                _values: PhantomData,
            }),
            GFP_KERNEL,
        )
    }

    /// Makes a node for an entry. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn node(&self, key: Key, value: T) -> Result<Node<T>> {
        self.slab.node(key, value)
    }

    /// Reads the value under `key`. Any context; never waits.
    #[inline]
    pub(crate) fn get<R>(&self, key: &Key, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.get_in(key, &rcu::read_lock(), read)
    }

    /// Reads the value under `key` for a caller that holds RCU already.
    #[inline]
    pub(crate) fn get_in<R>(
        &self,
        key: &Key,
        _rcu: &rcu::Guard,
        read: impl FnOnce(&T) -> R,
    ) -> Option<R> {
        // SAFETY: By the type invariant initialised; RCU is held.
        let found = unsafe { bindings::oxib_table_lookup(self.raw.get(), key.as_ptr()) };
        // SAFETY: By the type invariant what is found is such, and lives as long as RCU is held.
        let linked = unsafe { found.cast::<Linked<T>>().as_ref() }?;
        Some(read(linked.value()))
    }

    /// Takes the writer's lock. Sleeps.
    pub(crate) fn write(&self) -> Writer<'_, T, S> {
        Writer {
            table: self,
            state: self.writer.lock(),
        }
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        // SAFETY: By the type invariant initialised.
        unsafe { bindings::oxib_table_length(self.raw.get()) as usize }
    }

    /// Bytes that the table has in use: nodes and buckets.
    pub(crate) fn memory(&self) -> usize {
        // SAFETY: By the type invariant initialised.
        let buckets = unsafe { bindings::oxib_table_memory(self.raw.get()) };
        buckets.saturating_add(self.len().saturating_mul(size_of::<Linked<T>>()))
    }
}

#[pinned_drop]
impl<T: Send + Sync, S> PinnedDrop for Table<T, S> {
    fn drop(self: Pin<&mut Self>) {
        /// Frees a node of a table that is destroyed.
        ///
        /// # Safety
        ///
        /// Called with a node that nobody else refers to.
        unsafe extern "C" fn free(node: *mut c_void, _: *mut c_void) {
            // SAFETY: The table that is destroyed gives one of its nodes, which came from a `Slab`
            // and which nobody else refers to.
            unsafe { bindings::oxib_slab_free(node) };
        }
        // SAFETY: By the type invariant initialised. Readers hold a reference to the table, so
        // there are none; values are plain data, and need no drop.
        unsafe {
            bindings::rhashtable_free_and_destroy(self.raw.get(), Some(free), core::ptr::null_mut())
        };
    }
}

/// The right to change a table.
pub(crate) struct Writer<'a, T: Send + Sync, S: Send> {
    table: &'a Table<T, S>,
    state: Guard<'a, S, MutexBackend>,
}

impl<T: Send + Sync, S: Send + Unpin> Writer<'_, T, S> {
    /// The data that belongs to the writer.
    pub(crate) fn state(&mut self) -> &mut S {
        &mut self.state
    }

    /// The value under `key`. It stays there as long as the table is not changed.
    pub(crate) fn get(&self, key: &Key) -> Option<&T> {
        // SAFETY: Nobody but the holder of `self` takes nodes out, and that by `&mut self`.
        self.find(key).map(|node| unsafe { node.as_ref() }.value())
    }

    /// The writer's data, and the value under `key`.
    pub(crate) fn state_and(&mut self, key: &Key) -> Option<(&mut S, &T)> {
        let node = self.find(key)?;
        // SAFETY: As in `get`: both are borrowed from `self`, so no node is taken out meanwhile.
        Some((&mut *self.state, unsafe { node.as_ref() }.value()))
    }

    fn find(&self, key: &Key) -> Option<NonNull<Linked<T>>> {
        let _rcu = rcu::read_lock();
        // SAFETY: The table is initialised; RCU is held.
        let found = unsafe { bindings::oxib_table_lookup(self.table.raw.get(), key.as_ptr()) };
        NonNull::new(found.cast())
    }

    /// Enters a node. What was there under its key is returned. Sleeps.
    ///
    /// # Errors
    ///
    /// With the node: `ENOMEM`, `EBUSY` if the table could not grow. An entry that is there is
    /// always replaced.
    pub(crate) fn put(
        &mut self,
        node: Node<T>,
    ) -> core::result::Result<Option<Retired<T>>, (Error, Node<T>)> {
        self.put_with(node, |_, _| {})
    }

    /// Enters a node as [`Writer::put`] does. `hand_over` gets its value, which readers do not see
    /// yet, and the one that it is about to replace, which they see still.
    fn put_with(
        &mut self,
        node: Node<T>,
        hand_over: impl FnOnce(&T, &T),
    ) -> core::result::Result<Option<Retired<T>>, (Error, Node<T>)> {
        match self.find(node.key()) {
            None => self.insert(node).map(|()| None),
            Some(old) => {
                // SAFETY: In the table, and nobody but the holder of `self` takes nodes out.
                hand_over(node.value(), unsafe { old.as_ref() }.value());
                Ok(Some(self.exchange(old, node.into_raw())))
            }
        }
    }

    /// Enters a node under a key that is not there. The table may have to grow first, which its
    /// own work does in process context if it cannot be done at once.
    fn insert(&mut self, node: Node<T>) -> core::result::Result<(), (Error, Node<T>)> {
        /// Milliseconds to wait for memory, and for the table's work.
        const PATIENCE: (u32, u32) = (16, 1000);
        let (mut memory, mut work) = PATIENCE;
        loop {
            // SAFETY: The node is valid, and in no table.
            let result = kernel::error::to_result(unsafe {
                bindings::oxib_table_insert(self.table.raw.get(), node.as_ptr())
            });
            let patience = match result {
                Ok(()) => {
                    // The table's from now on.
                    node.into_raw();
                    return Ok(());
                }
                Err(EBUSY) => &mut work,
                Err(ENOMEM) => &mut memory,
                Err(error) => return Err((error, node)),
            };
            match (patience.checked_sub(1), result) {
                (Some(less), _) => *patience = less,
                (None, Err(error)) => return Err((error, node)),
                (None, Ok(())) => return Ok(()),
            }
            fsleep(Delta::from_millis(1));
        }
    }

    /// Puts a node into the place of another under the same key.
    fn exchange(&mut self, old: NonNull<Linked<T>>, new: NonNull<Linked<T>>) -> Retired<T> {
        // SAFETY: Both are valid and have one key; the old one is in the table, as only the
        // holder of `self` could take it out. So it is found there, and the call succeeds.
        unsafe {
            bindings::oxib_table_replace(
                self.table.raw.get(),
                old.as_ptr().cast(),
                new.as_ptr().cast(),
            )
        };
        // SAFETY: The old one is out of the table now.
        unsafe { Retired::from_raw(old) }
    }

    /// Puts an entry back into the place that another took.
    fn put_back(&mut self, old: Retired<T>) {
        match self.find(old.key()) {
            Some(new) => drop(self.exchange(new, old.into_raw())),
            // What took its place was taken out since.
            None => drop(old),
        }
    }

    /// Takes the entry under `key` out.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Retired<T>> {
        self.find(key).map(|node| self.unlink(node))
    }

    fn unlink(&mut self, node: NonNull<Linked<T>>) -> Retired<T> {
        // SAFETY: The node is in the table, as only the holder of `self` could take it out.
        unsafe { bindings::oxib_table_remove(self.table.raw.get(), node.as_ptr().cast()) };
        // SAFETY: It is out of the table now.
        unsafe { Retired::from_raw(node) }
    }

    /// Looks at all entries, and takes out those that `keep` does not want, which `removed` gets
    /// afterwards. Sleeps.
    pub(crate) fn retain(
        &mut self,
        mut keep: impl FnMut(&Key, &T) -> bool,
        mut removed: impl FnMut(&mut S, &Retired<T>),
    ) {
        // Where entries went between two parts of a walk, others may have been missed: then once
        // more.
        while self.retain_once(&mut keep, &mut removed) {}
    }
}
