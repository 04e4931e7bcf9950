// SPDX-License-Identifier: GPL-2.0-only

//! The source of an entry, which determines how far the entry is trusted.

use core::fmt;

/// The source of an entry. The numbers are those of the netlink attribute; the lower the number,
/// the higher the rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Source {
    /// A bulk load: files that the administrator distributes.
    File = 1,
    /// A single request of the administrator's.
    Netlink = 2,
    /// The peer's answer to a resolution of our own.
    Sidr = 3,
    /// Claims that a peer made about itself when it asked us.
    Learned = 4,
}

impl Source {
    /// All sources, highest rank first.
    pub const ALL: [Source; 4] = [Source::File, Source::Netlink, Source::Sidr, Source::Learned];

    /// Takes the number of netlink's attribute.
    pub const fn new(number: u8) -> Option<Source> {
        match number {
            1 => Some(Source::File),
            2 => Some(Source::Netlink),
            3 => Some(Source::Sidr),
            4 => Some(Source::Learned),
            _ => None,
        }
    }

    /// The number of netlink's attribute.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns whether an entry of this source stays as it is when `other` gives something else
    /// for its address.
    pub const fn outranks(self, other: Source) -> bool {
        self.number() < other.number()
    }

    /// Returns whether entries of this source come from the network, and not from the
    /// administrator.
    pub const fn is_network(self) -> bool {
        matches!(self, Source::Sidr | Source::Learned)
    }
}

/// Writes the name that netlink's specification and `oxib acm show` have for it.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::File => "file",
            Source::Netlink => "netlink",
            Source::Sidr => "sidr",
            Source::Learned => "learned",
        })
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_acm_source))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranks() {
        for number in 0..=u8::MAX {
            let source = Source::new(number);
            assert_eq!(source.is_some(), (1..=4).contains(&number));
            assert!(source.is_none_or(|source| source.number() == number));
        }
        for (place, source) in Source::ALL.iter().enumerate() {
            for (other_place, other) in Source::ALL.iter().enumerate() {
                assert_eq!(source.outranks(*other), place < other_place);
            }
        }
        assert!(!Source::File.is_network() && !Source::Netlink.is_network());
        assert!(Source::Sidr.is_network() && Source::Learned.is_network());
    }
}
