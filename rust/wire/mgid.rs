// SPDX-License-Identifier: GPL-2.0-only

//! The multicast groups that carry IP (RFC 4391 §4).
//!
//! ```text
//! |   8    |  4 |  4 |     16    |   16  |          80          |
//! |11111111|0001|scop| signature | P_Key |  group within the IP |
//! ```

use super::gid::Gid;
use super::pkey::Pkey;

/// The reach of a group: the `scop` field of its MGID (IBTA 4.1.1).
///
/// All groups of an IPoIB link have the scope of its broadcast group (RFC 4391 §4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Scope {
    /// The subnet: what every IPoIB link has unless an administrator says otherwise.
    #[default]
    LinkLocal = 0x2,
    /// A single site (RFC 4291 §2.7).
    SiteLocal = 0x5,
    /// All sites of an organisation.
    OrganizationLocal = 0x8,
    /// All networks, without limit.
    Global = 0xe,
}

impl Scope {
    /// The four bits of the field.
    pub const fn get(self) -> u8 {
        self as u8
    }
}

impl TryFrom<u8> for Scope {
    /// The value that is reserved or unassigned.
    type Error = u8;

    fn try_from(value: u8) -> Result<Scope, u8> {
        [
            Scope::LinkLocal,
            Scope::SiteLocal,
            Scope::OrganizationLocal,
            Scope::Global,
        ]
        .into_iter()
        .find(|known| known.get() == value)
        .ok_or(value)
    }
}

/// The version of IP that an MGID belongs to: the 16 bits after its scope (RFC 4391 §4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u16)]
pub enum Signature {
    /// Groups of IPv4, and the broadcast group of the link.
    Ipv4 = 0x401b,
    /// Multicast groups of IPv6.
    Ipv6 = 0x601b,
}

impl Signature {
    /// The 16 bits, host byte order.
    pub const fn get(self) -> u16 {
        self as u16
    }
}

/// The flags nibble: a transient group, one that no authority assigned (IBTA 4.1.1).
const TRANSIENT: u8 = 0x10;

/// Puts an MGID together.
const fn compose(signature: Signature, pkey: Pkey, scope: Scope, group: [u8; 10]) -> Gid {
    let [s0, s1] = signature.get().to_be_bytes();
    let [p0, p1] = pkey.full().bytes();
    let [g0, g1, g2, g3, g4, g5, g6, g7, g8, g9] = group;
    let flags_scope = TRANSIENT | scope.get();
    Gid::from_bytes([
        0xff,
        flags_scope,
        s0,
        s1,
        p0,
        p1,
        g0,
        g1,
        g2,
        g3,
        g4,
        g5,
        g6,
        g7,
        g8,
        g9,
    ])
}

/// The group of an IPv4 multicast address in network byte order, of which the low 28 bits count
/// (RFC 4391 §4). The P_Key goes in with full membership, whichever it is given with.
pub const fn ipv4(group: [u8; 4], pkey: Pkey, scope: Scope) -> Gid {
    let [a, b, c, d] = group;
    compose(
        Signature::Ipv4,
        pkey,
        scope,
        [0, 0, 0, 0, 0, 0, a & 0x0f, b, c, d],
    )
}

/// The group of an IPv6 multicast address in network byte order, of which the low 80 bits count
/// (RFC 4391 §4). The P_Key goes in with full membership, whichever it is given with.
pub const fn ipv6(group: [u8; 16], pkey: Pkey, scope: Scope) -> Gid {
    let [_, _, _, _, _, _, id @ ..] = group;
    compose(Signature::Ipv6, pkey, scope, id)
}

/// The broadcast group of an IPoIB link, the one that its members join first (RFC 4391 §4): that
/// of 255.255.255.255 with all 32 bits. The P_Key goes in with full membership.
pub const fn broadcast(pkey: Pkey, scope: Scope) -> Gid {
    compose(
        Signature::Ipv4,
        pkey,
        scope,
        [0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
    )
}

/// Returns the group of the link in the partition of `pkey` that a sender means by the multicast
/// GID `gid`: that with the link's P_Key in the place that RFC 4391 §4 gives it. DHCP clients and
/// other programs that make link-layer addresses themselves leave these bytes zero.
pub const fn in_partition(gid: Gid, pkey: Pkey) -> Gid {
    let mut bytes = gid.bytes();
    [bytes[4], bytes[5]] = pkey.full().bytes();
    Gid::from_bytes(bytes)
}

/// Returns whether a multicast GID may be a group of the link with the given broadcast group: it
/// has the link's flags, scope and P_Key, and a signature with the low byte of IP (RFC 4391
/// §4).
pub fn is_of_link(gid: &Gid, broadcast: &Gid) -> bool {
    let [prefix, scope, _, signature, p0, p1, ..] = gid.bytes();
    let [own_prefix, own_scope, _, own_signature, own_p0, own_p1, ..] = broadcast.bytes();
    (prefix, scope, signature, p0, p1) == (own_prefix, own_scope, own_signature, own_p0, own_p1)
}

/// The traffic of its link that a group carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MgidKind {
    /// Broadcasts of IPv4, and ARP.
    Broadcast,
    /// The IPv4 multicast address, network byte order.
    Ipv4([u8; 4]),
    /// The low 80 bits of the IPv6 multicast address, network byte order. The 48 above them are
    /// not in the MGID.
    Ipv6([u8; 10]),
}

/// A multicast group of an IPoIB link, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mgid {
    /// The kind of traffic that the group carries.
    pub kind: MgidKind,
    /// The partition of the link, always with full membership.
    pub pkey: Pkey,
    /// The scope of the link.
    pub scope: Scope,
}

impl Mgid {
    /// Takes an MGID apart; `None` if it is not of the form that RFC 4391 §4 gives the groups of
    /// IPoIB links.
    pub fn parse(gid: &Gid) -> Option<Mgid> {
        let [0xff, flags_scope, s0, s1, p0, p1, id @ ..] = gid.bytes() else {
            return None;
        };
        let pkey = Pkey::new(u16::from_be_bytes([p0, p1]));
        if flags_scope & 0xf0 != TRANSIENT || !pkey.is_full_member() || !pkey.is_valid() {
            return None;
        }
        let signature = u16::from_be_bytes([s0, s1]);
        let kind = match id {
            id if signature == Signature::Ipv6.get() => MgidKind::Ipv6(id),
            _ if signature != Signature::Ipv4.get() => return None,
            [0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff] => MgidKind::Broadcast,
            [0, 0, 0, 0, 0, 0, a @ 0x00..=0x0f, b, c, d] => MgidKind::Ipv4([0xe0 | a, b, c, d]),
            _ => return None,
        };
        Some(Mgid {
            kind,
            pkey,
            scope: Scope::try_from(flags_scope & 0x0f).ok()?,
        })
    }

    /// The MGID put together again.
    pub const fn gid(&self) -> Gid {
        match self.kind {
            MgidKind::Broadcast => broadcast(self.pkey, self.scope),
            MgidKind::Ipv4(group) => ipv4(group, self.pkey, self.scope),
            MgidKind::Ipv6(group) => compose(Signature::Ipv6, self.pkey, self.scope, group),
        }
    }
}

/// Returns the kind of traffic that a group carries; `None` if it is not one of an IPoIB link.
/// See [`Mgid::parse`].
pub fn classify(gid: &Gid) -> Option<MgidKind> {
    Mgid::parse(gid).map(|mgid| mgid.kind)
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_mgid))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    const PKEY: Pkey = Pkey::new(0x8001);

    /// 224.0.0.251 on partition 0x8001, link-local.
    const MDNS: [u8; 16] = [
        0xff, 0x12, 0x40, 0x1b, 0x80, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfb,
    ];

    /// Replaces the byte at an index.
    fn with(mut bytes: [u8; 16], index: usize, value: u8) -> Gid {
        if let Some(byte) = bytes.get_mut(index) {
            *byte = value;
        }
        Gid::from_bytes(bytes)
    }

    #[test]
    fn groups_of_other_partitions_are_those_of_the_own_one() {
        for (p0, p1) in [(0, 0), (0xff, 0xff), (0x80, 0x01), (0x00, 0x01)] {
            let mut bytes = MDNS;
            [bytes[4], bytes[5]] = [p0, p1];
            assert_eq!(
                in_partition(Gid::from_bytes(bytes), PKEY),
                Gid::from_bytes(MDNS)
            );
        }
    }

    #[test]
    fn groups_of_a_link_have_its_scope_and_partition() {
        let own = broadcast(PKEY, Scope::LinkLocal);
        assert!(is_of_link(&Gid::from_bytes(MDNS), &own));
        assert!(is_of_link(&with(MDNS, 2, 0x60), &own));
        assert!(is_of_link(&with(MDNS, 15, 1), &own));
        for (index, value) in [(0, 0xfe), (1, 0x15), (3, 0x1c), (4, 0), (5, 2)] {
            assert!(!is_of_link(&with(MDNS, index, value), &own));
        }
    }

    #[test]
    fn mappings() {
        let solicited = [
            0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xff, 0x0f, 0xa1, 0xb1,
        ];
        let solicited_id = [0, 0, 0, 0, 0, 0x01, 0xff, 0x0f, 0xa1, 0xb1];
        let table = [
            (
                broadcast(Pkey::DEFAULT, Scope::LinkLocal),
                [
                    0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
                ],
                MgidKind::Broadcast,
            ),
            (
                ipv4([224, 0, 0, 251], PKEY, Scope::LinkLocal),
                MDNS,
                MgidKind::Ipv4([224, 0, 0, 251]),
            ),
            // The highest group of all: 28 bits set, not the 32 of the broadcast group.
            (
                ipv4([239, 255, 255, 255], PKEY, Scope::Global),
                [
                    0xff, 0x1e, 0x40, 0x1b, 0x80, 0x01, 0, 0, 0, 0, 0, 0, 0x0f, 0xff, 0xff, 0xff,
                ],
                MgidKind::Ipv4([239, 255, 255, 255]),
            ),
            // A limited member's key goes in as a full member's.
            (
                ipv6(solicited, Pkey::new(0x0001), Scope::SiteLocal),
                [
                    0xff, 0x15, 0x60, 0x1b, 0x80, 0x01, 0, 0, 0, 0, 0, 0x01, 0xff, 0x0f, 0xa1, 0xb1,
                ],
                MgidKind::Ipv6(solicited_id),
            ),
        ];
        for (mgid, bytes, kind) in table {
            assert_eq!(mgid.bytes(), bytes);
            assert_eq!(classify(&mgid), Some(kind));
            assert_eq!(Mgid::parse(&mgid).map(|parsed| parsed.gid()), Some(mgid));
        }
    }

    #[test]
    fn parts_of_an_mgid() {
        let parsed = Mgid {
            kind: MgidKind::Ipv4([224, 0, 0, 251]),
            pkey: PKEY,
            scope: Scope::LinkLocal,
        };
        assert_eq!(Mgid::parse(&Gid::from_bytes(MDNS)), Some(parsed));
    }

    #[test]
    fn other_groups() {
        let table = [
            Gid::ZERO,
            Gid::from_ipv4([224, 0, 0, 251]),
            // Not multicast, permanent, a reserved flag, a reserved scope.
            with(MDNS, 0, 0xfe),
            with(MDNS, 1, 0x02),
            with(MDNS, 1, 0x32),
            with(MDNS, 1, 0x10),
            with(MDNS, 1, 0x1f),
            // Other signatures: the SA's own, and both of IPoIB's with a bit changed.
            with(MDNS, 2, 0xa0),
            with(MDNS, 2, 0x41),
            with(MDNS, 3, 0x1a),
            // A limited member's key, and no partition's.
            with(MDNS, 4, 0x00),
            with(MDNS, 5, 0x00),
            // More than the 28 bits of an IPv4 group.
            with(MDNS, 6, 0x01),
            with(MDNS, 11, 0x01),
            with(MDNS, 12, 0x10),
        ];
        for gid in table {
            assert_eq!(Mgid::parse(&gid), None);
            assert_eq!(classify(&gid), None);
        }
    }

    #[test]
    fn scopes() {
        let known = [
            (0x2, Scope::LinkLocal),
            (0x5, Scope::SiteLocal),
            (0x8, Scope::OrganizationLocal),
            (0xe, Scope::Global),
        ];
        for value in 0..=u8::MAX {
            let scope = known.into_iter().find(|(number, _)| *number == value);
            let scope = scope.map(|(_, scope)| scope);
            assert_eq!(Scope::try_from(value), scope.ok_or(value));
        }
        assert_eq!(Scope::default(), Scope::LinkLocal);
    }
}
