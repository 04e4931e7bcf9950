// SPDX-License-Identifier: GPL-2.0-only

//! Partition keys (IBTA 10.9).

use core::fmt;

/// A partition key: 15 bits that name the partition and, highest, the membership bit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pkey(u16);

impl Pkey {
    /// Full membership of the default partition, the only key of a RoCE port (IBTA 10.9).
    pub const DEFAULT: Pkey = Pkey(0xffff);

    /// The membership bit: set for a full member, clear for a limited one (IBTA 10.9).
    const FULL_MEMBER: u16 = 0x8000;

    /// Takes a key in host byte order, as a P_Key table gives it. Every value is taken, the
    /// invalid ones too: see [`Pkey::is_valid`].
    pub const fn new(key: u16) -> Pkey {
        Pkey(key)
    }

    /// The key in host byte order.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Two bytes in network byte order, as they stand in a packet.
    pub const fn bytes(self) -> [u8; 2] {
        self.0.to_be_bytes()
    }

    /// Returns whether the key names a partition at all. One with low 15 bits of zero marks an
    /// unused entry of a P_Key table (IBTA 10.9).
    pub const fn is_valid(self) -> bool {
        self.base() != 0
    }

    /// Returns whether the key makes its holder a full member of the partition.
    pub const fn is_full_member(self) -> bool {
        self.0 & Self::FULL_MEMBER != 0
    }

    /// Returns the key of the same partition with full membership: the form that stands in the
    /// MGIDs of an IPoIB link (RFC 4391 §4).
    pub const fn full(self) -> Pkey {
        Pkey(self.0 | Self::FULL_MEMBER)
    }

    /// The 15 bits that name the partition.
    pub const fn base(self) -> u16 {
        self.0 & !Self::FULL_MEMBER
    }

    /// Returns whether a packet with this key may be taken by the holder of the other (IBTA
    /// 10.9.3): both name the same partition, and at least one is a full member of it.
    pub const fn matches(self, other: Pkey) -> bool {
        self.is_valid()
            && self.base() == other.base()
            && (self.is_full_member() || other.is_full_member())
    }
}

/// Writes the key as `/sys/class/net/*/pkey` does: `0x` and hexadecimal digits, here always four.
impl fmt::Display for Pkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

impl fmt::Debug for Pkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_pkey))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn parts_of_keys() {
        // Key, full member, valid, as a full member, base.
        let table = [
            (0xffff, true, true, 0xffff, 0x7fff),
            (0x7fff, false, true, 0xffff, 0x7fff),
            (0x8001, true, true, 0x8001, 0x0001),
            (0x0001, false, true, 0x8001, 0x0001),
            (0x8000, true, false, 0x8000, 0x0000),
            (0x0000, false, false, 0x8000, 0x0000),
        ];
        for (key, full_member, valid, full, base) in table {
            let pkey = Pkey::new(key);
            assert_eq!(pkey.get(), key);
            assert_eq!(pkey.is_full_member(), full_member);
            assert_eq!(pkey.is_valid(), valid);
            assert_eq!(pkey.full().get(), full);
            assert_eq!(pkey.base(), base);
        }
        assert_eq!(Pkey::new(0x8001).bytes(), [0x80, 0x01]);
        assert_eq!(Pkey::DEFAULT.get(), 0xffff);
    }

    #[test]
    fn matching() {
        let table = [
            // Same partition: full with full, full with limited, but not limited with limited.
            (0x8001, 0x8001, true),
            (0x8001, 0x0001, true),
            (0x0001, 0x0001, false),
            // The default partition is one like any other.
            (0xffff, 0x7fff, true),
            (0xffff, 0x8001, false),
            // Other partitions.
            (0x8001, 0x8002, false),
            (0x8001, 0x0002, false),
            // No partition at all.
            (0x8000, 0x8000, false),
            (0x8000, 0x0000, false),
            (0x0000, 0x8001, false),
        ];
        for (one, other, matches) in table {
            assert_eq!(Pkey::new(one).matches(Pkey::new(other)), matches);
            assert_eq!(Pkey::new(other).matches(Pkey::new(one)), matches);
        }
    }
}
