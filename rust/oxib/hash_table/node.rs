// SPDX-License-Identifier: GPL-2.0-only

//! Entries of a table: their memory, and its owner at each time.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::bindings;

/// Key of an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(C, align(8))]
pub(crate) struct Key(pub(crate) [u8; bindings::OXIB_TABLE_KEY as usize]);

impl Key {
    /// The bytes, aligned as the table's hash function wants them.
    pub(super) fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr()
    }
}

/// An entry as the table has it.
#[repr(C)]
pub(super) struct Linked<T> {
    node: bindings::oxib_node,
    value: T,
}

impl<T> Linked<T> {
    /// The entry's value, shared with readers.
    #[inline]
    pub(super) fn value(&self) -> &T {
        &self.value
    }

    /// The entry's key, in its C part.
    pub(super) fn key(&self) -> &Key {
        const {
            assert!(core::mem::offset_of!(bindings::oxib_node, key) % align_of::<Key>() == 0);
            assert!(size_of::<Key>() == bindings::OXIB_TABLE_KEY as usize);
        }
        // SAFETY: The field is as long and, as checked, as aligned as the type, which is plain
        // bytes.
        unsafe { &*self.node.key.as_ptr().cast() }
    }
}

/// A kmem cache for the entries of tables.
///
/// # Invariants
///
/// The pointer is a valid cache for objects of [`Linked<T>`].
pub(crate) struct Slab<T>(NonNull<bindings::kmem_cache>, PhantomData<fn(T)>);

// SAFETY: Caches of objects are used from any thread.
unsafe impl<T> Send for Slab<T> {}
// SAFETY: The allocator locks its caches: threads may use one at the same time.
unsafe impl<T> Sync for Slab<T> {}

impl<T> Slab<T> {
    /// Makes one, which `/proc/slabinfo` calls `name`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(name: &'static CStr) -> Result<Arc<Self>> {
        const {
            // Entries are freed as they are, and have the alignment that the allocator gives by
            // itself.
            assert!(!core::mem::needs_drop::<T>());
            assert!(align_of::<Linked<T>>() <= 8);
        }
        let size = size_of::<Linked<T>>() as u32;
        // SAFETY: The name lives as long as the module, longer than the cache.
        let raw = unsafe { bindings::oxib_slab_create(name.as_char_ptr(), size) };
        // INVARIANT: Just made.
        Ok(Arc::new(
            Self(NonNull::new(raw).ok_or(ENOMEM)?, PhantomData),
            GFP_KERNEL,
        )?)
    }

    /// Makes a node. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn node(&self, key: Key, value: T) -> Result<Node<T>> {
        // SAFETY: By the type invariant.
        let raw = unsafe { bindings::oxib_slab_alloc(self.0.as_ptr()) }.cast::<Linked<T>>();
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        let node = bindings::oxib_node {
            head: bindings::rhash_head {
                next: core::ptr::null_mut(),
            },
            key: key.0,
        };
        // SAFETY: Just allocated for the type.
        unsafe { raw.write(Linked { node, value }) };
        // INVARIANT: Complete, and nobody's but ours.
        Ok(Node(raw))
    }
}

impl<T> Drop for Slab<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant valid, and nobody's any more: tables, which refer to us,
        // are gone. The call waits for objects that are being freed.
        unsafe { bindings::kmem_cache_destroy(self.0.as_ptr()) };
    }
}

/// An entry that is in no table.
///
/// # Invariants
///
/// The pointer is a complete entry that nobody else refers to.
pub(crate) struct Node<T>(NonNull<Linked<T>>);

// SAFETY: It owns the value.
unsafe impl<T: Send> Send for Node<T> {}
// SAFETY: A shared reference gives out the key and `&T` alone, and `T: Sync`.
unsafe impl<T: Sync> Sync for Node<T> {}

impl<T> Node<T> {
    /// The entry's key, by which it will be found.
    pub(crate) fn key(&self) -> &Key {
        // SAFETY: By the type invariant.
        unsafe { self.0.as_ref() }.key()
    }

    /// The entry's value, not shared yet.
    pub(crate) fn value(&self) -> &T {
        // SAFETY: By the type invariant.
        unsafe { self.0.as_ref() }.value()
    }

    /// Returns the pointer to the C part, which begins the entry.
    pub(super) fn as_ptr(&self) -> *mut bindings::oxib_node {
        self.0.as_ptr().cast()
    }

    /// Gives the memory to the caller, which owns it from now on.
    pub(super) fn into_raw(self) -> NonNull<Linked<T>> {
        core::mem::ManuallyDrop::new(self).0
    }
}

impl<T> Drop for Node<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant ours alone.
        unsafe { bindings::oxib_slab_free(self.0.as_ptr().cast()) };
    }
}

/// An entry that was taken out of a table; readers may see it still. Dropping it sleeps.
///
/// # Invariants
///
/// The pointer is a complete entry that is in no table, and nobody's but ours and readers'.
pub(crate) struct Retired<T>(NonNull<Linked<T>>);

impl<T> Retired<T> {
    /// Takes over an entry that has left its table, and that readers may still see.
    ///
    /// # Safety
    ///
    /// An entry that the caller has just taken out of its table.
    pub(super) unsafe fn from_raw(raw: NonNull<Linked<T>>) -> Self {
        // INVARIANT: The caller has just taken the entry out of its table, so only readers may
        // still see it.
        Self(raw)
    }

    /// The entry, to be entered again.
    pub(super) fn into_raw(self) -> NonNull<Linked<T>> {
        core::mem::ManuallyDrop::new(self).0
    }

    /// The entry's key, which may be in the table again with another value.
    pub(crate) fn key(&self) -> &Key {
        // SAFETY: By the type invariant.
        unsafe { self.0.as_ref() }.key()
    }

    /// The entry's value, shared with readers.
    pub(crate) fn value(&self) -> &T {
        // SAFETY: By the type invariant.
        unsafe { self.0.as_ref() }.value()
    }
}

impl<T> Drop for Retired<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant nobody finds it any more, and it is ours to free.
        unsafe { bindings::oxib_slab_free_later(self.0.as_ptr().cast()) };
    }
}
