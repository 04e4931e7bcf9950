// SPDX-License-Identifier: GPL-2.0-only

//! IPoIB's multicast groups on RoCE, where no subnet administrator makes them.
//!
//! RFC 4391 knows no RoCE. A multicast packet of RoCE v2 goes to an IP multicast group of the
//! Ethernet side, and soft-RoCE delivers it only if that group is an IPv4 one which the Ethernet
//! device has joined. So each MGID of an `ib0` is carried in an IPv4 group, and all nodes must
//! choose the same one without asking each other: it is a hash of the MGID.
//!
//! The groups lie in `239.64.0.0/10`, within the block for administratively scoped use
//! (RFC 2365), which no one assigns to protocols. Within that block this part keeps clear of
//! `239.0.0.0/24` and `239.128.0.0/24`: Ethernet multicast addresses hold the low 23 bits of the
//! group, these two ranges share theirs with `224.0.0.0/24`, and switches flood that without
//! regard to membership (RFC 4541 §2.1.2). The 22 bits that are left to the hash are all among
//! the 23, so different groups have different Ethernet addresses.
//!
//! Two MGIDs with colliding hashes share an IPv4 group. That is harmless: members of either get the
//! packets of both, and their IP layer drops those to destinations it has not joined, as it does
//! on Ethernet, where 32 groups share an address.

use super::gid::Gid;

/// `239.64.0.0`, the first of the groups.
const BASE: u32 = 0xef40_0000;

/// The number of low bits of the group that come from the hash.
const HASH_BITS: u32 = 22;

const HASH_MASK: u32 = (1 << HASH_BITS) - 1;

/// The 32-bit FNV-1a hash: small, the same on every machine, and good at spreading inputs that
/// differ in a few bits, as the MGIDs of a link do.
fn fnv1a(bytes: &[u8]) -> u32 {
    const OFFSET_BASIS: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(PRIME)
    })
}

/// The IPv4 group, network byte order, that carries this group of an IPoIB link on the Ethernet
/// side of a RoCE port.
///
/// The group is `239.64.0.0` plus the 32-bit FNV-1a hash of the 16 bytes of the MGID, folded to 22
/// bits by exclusive or of its high 10 bits onto its low 22. This is protocol: a node that did it
/// otherwise would not be heard.
pub fn group_for(mgid: &Gid) -> [u8; 4] {
    let hash = fnv1a(&mgid.bytes());
    let folded = (hash >> HASH_BITS) ^ (hash & HASH_MASK);
    (BASE | folded).to_be_bytes()
}

/// Returns the group as an IPv4-mapped GID, which is what the queue pair is attached to.
pub fn group_gid(mgid: &Gid) -> Gid {
    Gid::from_ipv4(group_for(mgid))
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_roce))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::super::mgid;
    use super::super::mgid::Scope;
    use super::super::pkey::Pkey;
    use super::*;

    #[test]
    fn published_hashes() {
        let table: [(&[u8], u32); 3] = [
            (b"", 0x811c_9dc5),
            (b"a", 0xe40c_292c),
            (b"foobar", 0xbf9c_f968),
        ];
        for (bytes, hash) in table {
            assert_eq!(fnv1a(bytes), hash);
        }
    }

    /// The mapping is protocol: these groups must not change from one version to the next.
    #[test]
    fn groups_on_ethernet() {
        let (pkey, scope) = (Pkey::DEFAULT, Scope::LinkLocal);
        let all_nodes = [0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01];
        let table = [
            (mgid::broadcast(pkey, scope), [239, 113, 202, 76]),
            (mgid::ipv4([224, 0, 0, 1], pkey, scope), [239, 92, 28, 189]),
            (mgid::ipv6(all_nodes, pkey, scope), [239, 97, 21, 93]),
        ];
        for (mgid, group) in table {
            assert_eq!(group_for(&mgid), group);
            assert_eq!(group_gid(&mgid).ipv4(), Some(group));
            assert!(group_gid(&mgid).is_multicast());
        }
    }
}
