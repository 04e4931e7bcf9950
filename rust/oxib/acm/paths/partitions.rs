// SPDX-License-Identifier: GPL-2.0-only

//! The partitions in which an administrator asks for paths.

use kernel::prelude::*;

use crate::wire::pkey::Pkey;

/// Number of partitions that there can be.
const NUMBER: usize = 1 << 15;

/// Number of partitions in a word of the set.
const IN_WORD: usize = u64::BITS as usize;

/// A set of partitions, with a bit for each that there can be. Paths are compared with it while
/// their table is locked, and a namespace may have interfaces in thousands of partitions.
pub(crate) struct Partitions {
    words: KVec<u64>,
    is_empty: bool,
}

impl Partitions {
    /// Creates an empty set.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            words: KVec::from_elem(0, NUMBER / IN_WORD, GFP_KERNEL)?,
            is_empty: true,
        })
    }

    /// Adds the partition of a P_Key.
    pub(crate) fn add(&mut self, pkey: Pkey) {
        let (word, bit) = place(pkey);
        if let Some(word) = self.words.get_mut(word) {
            *word |= bit;
            self.is_empty = false;
        }
    }

    /// Returns whether there are no partitions in the set.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Returns whether the partition of a P_Key is in the set.
    pub(super) fn has(&self, pkey: Pkey) -> bool {
        let (word, bit) = place(pkey);
        self.words.get(word).is_some_and(|word| *word & bit != 0)
    }
}

/// Returns the number of the word for a P_Key's partition, and its bit there.
fn place(pkey: Pkey) -> (usize, u64) {
    let base = usize::from(pkey.base());
    (base / IN_WORD, 1 << (base % IN_WORD))
}

#[kernel::prelude::kunit_tests(oxib_acm_partitions)]
mod tests {
    use super::*;

    #[test]
    fn members_are_those_that_were_added() -> Result {
        let mut partitions = Partitions::new()?;
        assert!(partitions.is_empty());
        let all = [0, 1, 63, 64, 0x1234, 0x7fff];
        for added in 0..=all.len() {
            for (index, base) in all.iter().enumerate() {
                // Full and limited members are in one partition.
                for number in [*base, *base | 0x8000] {
                    assert_eq!(partitions.has(Pkey::new(number)), index < added);
                }
            }
            if let Some(base) = all.get(added) {
                partitions.add(Pkey::new(*base | 0x8000));
            }
            assert!(!partitions.is_empty());
        }
        for other in [2, 62, 65, 0x1233, 0x7ffe] {
            assert!(!partitions.has(Pkey::new(other)));
        }
        Ok(())
    }
}
