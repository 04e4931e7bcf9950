// SPDX-License-Identifier: GPL-2.0-only

//! A transmit queue's own table of address handles: GID → handle.
//!
//! It belongs to the holder of the queue's lock, so a look-up is a few comparisons: no other lock,
//! no reference count. What is not here is asked of the interface's table (`address.rs`).

use kernel::prelude::*;

use crate::{
    rdma::send::HandleId,
    wire::gid::Gid, //
};

/// Entries of one set.
const WAYS: usize = 4;

/// Sets; a power of two.
const SETS: usize = 128;

/// Most handles in a table.
pub(super) const ENTRIES: usize = WAYS * SETS;

/// A GID in the form that a look-up compares: two words.
///
/// LLVM takes a GID passed by value for sixteen single bytes and puts them together again, twice,
/// at 150 instructions a packet; two words out of memory are two loads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key([u64; 2]);

impl Key {
    /// Creates the key of the GID with these bytes.
    #[inline(always)]
    pub(super) fn new(gid: &[u8; Gid::LEN]) -> Self {
        Self(zerocopy::transmute!(*gid))
    }

    /// Returns the GID of the key.
    fn gid(self) -> Gid {
        Gid::from_bytes(zerocopy::transmute!(self.0))
    }

    /// The set that the GID belongs to.
    #[inline(always)]
    fn set(self) -> usize {
        let [high, low] = self.0;
        // Multiplicative hashing: the constant is 2^64 divided by the golden ratio.
        let mixed = (low ^ high.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - SETS.trailing_zeros())) as usize
    }
}

/// An address handle and its GID.
#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    handle: HandleId,
    /// Used since the last [`Cache::take_used`].
    used: bool,
}

/// The table: [`SETS`] sets of [`WAYS`] entries each.
pub(super) struct Cache(KVec<Option<Entry>>);

impl Cache {
    /// Creates an empty table.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        Ok(Self(KVec::from_elem(None, ENTRIES, GFP_KERNEL)?))
    }

    /// Bytes of memory that the table takes.
    pub(super) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<Option<Entry>>()
    }

    #[inline(always)]
    fn ways(&mut self, key: Key) -> &mut [Option<Entry>] {
        let start = key.set() * WAYS;
        self.0.get_mut(start..start + WAYS).unwrap_or_default()
    }

    /// The handle for a GID.
    #[inline(always)]
    pub(super) fn get(&mut self, key: Key) -> Option<HandleId> {
        for way in self.ways(key).iter_mut().flatten() {
            if way.key == key {
                way.used = true;
                return Some(way.handle);
            }
        }
        None
    }

    /// Makes room for a GID: returns the handle that has to go, if one has to.
    ///
    /// An unused entry goes first.
    pub(super) fn evict(&mut self, key: Key) -> Option<HandleId> {
        let ways = self.ways(key);
        if ways.iter().any(Option::is_none) {
            return None;
        }
        // If all are in use, any will do: the next packet to it costs a miss.
        let victim = ways
            .iter()
            .position(|way| way.is_some_and(|entry| !entry.used))
            .unwrap_or(0);
        ways.get_mut(victim)?.take().map(|entry| entry.handle)
    }

    /// Enters a GID, for which there is room ([`Self::evict`]).
    pub(super) fn insert(&mut self, key: Key, handle: HandleId) {
        if let Some(free) = self.ways(key).iter_mut().find(|way| way.is_none()) {
            *free = Some(Entry {
                key,
                handle,
                used: true,
            });
        }
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, gid: &Gid) -> Option<HandleId> {
        let key = Key::new(&gid.bytes());
        self.ways(key)
            .iter_mut()
            .find(|way| way.is_some_and(|entry| entry.key == key))?
            .take()
            .map(|entry| entry.handle)
    }

    /// Takes all entries out, one a call.
    pub(super) fn pop(&mut self) -> Option<HandleId> {
        let entry = self.0.iter_mut().find(|way| way.is_some())?.take()?;
        Some(entry.handle)
    }

    /// Notes in `out`, as far as it has room, the GIDs used since the last call.
    pub(super) fn take_used(&mut self, out: &mut KVec<Gid>) {
        for entry in self.0.iter_mut().flatten() {
            if core::mem::take(&mut entry.used) {
                // Callers bring room for all entries: a mark that is cleared is not lost.
                let _ = out.push_within_capacity(entry.key.gid());
            }
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_cache)]
mod tests {
    use super::*;

    fn gid(n: u32) -> Gid {
        let [a, b, c, d] = n.to_be_bytes();
        Gid::from_ipv4([a, b, c, d])
    }

    fn key(n: u32) -> Key {
        Key::new(&gid(n).bytes())
    }

    fn id(n: u16) -> HandleId {
        HandleId::for_test(n)
    }

    #[test]
    fn finds_what_was_entered() -> Result {
        let mut cache = Cache::new()?;
        assert_eq!(cache.get(key(1)), None);
        for n in 0..32u16 {
            let gid = key(0x0a00_0000 + u32::from(n));
            if cache.evict(gid).is_none() {
                cache.insert(gid, id(n));
                assert_eq!(cache.get(gid), Some(id(n)));
            }
        }
        cache.insert(key(7), id(99));
        assert_eq!(cache.remove(&gid(7)), Some(id(99)));
        assert_eq!(cache.remove(&gid(7)), None);
        assert_eq!(cache.get(key(7)), None);
        Ok(())
    }

    #[test]
    fn full_set_gives_up_the_unused_one() -> Result {
        let mut cache = Cache::new()?;
        // GIDs of one set, one more than it holds.
        let home = key(0).set();
        let mut same = KVec::new();
        for key in (0..100_000u32).map(key).filter(|key| key.set() == home) {
            same.push(key, GFP_KERNEL)?;
            if same.len() == WAYS + 1 {
                break;
            }
        }
        let (Some((extra, full)), Some(first)) = (same.split_last(), same.first()) else {
            return Err(EINVAL);
        };
        for (n, key) in full.iter().enumerate() {
            assert_eq!(cache.evict(*key), None);
            cache.insert(*key, id(n as u16));
        }
        let mut used = KVec::with_capacity(8, GFP_KERNEL)?;
        cache.take_used(&mut used);
        assert_eq!(used.len(), WAYS);
        // Only the first is used since: the second goes.
        assert_eq!(cache.get(*first), Some(id(0)));
        assert_eq!(cache.evict(*extra), Some(id(1)));
        cache.insert(*extra, id(9));
        assert_eq!(cache.get(*first), Some(id(0)));
        assert_eq!(cache.get(*extra), Some(id(9)));
        Ok(())
    }

    #[test]
    fn pop_empties() -> Result {
        let mut cache = Cache::new()?;
        for n in 0..5u16 {
            let gid = key(u32::from(n));
            if cache.evict(gid).is_none() {
                cache.insert(gid, id(n));
            }
        }
        let mut count = 0;
        while cache.pop().is_some() {
            count += 1;
        }
        assert!(count > 0);
        assert_eq!(cache.get(key(0)), None);
        Ok(())
    }
}
