// SPDX-License-Identifier: GPL-2.0-only

//! Choices that a seed makes: the same ones on every machine.

/// A source of numbers: bytes that a fuzzer has chosen, and then those of a seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random {
    /// The last one comes first.
    chosen: Vec<u8>,
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random {
            chosen: Vec::new(),
            state: seed,
        }
    }

    /// A source that begins with these bytes.
    #[allow(dead_code, reason = "for the fuzz target")]
    pub fn chosen(bytes: &[u8]) -> Random {
        Random {
            chosen: bytes.iter().rev().copied().collect(),
            state: 0,
        }
    }

    /// Returns whether bytes are left that were chosen.
    #[allow(dead_code, reason = "for the fuzz target")]
    pub fn is_chosen(&self) -> bool {
        !self.chosen.is_empty()
    }

    fn next(&mut self, limit: u64) -> u64 {
        if self.is_chosen() {
            // As many bytes as the choice needs.
            let bytes = (64 - limit.leading_zeros()).div_ceil(8);
            return (0..bytes).fold(0, |number, _| {
                number << 8 | u64::from(self.chosen.pop().unwrap_or(0))
            });
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number less than this one.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next(limit) % limit.max(1)
    }

    /// Returns true with this probability, in percent.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// Chooses one of these, each with the same probability.
    pub fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
