// SPDX-License-Identifier: GPL-2.0-only

//! Queue pair numbers, of 24 bits.

use core::fmt;

/// A queue pair number: 24 bits.
///
/// # Invariants
///
/// The value is at most [`Qpn::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Qpn(u32);

impl Qpn {
    /// The largest number that 24 bits hold.
    pub const MAX: u32 = 0x00ff_ffff;

    /// The destination of every multicast packet (IBTA 10.5).
    pub const MULTICAST: Qpn = Qpn(Self::MAX);

    /// Subnet management (IBTA 3.9.5).
    pub const SUBNET_MANAGEMENT: Qpn = Qpn(0);

    /// General services: where a port's connection manager is (IBTA 12.6.1).
    pub const GENERAL_SERVICES: Qpn = Qpn(1);

    /// Takes a number; `None` if it needs more than 24 bits.
    pub const fn new(number: u32) -> Option<Qpn> {
        if number > Self::MAX {
            return None;
        }
        // INVARIANT: Checked just above.
        Some(Qpn(number))
    }

    /// The number in the low 24 bits, the high 8 being zero.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Takes three bytes in network byte order: every such value is a queue pair number.
    pub const fn from_bytes(bytes: [u8; 3]) -> Qpn {
        let [high, middle, low] = bytes;
        // INVARIANT: The highest of the four bytes is zero.
        Qpn(u32::from_be_bytes([0, high, middle, low]))
    }

    /// Three bytes in network byte order, as they stand in a packet.
    pub const fn bytes(self) -> [u8; 3] {
        let [_, high, middle, low] = self.0.to_be_bytes();
        [high, middle, low]
    }

    /// Returns whether this is queue pair 0 (subnet management) or 1 (general services), which
    /// belong to the management layer and never to an interface.
    pub const fn is_special(self) -> bool {
        self.0 <= 1
    }
}

/// Writes the number as `rdma resource show qp` does: decimal.
impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_qpn))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn twenty_four_bits() {
        let table: [(u32, Option<[u8; 3]>); 7] = [
            (0, Some([0, 0, 0])),
            (1, Some([0, 0, 1])),
            (2, Some([0, 0, 2])),
            (0x0012_3456, Some([0x12, 0x34, 0x56])),
            (0x00ff_ffff, Some([0xff, 0xff, 0xff])),
            (0x0100_0000, None),
            (u32::MAX, None),
        ];
        for (number, bytes) in table {
            let qpn = Qpn::new(number);
            assert_eq!(qpn.map(Qpn::bytes), bytes);
            assert_eq!(qpn.map(Qpn::get), bytes.map(|_| number));
            assert_eq!(bytes.map(Qpn::from_bytes), qpn);
        }
        assert_eq!(Qpn::MULTICAST.bytes(), [0xff; 3]);
    }

    #[test]
    fn special_queue_pairs() {
        let table = [
            ([0, 0, 0], true),
            ([0, 0, 1], true),
            ([0, 0, 2], false),
            ([1, 0, 0], false),
            ([0xff, 0xff, 0xff], false),
        ];
        for (bytes, special) in table {
            assert_eq!(Qpn::from_bytes(bytes).is_special(), special);
        }
    }
}
