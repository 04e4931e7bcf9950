// SPDX-License-Identifier: GPL-2.0-only

//! The source of a connection's packets (IBTA 9.6.1.5): a queue pair takes those of its peer alone.

use super::wire::{
    gid::Gid,
    lid::Lid, //
};

/// An address of the other end of a connection: the one that the queue pair was given, or the
/// source that a packet names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The LID of the port, or of the router on the way to it.
    pub lid: Lid,
    /// The GID of the port; `None` without a global route header.
    pub gid: Option<Gid>,
}

impl Address {
    /// Returns whether packets from `source` are those of this peer, at a port whose subnet has
    /// that GID prefix.
    ///
    /// The LID is compared bit by bit: the peer's path bits are part of the path. A packet that has
    /// passed a router has that router's LID, and the way back may lead to another router of the
    /// subnet. Within a subnet the LID is enough, so one end may use a global route header where
    /// the other does not; a GID of another subnet is compared in any case.
    pub fn is_source(&self, source: &Address, prefix: u64) -> bool {
        match (self.gid, source.gid) {
            (None, None) => self.lid == source.lid,
            (Some(peer), Some(gid)) => {
                is_same_port(&peer, &gid, prefix)
                    && (self.lid == source.lid || !is_local(&peer, prefix))
            }
            (Some(gid), None) | (None, Some(gid)) => {
                self.lid == source.lid && is_local(&gid, prefix)
            }
        }
    }
}

/// Returns whether a GID is one of the subnet of that prefix.
fn is_local(gid: &Gid, prefix: u64) -> bool {
    gid.is_link_local() || gid.bytes().starts_with(&prefix.to_be_bytes())
}

/// Returns whether two GIDs are the same port's: each port of the subnet has one with the subnet's
/// prefix and one with the default prefix.
fn is_same_port(one: &Gid, other: &Gid, prefix: u64) -> bool {
    let both_local = is_local(one, prefix) && is_local(other, prefix);
    one == other || (both_local && one.guid() == other.guid())
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(softib_transport_source))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    const DEFAULT: u64 = 0xfe80 << 48;
    const HERE: u64 = 0xfec0_0000_0000_0001;
    const THERE: u64 = 0xfec0_0000_0000_0002;

    fn gid(prefix: u64, guid: u64) -> Option<Gid> {
        let bytes = (u128::from(prefix) << 64 | u128::from(guid)).to_be_bytes();
        Some(Gid::from_bytes(bytes))
    }

    #[test]
    fn packets_of_the_peer_alone() {
        let table = [
            // Within a subnet: the LID, path bits included.
            ((4, None), (4, None), true),
            ((4, None), (5, None), false),
            // A global route header on one side alone: the LID, and a GID of the subnet.
            ((4, None), (4, gid(HERE, 1)), true),
            ((4, None), (4, gid(DEFAULT, 1)), true),
            ((4, None), (5, gid(HERE, 1)), false),
            ((4, None), (4, gid(THERE, 1)), false),
            ((4, gid(HERE, 1)), (4, None), true),
            ((4, gid(DEFAULT, 1)), (4, None), true),
            ((4, gid(HERE, 1)), (5, None), false),
            // Within a subnet, with global route headers: both.
            ((4, gid(HERE, 1)), (4, gid(HERE, 1)), true),
            ((4, gid(HERE, 1)), (5, gid(HERE, 1)), false),
            ((4, gid(HERE, 1)), (4, gid(HERE, 2)), false),
            // A port of the subnet has the default prefix, too.
            ((4, gid(HERE, 1)), (4, gid(DEFAULT, 1)), true),
            ((4, gid(DEFAULT, 1)), (4, gid(HERE, 1)), true),
            ((4, gid(DEFAULT, 1)), (5, gid(HERE, 1)), false),
            ((4, gid(DEFAULT, 1)), (4, gid(THERE, 1)), false),
            // Another subnet: by any router, as long as the GID is the peer's.
            ((9, gid(THERE, 1)), (9, gid(THERE, 1)), true),
            ((9, gid(THERE, 1)), (10, gid(THERE, 1)), true),
            ((9, gid(THERE, 1)), (9, gid(THERE, 2)), false),
            ((9, gid(THERE, 1)), (9, gid(HERE, 1)), false),
            ((9, gid(THERE, 1)), (9, gid(DEFAULT, 1)), false),
            ((9, gid(THERE, 1)), (9, None), false),
        ];
        for (peer, source, taken) in table {
            let [peer, source] = [peer, source].map(|(lid, gid)| Address {
                lid: Lid::new(lid),
                gid,
            });
            assert_eq!(peer.is_source(&source, HERE), taken);
        }
    }
}
