// SPDX-License-Identifier: GPL-2.0-only

//! Packet sequence numbers, which wrap after 24 bits.

use core::fmt;

/// A packet sequence number (IBTA 9.2): 24 bits.
///
/// # Invariants
///
/// The value is at most [`Psn::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Psn(u32);

impl Psn {
    /// The largest number that 24 bits hold.
    pub const MAX: u32 = 0x00ff_ffff;

    /// Takes a number; `None` if it needs more than 24 bits.
    pub const fn new(number: u32) -> Option<Psn> {
        if number > Self::MAX {
            return None;
        }
        // INVARIANT: Checked just above.
        Some(Psn(number))
    }

    /// Takes the low 24 bits of a number, as sequence numbers wrap.
    pub const fn wrapping(number: u32) -> Psn {
        // INVARIANT: What is above 24 bits is masked out.
        Psn(number & Self::MAX)
    }

    /// The number in the low 24 bits, the high 8 being zero.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Takes three bytes in network byte order: every such value is a sequence number.
    pub const fn from_bytes(bytes: [u8; 3]) -> Psn {
        let [high, middle, low] = bytes;
        // INVARIANT: The highest of the four bytes is zero.
        Psn(u32::from_be_bytes([0, high, middle, low]))
    }

    /// Three bytes in network byte order, as they stand in a packet.
    pub const fn bytes(self) -> [u8; 3] {
        let [_, high, middle, low] = self.0.to_be_bytes();
        [high, middle, low]
    }
}

impl fmt::Debug for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_psn))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn twenty_four_bits() {
        let table: [(u32, Option<[u8; 3]>, u32); 4] = [
            (0, Some([0, 0, 0]), 0),
            (0x0012_3456, Some([0x12, 0x34, 0x56]), 0x0012_3456),
            (0x00ff_ffff, Some([0xff, 0xff, 0xff]), 0x00ff_ffff),
            (0x0100_0002, None, 2),
        ];
        for (number, bytes, wrapped) in table {
            let psn = Psn::new(number);
            assert_eq!(psn.map(Psn::bytes), bytes);
            assert_eq!(psn.map(Psn::get), bytes.map(|_| number));
            assert_eq!(bytes.map(Psn::from_bytes), psn);
            assert_eq!(Psn::wrapping(number).get(), wrapped);
        }
    }
}
