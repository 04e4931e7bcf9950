// SPDX-License-Identifier: GPL-2.0-only

//! Names of connections: their communication IDs (IBTA 12.6).
//!
//! A message is taken for a connection by its names, so a stranger must not guess them. A node
//! that connects learns one of our names each time: consecutive numbers would tell it those of
//! others. So consecutive numbers are enciphered: each name still comes once in four thousand
//! million, and says nothing of the next.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use crate::wire::cm::CommId;

/// Rounds of the cipher for its size of block and key.
const ROUNDS: usize = 22;

/// Speck with blocks of 32 bits and keys of 64 (Beaulieu et al., "The SIMON and SPECK families of
/// lightweight block ciphers", 2013).
struct Cipher([u16; ROUNDS]);

impl Cipher {
    fn new(key: u64) -> Self {
        let word = |index: u32| (key >> (16 * index)) as u16;
        let mut round_key = word(0);
        let mut schedule = [word(1), word(2), word(3)];
        let mut keys = [0; ROUNDS];
        for (round, key) in keys.iter_mut().enumerate() {
            *key = round_key;
            let [next, ..] = schedule;
            let (word, key) = mix(next, round_key, round as u16);
            schedule = [schedule[1], schedule[2], word];
            round_key = key;
        }
        Self(keys)
    }

    fn encipher(&self, block: u32) -> u32 {
        let halves = ((block >> 16) as u16, block as u16);
        let (high, low) = self
            .0
            .iter()
            .fold(halves, |(high, low), key| mix(high, low, *key));
        u32::from(high) << 16 | u32::from(low)
    }
}

/// Computes a round of the cipher on both halves of a block.
fn mix(high: u16, low: u16, key: u16) -> (u16, u16) {
    let high = high.rotate_right(7).wrapping_add(low) ^ key;
    (high, low.rotate_left(2) ^ high)
}

/// The source of the node's names.
pub(super) struct Names {
    next: AtomicU32,
    cipher: Cipher,
}

impl Names {
    /// Creates names in another order for each `key`, from another place for each `first`. Both
    /// are random.
    pub(super) fn new(key: u64, first: u32) -> Self {
        Self {
            next: AtomicU32::new(first),
            cipher: Cipher::new(key),
        }
    }

    /// A name that was not used for long, and is not zero.
    pub(super) fn next(&self) -> CommId {
        loop {
            // Relaxed: each thread gets a number of its own, and nothing else depends on their
            // order.
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let name = self.cipher.encipher(number);
            if name != 0 {
                return CommId::new(name);
            }
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_cm_name)]
mod tests {
    use super::*;

    #[test]
    fn the_cipher_is_speck() {
        // The paper's test vector.
        let cipher = Cipher::new(0x1918_1110_0908_0100);
        assert_eq!(cipher.encipher(0x6574_694c), 0xa868_42f2);
    }

    #[test]
    fn two_in_a_row_do_not_tell_the_third() {
        let names = Names::new(0x0123_4567_89ab_cdef, 7);
        let [first, second, third] = [(); 3].map(|()| names.next().get());
        assert_ne!(second.wrapping_sub(first), third.wrapping_sub(second));
        assert_ne!(first ^ second, second ^ third);
        // Of numbers in a row, most pairs differ in the last bits alone.
        assert!((first ^ second).count_ones() > 4);
    }

    #[test]
    fn zero_is_no_name() {
        let names = Names::new(0, 0);
        for _ in 0..70_000 {
            assert_ne!(names.next().get(), 0);
        }
    }
}
