// SPDX-License-Identifier: GPL-2.0-only

//! The path MTU: the payload that a packet may carry on a path.

use super::super::bits::Value;

/// The number for a path's packet payload (IBTA 12.6.5), four bits: 1 for 256 bytes to 5 for 4096.
/// A number from the wire may be another one.
///
/// # Invariants
///
/// The number has no more than four bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Mtu(u8);

impl Mtu {
    /// Takes the low four bits of a number.
    pub const fn new(number: u8) -> Mtu {
        // INVARIANT: What is above four bits is masked out.
        Mtu(number & 0xf)
    }

    /// The number, 4 bits, as it stands in a message.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The bytes of payload; `None` if the number is not defined.
    pub const fn bytes(self) -> Option<u16> {
        match self.0 {
            1..=5 => Some(128 << self.0),
            _ => None,
        }
    }
}

impl Value for Mtu {
    const BITS: u32 = 4;

    fn from_bits(bits: u32) -> Mtu {
        Mtu::new(bits as u8)
    }

    fn bits(self) -> u32 {
        u32::from(self.0)
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_cm_mtu))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_number() {
        let table = [
            (0, None),
            (1, Some(256)),
            (2, Some(512)),
            (3, Some(1024)),
            (4, Some(2048)),
            (5, Some(4096)),
            (6, None),
            (15, None),
        ];
        for (number, bytes) in table {
            assert_eq!(Mtu::new(number).bytes(), bytes);
            assert_eq!(Mtu::new(number).get(), number);
        }
    }
}
