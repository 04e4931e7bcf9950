// SPDX-License-Identifier: GPL-2.0-only

//! Local identifiers (IBTA 4.1.3).

use core::fmt;

/// The 16-bit address of a port within its subnet, given to it by the subnet manager.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lid(u16);

impl Lid {
    /// The reserved one: that of every RoCE port, and of a path that is not there.
    pub const ZERO: Lid = Lid(0);

    /// The permissive one, which every port takes for its own, and which stands in a message for an
    /// address that its sender does not know.
    pub const PERMISSIVE: Lid = Lid(0xffff);

    /// The first that names a multicast group; between it and the permissive one all do.
    pub const FIRST_MULTICAST: Lid = Lid(0xc000);

    /// Takes a number in host byte order: every one is a local identifier of some kind.
    pub const fn new(number: u16) -> Lid {
        Lid(number)
    }

    /// The number in host byte order.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Returns whether this can be the address of one port.
    pub const fn is_unicast(self) -> bool {
        self.0 != 0 && self.0 < Self::FIRST_MULTICAST.0
    }

    /// Returns whether both are addresses of one port of which `lmc` low bits are its own to choose
    /// (LMC, IBTA 4.1.3).
    pub const fn is_same_port(self, other: Lid, lmc: u8) -> bool {
        // More than the largest LMC is as much as that.
        let own = if lmc < 7 { lmc } else { 7 };
        (self.0 ^ other.0) >> own == 0
    }

    /// Returns whether this names a multicast group.
    pub const fn is_multicast(self) -> bool {
        self.0 >= Self::FIRST_MULTICAST.0 && self.0 != Self::PERMISSIVE.0
    }
}

/// Writes the number as `rdma link show` does: decimal.
impl fmt::Display for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_lid))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_addresses() {
        let table = [
            (0, false, false),
            (1, true, false),
            (0xbfff, true, false),
            (0xc000, false, true),
            (0xfffe, false, true),
            (0xffff, false, false),
        ];
        for (number, unicast, multicast) in table {
            assert_eq!(Lid::new(number).get(), number);
            assert_eq!(Lid::new(number).is_unicast(), unicast);
            assert_eq!(Lid::new(number).is_multicast(), multicast);
        }
        assert_eq!(Lid::PERMISSIVE, Lid::new(0xffff));
        assert_eq!(Lid::ZERO, Lid::new(0));
    }

    #[test]
    fn a_port_has_as_many_addresses_as_its_lmc_says() {
        for (one, other, lmc, expected) in [
            (8, 8, 0, true),
            (8, 9, 0, false),
            (8, 9, 1, true),
            (9, 8, 1, true),
            (8, 10, 1, false),
            (8, 15, 3, true),
            (7, 8, 3, false),
            (0xbf80, 0xbfff, 7, true),
            (0xbf80, 0xbfff, 200, true),
            (0xbf7f, 0xbf80, 200, false),
        ] {
            let (one, other) = (Lid::new(one), Lid::new(other));
            assert_eq!(one.is_same_port(other, lmc), expected);
        }
    }
}
