// SPDX-License-Identifier: GPL-2.0-only

//! Tables that many CPUs use at once.
//!
//! A table is divided by a hash of the key into shards, each with a lock of its own, so that no
//! lock is one that all connections share.

use core::hash::{
    Hash,
    Hasher, //
};

use kernel::{
    prelude::*,
    rbtree::{
        Entry,
        RBTree,
        RBTreeNodeReservation, //
    }, //
};

use super::machine::claim::{
    Names,
    Remote, //
};
use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    wire::cm::CommId, //
};

/// Shards of a table: a power of two, many times the CPUs that handle messages at once. A thousand
/// entries are four in each tree: going down the tree is most of what looking one up costs.
const SHARDS: usize = 256;

/// A map from `K` to `V`.
pub(super) struct Table<K, V> {
    shards: KVec<Shard<K, V>>,
}

/// A part of a map, with its lock.
type Shard<K, V> = Pin<KBox<IrqLock<RBTree<K, V>>>>;

/// There is a value under a key already.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Occupied;

/// Memory for an entry, taken before a lock is.
pub(super) struct Reserved<K, V>(RBTreeNodeReservation<K, V>);

impl<K, V> Reserved<K, V> {
    /// Allocates the memory of an entry.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(flags: kernel::alloc::Flags) -> Result<Self> {
        Ok(Self(RBTreeNodeReservation::new(flags)?))
    }
}

impl<K: Ord + Hash + Copy + Unpin, V: Clone + Unpin> Table<K, V> {
    /// Makes an empty table.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        let mut shards = KVec::with_capacity(SHARDS, GFP_KERNEL)?;
        for _ in 0..SHARDS {
            let shard = KBox::pin_init(new_irq_lock!(RBTree::new(), "oxib_cm_table"), GFP_KERNEL)?;
            shards.push(shard, GFP_KERNEL)?;
        }
        Ok(Self { shards })
    }

    /// Enters `value` under `key`, unless there is another already.
    ///
    /// # Errors
    ///
    /// There is another one. The caller does not get it: the caller may hold a lock, under which
    /// the last reference to a value must not be dropped.
    pub(super) fn claim(
        &self,
        key: K,
        value: V,
        memory: Reserved<K, V>,
    ) -> core::result::Result<(), Occupied> {
        self.claim_or(key, value, memory, |_| Occupied)
    }

    /// Enters `value` under `key`, unless there is another already.
    ///
    /// # Errors
    ///
    /// The information that `read` takes from the other one, with the lock of the shard held.
    fn claim_or<E>(
        &self,
        key: K,
        value: V,
        memory: Reserved<K, V>,
        read: impl FnOnce(&V) -> E,
    ) -> core::result::Result<(), E> {
        // What is not entered is dropped without the lock of the shard.
        let mut new = Some((value, memory));
        self.with(&key, |shard| match shard.entry(key) {
            Entry::Occupied(other) => Err(read(other.get())),
            Entry::Vacant(place) => {
                if let Some((value, memory)) = new.take() {
                    place.insert(value, memory.0);
                }
                Ok(())
            }
        })
    }

    /// Returns a copy of the value under `key`.
    pub(super) fn get(&self, key: &K) -> Option<V> {
        self.with(key, |shard| shard.get(key).cloned())
    }

    /// Returns copies of all values, of a table that has few.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn values(&self) -> Result<KVec<V>> {
        let mut values = KVec::new();
        for shard in &self.shards {
            // Atomic: the lock of the shard is held.
            shard.with(|shard| {
                shard
                    .values()
                    .try_for_each(|value| values.push(value.clone(), GFP_ATOMIC))
            })?;
        }
        Ok(values)
    }

    /// Calls `visit` for a copy of each value of which `is_wanted` is true, without a lock; only
    /// `is_wanted` is called with that of a shard held. Values are left out if there is no memory
    /// for their copies.
    pub(super) fn for_each_where(&self, is_wanted: impl Fn(&V) -> bool, mut visit: impl FnMut(V)) {
        let mut wanted = KVec::new();
        for shard in &self.shards {
            shard.with(|shard| {
                let mut values = shard.values().filter(|value| is_wanted(value));
                // Atomic: the lock of the shard is held.
                let _ = values.try_for_each(|value| wanted.push(value.clone(), GFP_ATOMIC));
            });
            wanted.drain_all().for_each(&mut visit);
        }
    }

    /// Takes out the value under `key`, if `is_it` says so.
    pub(super) fn remove_if(&self, key: &K, is_it: impl FnOnce(&V) -> bool) -> Option<V> {
        self.release(key, |value| is_it(value))
    }

    /// Changes the value under `key`, and takes it out if `change` says that nothing is left of
    /// it.
    pub(super) fn release(&self, key: &K, change: impl FnOnce(&mut V) -> bool) -> Option<V> {
        // The node is freed after the lock.
        let node = self.with(key, |shard| {
            if !change(shard.get_mut(key)?) {
                return None;
            }
            shard.remove_node(key)
        })?;
        Some(node.to_key_value().1)
    }

    /// Changes what stands under `key`, with the lock of its shard held.
    pub(super) fn update<R>(&self, key: &K, change: impl FnOnce(&mut V) -> R) -> Option<R> {
        self.with(key, |shard| shard.get_mut(key).map(change))
    }

    fn with<R>(&self, key: &K, critical: impl FnOnce(&mut RBTree<K, V>) -> R) -> R {
        // The lock of a shard is innermost: no other one is taken under it, nor a second shard's.
        let shard = hash(key) as usize % SHARDS;
        match self.shards.get(shard) {
            Some(shard) => shard.with(critical),
            // Not reached: there are `SHARDS` of them.
            None => critical(&mut RBTree::new()),
        }
    }
}

impl<T: Ord + Hash + Copy + Unpin> Names<T> for Table<Remote<T>, CommId> {
    type Memory = Reserved<Remote<T>, CommId>;

    fn claim(
        &self,
        name: Remote<T>,
        ours: CommId,
        memory: Self::Memory,
    ) -> core::result::Result<(), CommId> {
        self.claim_or(name, ours, memory, |other| *other)
    }

    fn release(&self, name: &Remote<T>, ours: CommId) {
        let _ = self.remove_if(name, |other| *other == ours);
    }
}

/// A hash that spreads small and consecutive numbers.
pub(super) fn hash(key: &impl Hash) -> u32 {
    // Not keyed: with chosen names a peer fills one shard at most, and its tree stays balanced.
    let mut hasher = Multiply(0);
    key.hash(&mut hasher);
    (hasher.0 >> 32) as u32
}

/// Multiplication by an odd constant near 2^64 / φ, which carries low bits upwards.
struct Multiply(u64);

impl Hasher for Multiply {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(29) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[kernel::prelude::kunit_tests(oxib_cm_table)]
mod tests {
    use core::sync::atomic::{
        AtomicU32,
        Ordering, //
    };

    use kernel::sync::Arc;

    use super::*;
    use crate::lock::interrupts_are_off;

    /// A value that counts its drops with no lock held.
    #[derive(Clone)]
    struct Unlocked(Arc<AtomicU32>);

    impl Drop for Unlocked {
        fn drop(&mut self) {
            if !interrupts_are_off() {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn values_are_dropped_without_the_lock() -> Result {
        let table = Table::new()?;
        let drops = Arc::new(AtomicU32::new(0), GFP_KERNEL)?;
        let claim = || -> Result<_> {
            let memory = Reserved::new(GFP_KERNEL)?;
            Ok(table.claim(1_u32, Unlocked(drops.clone()), memory))
        };
        assert_eq!(claim()?, Ok(()));
        assert_eq!(claim()?, Err(Occupied));
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        drop(table.remove_if(&1, |_| true));
        assert_eq!(drops.load(Ordering::Relaxed), 2);
        Ok(())
    }

    fn memory() -> Result<Reserved<(u32, u64), u8>> {
        Reserved::new(GFP_KERNEL)
    }

    #[test]
    fn entries_come_and_go() -> Result {
        let table = Table::new()?;
        for n in 0..500u32 {
            assert!(table.claim((n, 7), n as u8, memory()?).is_ok());
        }
        assert_eq!(table.claim((3, 7), 9, memory()?), Err(Occupied));
        assert_eq!(table.get(&(3, 7)), Some(3));
        assert_eq!(table.get(&(3, 8)), None);
        assert_eq!(table.remove_if(&(3, 7), |&value| value == 4), None);
        assert_eq!(table.remove_if(&(3, 7), |&value| value == 3), Some(3));
        assert_eq!(table.get(&(3, 7)), None);
        assert_eq!(table.update(&(4, 7), |value| *value += 1), Some(()));
        assert_eq!(table.get(&(4, 7)), Some(5));
        let less = |value: &mut u8| {
            *value -= 4;
            *value == 1
        };
        assert_eq!(table.update(&(4, 7), |value| *value = 9), Some(()));
        assert_eq!(table.release(&(4, 7), less), None);
        assert_eq!(table.release(&(4, 7), less), Some(1));
        assert_eq!(table.get(&(4, 7)), None);
        assert_eq!(table.values()?.len(), 498);
        let mut visited = 0;
        table.for_each_where(|&value| value == 7, |value| visited += u32::from(value));
        assert_eq!(visited, 14);
        Ok(())
    }

    #[test]
    fn consecutive_keys_are_spread() {
        let mut used = [0u32; SHARDS];
        for n in 0..SHARDS as u32 * 8 {
            if let Some(count) = used.get_mut(hash(&n) as usize % SHARDS) {
                *count += 1;
            }
        }
        assert!(used.iter().all(|&count| count < 32));
    }
}
