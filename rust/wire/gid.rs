// SPDX-License-Identifier: GPL-2.0-only

//! The global identifier of a port or of a multicast group (IBTA 4.1.1).

use core::fmt;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

/// A 128-bit global identifier, in network byte order.
///
/// It has the form of an IPv6 address, and on a RoCE port it is one: an IPv6 address of the
/// Ethernet device, or an IPv4 address in its IPv4-mapped form (IBTA annex A17).
///
/// Ordering is that of the bytes, so that GIDs of one subnet are neighbours.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(transparent)]
pub struct Gid([u8; Self::LEN]);

impl Gid {
    /// The length of a GID in bytes.
    pub const LEN: usize = 16;

    /// The reserved GID: what an unset entry of a GID table reads as (IBTA 4.1.1).
    pub const ZERO: Gid = Gid([0; Self::LEN]);

    /// The first twelve bytes of an IPv4-mapped address (RFC 4291 §2.5.5.2).
    const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

    /// The default prefix, that of every link-local unicast GID (IBTA 4.1.1).
    const LINK_LOCAL: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];

    /// The loopback GID, which no port may have (IBTA 4.1.1).
    const LOOPBACK: Gid = Gid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

    /// Takes the 16 bytes of a GID as they stand on the wire.
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Gid {
        Gid(bytes)
    }

    /// The 16 bytes as they stand on the wire.
    pub const fn bytes(&self) -> [u8; Self::LEN] {
        self.0
    }

    /// The first half, which is the prefix of the port's subnet in its own GIDs.
    pub const fn prefix(&self) -> [u8; 8] {
        let [p0, p1, p2, p3, p4, p5, p6, p7, ..] = self.bytes();
        [p0, p1, p2, p3, p4, p5, p6, p7]
    }

    /// The second half, which is a port's GUID in its own GIDs.
    pub const fn guid(&self) -> [u8; 8] {
        let [.., g0, g1, g2, g3, g4, g5, g6, g7] = self.bytes();
        [g0, g1, g2, g3, g4, g5, g6, g7]
    }

    /// Returns the GID with this prefix and another GUID.
    pub const fn with_guid(self, guid: [u8; 8]) -> Gid {
        let [p0, p1, p2, p3, p4, p5, p6, p7, ..] = self.bytes();
        let [g0, g1, g2, g3, g4, g5, g6, g7] = guid;
        Gid::from_bytes([
            p0, p1, p2, p3, p4, p5, p6, p7, g0, g1, g2, g3, g4, g5, g6, g7,
        ])
    }

    /// Returns whether this is the reserved GID, all zeros.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Returns whether this names a multicast group: `ff00::/8` (IBTA 4.1.1), or, on RoCE v2, the
    /// IPv4-mapped form of a group in `224.0.0.0/4` (IBTA annex A17).
    pub fn is_multicast(&self) -> bool {
        let [first, ..] = self.0;
        first == 0xff || self.ipv4().is_some_and(|[first, ..]| first & 0xf0 == 0xe0)
    }

    /// Returns whether this is a link-local unicast GID: `fe80::/64`, ten bits `1111111010`, then
    /// 54 zero bits, then the port's GUID (IBTA 4.1.1). Routers do not forward it.
    ///
    /// The rest of IPv6's `fe80::/10` is not link-local here: IBTA wants the 54 bits zero.
    pub fn is_link_local(&self) -> bool {
        self.0.starts_with(&Self::LINK_LOCAL)
    }

    /// The IPv4-mapped GID `::ffff:a.b.c.d` of an IPv4 address in network byte order.
    pub const fn from_ipv4(address: [u8; 4]) -> Gid {
        let [a, b, c, d] = address;
        Gid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d])
    }

    /// The IPv4 address in network byte order, if this is an IPv4-mapped GID.
    pub fn ipv4(&self) -> Option<[u8; 4]> {
        let [.., a, b, c, d] = self.0;
        self.0.starts_with(&Self::MAPPED).then_some([a, b, c, d])
    }

    /// Returns whether packets to this GID can reach a port of another subnet: it is a unicast
    /// GID that a port can have (neither reserved nor loopback) and not a link-local one.
    pub fn is_routable(&self) -> bool {
        !self.is_zero() && *self != Self::LOOPBACK && !self.is_multicast() && !self.is_link_local()
    }
}

/// Writes the GID as `/sys/class/infiniband/*/ports/*/gids/*` shows it: eight groups of four
/// lowercase hexadecimal digits, nothing left out.
impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for pair in self.0.chunks_exact(2) {
            f.write_str(separator)?;
            for byte in pair {
                write!(f, "{byte:02x}")?;
            }
            separator = ":";
        }
        Ok(())
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_gid))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    /// The columns of a GID's properties: multicast, link-local, routable, IPv4 address.
    type Row = ([u8; 16], bool, bool, bool, Option<[u8; 4]>);

    const TABLE: &[Row] = &[
        // Reserved, loopback.
        ([0; 16], false, false, false, None),
        (
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            false,
            false,
            false,
            None,
        ),
        // fe80::2:c903:f:a1b1, a port under the default prefix.
        (
            [
                0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0x0f, 0xa1, 0xb1,
            ],
            false,
            true,
            false,
            None,
        ),
        // fe80:0:0:1::1 is in IPv6's fe80::/10, but not in IBTA's link-local prefix.
        (
            [0xfe, 0x80, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1],
            false,
            false,
            true,
            None,
        ),
        // fec0:0:0:1::1, site-local, and 2001:db8::1, global.
        (
            [0xfe, 0xc0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1],
            false,
            false,
            true,
            None,
        ),
        (
            [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            false,
            false,
            true,
            None,
        ),
        // ff12:401b:ffff::ffff:ffff, the broadcast group, and the last GID of all.
        (
            [
                0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
            ],
            true,
            false,
            false,
            None,
        ),
        ([0xff; 16], true, false, false, None),
        // ::ffff:192.0.2.1, and the IPv4 groups' first, last and the neighbours of both.
        (
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1],
            false,
            false,
            true,
            Some([192, 0, 2, 1]),
        ),
        (
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 223, 255, 255, 255],
            false,
            false,
            true,
            Some([223, 255, 255, 255]),
        ),
        (
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 224, 0, 0, 0],
            true,
            false,
            false,
            Some([224, 0, 0, 0]),
        ),
        (
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 255, 255, 255],
            true,
            false,
            false,
            Some([239, 255, 255, 255]),
        ),
        (
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 240, 0, 0, 0],
            false,
            false,
            true,
            Some([240, 0, 0, 0]),
        ),
        // Almost IPv4-mapped: a wrong byte at either end of the twelve.
        (
            [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 64, 0, 1],
            false,
            false,
            true,
            None,
        ),
        (
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 239, 64, 0, 1],
            false,
            false,
            true,
            None,
        ),
    ];

    #[test]
    fn another_guid() {
        let gid = Gid::from_bytes([
            0xfe, 0x80, 0, 0, 0, 0, 0, 1, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x0f, 0xa1, 0xb1,
        ]);
        let other = gid.with_guid([1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(
            other.bytes(),
            [0xfe, 0x80, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8]
        );
        assert_eq!(other.guid(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(other.with_guid([0, 2, 0xc9, 3, 0, 0xf, 0xa1, 0xb1]), gid);
    }

    #[test]
    fn classes_of_gids() {
        for (bytes, multicast, link_local, routable, ipv4) in TABLE {
            let gid = Gid::from_bytes(*bytes);
            assert_eq!(gid.bytes(), *bytes);
            assert_eq!(gid.is_zero(), *bytes == [0; 16]);
            assert_eq!(gid.is_multicast(), *multicast);
            assert_eq!(gid.is_link_local(), *link_local);
            assert_eq!(gid.is_routable(), *routable);
            assert_eq!(gid.ipv4(), *ipv4);
        }
    }

    #[test]
    fn ipv4_mapped_bytes() {
        let golden = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1];
        assert_eq!(Gid::from_ipv4([192, 0, 2, 1]).bytes(), golden);
    }
}
