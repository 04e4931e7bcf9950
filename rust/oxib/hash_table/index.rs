// SPDX-License-Identifier: GPL-2.0-only

//! A hash index of a list: key → place in the list.

use kernel::{
    alloc::KVVec,
    prelude::*, //
};

use super::Key;

/// Places by key. The keys themselves are in the list, which its owner shows: `key_at`.
pub(super) struct Index {
    /// A power of two, or none: 0, or a place and 1.
    slots: KVVec<u32>,
    used: usize,
    seed: u64,
}

/// Slots of the first array.
const FIRST: usize = 64;

impl Index {
    /// 2^64 divided by the golden ratio.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Makes an empty one.
    pub(super) fn new() -> Self {
        Self {
            slots: KVVec::new(),
            used: 0,
            // Odd, to be multiplied by.
            seed: super::random() | 1,
        }
    }

    fn hash(&self, key: &Key) -> usize {
        let word = u128::from_ne_bytes(key.0);
        let (low, high) = (word as u64, (word >> 64) as u64);
        // Multiplied twice, each time with the upper half brought down: the last bytes of an
        // address, by which addresses differ most, are the uppermost here.
        let mixed = (low ^ self.seed).wrapping_mul(Self::SPREAD) ^ high;
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(self.seed);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(Self::SPREAD);
        (mixed >> 32) as usize
    }

    /// Returns the slots that may have a key, in order.
    fn probe(&self, key: &Key) -> impl Iterator<Item = usize> {
        let (first, mask) = (self.hash(key), self.slots.len().wrapping_sub(1));
        (0..self.slots.len()).map(move |n| first.wrapping_add(n) & mask)
    }

    /// The place of a key.
    pub(super) fn find<'a>(
        &self,
        key: &Key,
        key_at: impl Fn(usize) -> Option<&'a Key>,
    ) -> Option<usize> {
        for slot in self.probe(key) {
            let place = (*self.slots.get(slot)? as usize).checked_sub(1)?;
            if key_at(place) == Some(key) {
                return Some(place);
            }
        }
        None
    }

    /// Makes room for one key more. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`: nothing has changed.
    pub(super) fn make_room<'a>(&mut self, key_at: impl Fn(usize) -> Option<&'a Key>) -> Result {
        if self.used < self.slots.len() / 2 {
            return Ok(());
        }
        let length = self.slots.len().saturating_mul(2).max(FIRST);
        let slots = KVVec::from_elem(0, length, GFP_KERNEL_ACCOUNT)?;
        self.slots = slots;
        for place in 0..core::mem::take(&mut self.used) {
            if let Some(key) = key_at(place) {
                self.enter(key, place);
            }
        }
        Ok(())
    }

    /// Enters a key that is not there; there is room.
    pub(super) fn enter(&mut self, key: &Key, place: usize) {
        let free = self
            .probe(key)
            .find(|&slot| self.slots.get(slot) == Some(&0));
        if let Some(slot) = free.and_then(|slot| self.slots.get_mut(slot)) {
            *slot = place as u32 + 1;
            self.used += 1;
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_hash_index)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_place() -> Result {
        let mut keys = KVec::new();
        for n in 0..3000u64 {
            let mut bytes = [0; 16];
            for (slot, byte) in bytes.iter_mut().zip((n / 2).to_be_bytes()) {
                *slot = byte;
            }
            bytes[15] = n as u8 & 1;
            keys.push(Key(bytes), GFP_KERNEL)?;
        }
        let mut index = Index::new();
        for (place, key) in keys.iter().enumerate() {
            assert_eq!(index.find(key, |at| keys.get(at)), None);
            index.make_room(|at| keys.get(at))?;
            index.enter(key, place);
        }
        for (place, key) in keys.iter().enumerate() {
            assert_eq!(index.find(key, |at| keys.get(at)), Some(place));
        }
        assert_eq!(index.find(&Key([0xff; 16]), |at| keys.get(at)), None);
        Ok(())
    }

    #[test]
    fn addresses_of_a_network_are_spread() -> Result {
        const NUMBER: usize = 4096;
        let index = Index::new();
        let mut taken = KVec::from_elem(false, NUMBER, GFP_KERNEL)?;
        for n in 0..NUMBER {
            // 10.0.0.0 and what follows.
            let bytes = (0xffff_0a00_0000 + n as u128).to_be_bytes();
            if let Some(slot) = taken.get_mut(index.hash(&Key(bytes)) % NUMBER) {
                *slot = true;
            }
        }
        // By chance it would be 2589.
        assert!(taken.iter().filter(|taken| **taken).count() > NUMBER / 2);
        Ok(())
    }
}
