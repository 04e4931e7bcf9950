// SPDX-License-Identifier: GPL-2.0-only

//! Memory that is contiguous to the holder of its key, and in few pieces to the kernel: a list of
//! runs of pages. A gigabyte of a program may be one run, or a quarter of a million.

use kernel::prelude::*;

use crate::provider::memory::Memory;

/// A piece of memory with its place in the whole.
struct Run {
    /// Bytes of the runs before it.
    place: usize,
    memory: Memory,
}

/// Runs of memory, one behind the other.
pub(crate) struct Runs {
    runs: KVVec<Run>,
    length: usize,
}

impl Runs {
    /// Creates an empty list with room for `runs` runs.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn with_room(runs: usize) -> Result<Self> {
        Ok(Self {
            runs: KVVec::with_capacity(runs, GFP_KERNEL_ACCOUNT)?,
            length: 0,
        })
    }

    /// Adds a run behind the others.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is no room; `EOVERFLOW` for more bytes than there can be.
    pub(crate) fn push(&mut self, memory: Memory) -> Result {
        let place = self.length;
        self.length = place.checked_add(memory.len()).ok_or(EOVERFLOW)?;
        self.runs
            .push_within_capacity(Run { place, memory })
            .map_err(|_| ENOMEM)
    }

    /// Returns whether `length` bytes from a place are in the runs, however many these are.
    pub(crate) fn has(&self, place: usize, length: usize) -> bool {
        place
            .checked_add(length)
            .is_some_and(|end| end <= self.length)
    }

    /// Runs `each` on the parts that `length` bytes from a place have in the runs. `None` if not
    /// all of them are there; then it may have been run on some.
    pub(crate) fn walk(
        &self,
        mut place: usize,
        length: usize,
        mut each: impl FnMut(Memory),
    ) -> Option<()> {
        let behind = self.runs.partition_point(|run| run.place <= place);
        let mut runs = self.runs.get(behind.checked_sub(1)?..)?.iter();
        let mut left = length;
        while left != 0 {
            let run = runs.next()?;
            let inside = place.checked_sub(run.place)?;
            let part = left.min(run.memory.len().checked_sub(inside)?);
            each(run.memory.part(inside, part)?);
            place += part;
            left -= part;
        }
        Some(())
    }
}

#[kernel::prelude::kunit_tests(softib_runs)]
mod tests {
    use super::*;
    use crate::provider::region::kernel_memory;

    const LENGTHS: [usize; 4] = [1, 5, 2, 8];
    const LENGTH: usize = 16;

    /// Runs a test with numbered bytes, in runs of these lengths, which lie in memory in the
    /// opposite order.
    fn with_runs(test: impl FnOnce(&Runs)) -> Result {
        let mut bytes = KVec::from_elem(0_u8, LENGTH, GFP_KERNEL)?;
        let mut runs = Runs::with_room(LENGTHS.len())?;
        let (mut number, mut end) = (0, LENGTH);
        for length in LENGTHS {
            end -= length;
            for byte in &mut bytes[end..][..length] {
                *byte = number;
                number += 1;
            }
            runs.push(memory_of(&bytes[end..][..length])?)?;
        }
        test(&runs);
        Ok(())
    }

    fn memory_of(bytes: &[u8]) -> Result<Memory> {
        kernel_memory(bytes.as_ptr() as u64, bytes.len()).ok_or(EFAULT)
    }

    /// Returns whether the bytes from a place on are found, and are the right ones.
    fn finds(runs: &Runs, place: usize, length: usize) -> bool {
        let mut next = place;
        let found = runs.walk(place, length, |part| {
            let mut bytes = [0; LENGTH];
            part.read(&mut bytes);
            for byte in &bytes[..part.len()] {
                assert_eq!(usize::from(*byte), next);
                next += 1;
            }
        });
        found.is_some() && next == place + length
    }

    #[test]
    fn bytes_are_found_across_runs() -> Result {
        with_runs(|runs| {
            for place in 0..=LENGTH {
                for length in 0..=LENGTH - place {
                    assert!(finds(runs, place, length));
                    assert!(runs.has(place, length));
                }
            }
        })
    }

    #[test]
    fn bytes_beyond_the_end_are_not_there() -> Result {
        with_runs(|runs| {
            assert!(!finds(runs, 0, LENGTH + 1));
            assert!(!finds(runs, LENGTH, 1));
            assert!(!finds(runs, LENGTH + 1, 1));
            assert!(!finds(runs, usize::MAX, 2));
            assert!(!runs.has(0, LENGTH + 1));
            assert!(!runs.has(LENGTH, 1));
            assert!(!runs.has(LENGTH + 1, 0));
            assert!(!runs.has(usize::MAX, 2));
        })
    }

    #[test]
    fn more_runs_than_there_is_room_for_are_refused() -> Result {
        let bytes = KVec::from_elem(0_u8, 1, GFP_KERNEL)?;
        let memory = memory_of(&bytes)?;
        let mut runs = Runs::with_room(1)?;
        for _ in 0..runs.runs.capacity() {
            runs.push(memory)?;
        }
        assert_eq!(runs.push(memory), Err(ENOMEM));
        Ok(())
    }
}
