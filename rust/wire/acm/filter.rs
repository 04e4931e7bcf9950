// SPDX-License-Identifier: GPL-2.0-only

//! The entries that a dump shows, or a flush takes out.

use core::net::IpAddr;

use super::super::gid::Gid;
use super::entry::to_key;
use super::source::Source;

/// A filter of entries: an entry passes if each part that is there accepts it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Filter {
    /// Addresses in this network.
    pub network: Option<Network>,
    /// Entries of this source.
    pub source: Option<Source>,
    /// Addresses of this GID.
    pub gid: Option<Gid>,
}

impl Filter {
    /// Returns whether an entry is meant.
    pub fn matches(&self, address: IpAddr, source: Source, gid: Gid) -> bool {
        self.network.is_none_or(|network| network.contains(address))
            && self.source.is_none_or(|wanted| wanted == source)
            && self.gid.is_none_or(|wanted| wanted == gid)
    }
}

/// Addresses with a common prefix, of one family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    is_ipv4: bool,
    key: u128,
    mask: u128,
}

impl Network {
    /// The network of `address`, by its first `length` bits; `None` if it does not have so many.
    pub fn new(address: IpAddr, length: u8) -> Option<Network> {
        let (all, before) = if address.is_ipv4() {
            (32, 96)
        } else {
            (128, 0)
        };
        if length > all {
            return None;
        }
        // IPv4 in its mapped form is below one prefix of 96 bits.
        let host = 128 - before - u32::from(length);
        let mask = u128::MAX.checked_shl(host).unwrap_or(0);
        Some(Network {
            is_ipv4: address.is_ipv4(),
            key: u128::from_be_bytes(to_key(address)) & mask,
            mask,
        })
    }

    /// Bits of an address of the same family.
    pub const fn longest(address: IpAddr) -> u8 {
        match address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        }
    }

    /// Returns whether an address is in it: one of the same family alone.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.is_ipv4
            && u128::from_be_bytes(to_key(address)) & self.mask == self.key
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_acm_filter))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;
    use core::net::{
        Ipv4Addr,
        Ipv6Addr, //
    };

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3));
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 9));

    #[test]
    fn networks() {
        let other = IpAddr::V4(Ipv4Addr::new(10, 1, 3, 3));
        for (length, itself, near, six) in [
            (0, true, true, false),
            (16, true, true, false),
            (23, true, true, false),
            (24, true, false, false),
            (32, true, false, false),
        ] {
            let network = Network::new(V4, length);
            assert_eq!(network.map(|n| n.contains(V4)), Some(itself));
            assert_eq!(network.map(|n| n.contains(other)), Some(near));
            assert_eq!(network.map(|n| n.contains(V6)), Some(six));
        }
        assert_eq!(Network::new(V4, 33), None);
        let other = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 9));
        for (length, near) in [(0, true), (62, true), (63, false), (128, false)] {
            let network = Network::new(V6, length);
            assert_eq!(network.map(|n| n.contains(V6)), Some(true));
            assert_eq!(network.map(|n| n.contains(other)), Some(near));
            assert_eq!(network.map(|n| n.contains(V4)), Some(false));
        }
        assert_eq!(Network::new(V6, 129), None);
    }

    #[test]
    fn all_parts_must_agree() {
        let gid = Gid::from_bytes([1; 16]);
        let all = Filter::default();
        assert!(all.matches(V4, Source::File, gid) && all.matches(V6, Source::Learned, gid));
        let one = Filter {
            network: Network::new(V4, 8),
            source: Some(Source::Sidr),
            gid: Some(gid),
        };
        assert!(one.matches(V4, Source::Sidr, gid));
        assert!(!one.matches(V6, Source::Sidr, gid));
        assert!(!one.matches(V4, Source::File, gid));
        assert!(!one.matches(V4, Source::Sidr, Gid::from_bytes([2; 16])));
    }
}
