// SPDX-License-Identifier: GPL-2.0-only

//! Whether a message may be from a connection's peer, as far as names and addresses tell.

use super::wire::cm::comm_id::CommId;
use super::wire::gid::Gid;

/// The two names of a connection: ours and the peer's.
pub type Names = (CommId, CommId);

/// Returns whether the peer of the connection that we know by the names `known` may have sent a
/// message that says `named`. Nobody else knows both names; a peer with both may have got another
/// address meanwhile. Before the connection has both, what counts is where the message came from.
pub fn may_be(known: Names, named: Names, is_from_peer: impl FnOnce() -> bool) -> bool {
    (known.1 != CommId::ZERO && known == named) || is_from_peer()
}

/// The address of a node, as a path leads to it or as a message came from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    /// The prefix of the subnet of our port, in which the LID is valid; zeros on RoCE.
    pub subnet: [u8; 8],
    /// LID of the node or, if the node is in another subnet, of the router; 0 on RoCE.
    pub lid: u32,
    /// GID of the node, if packets have a global route header.
    pub gid: Option<Gid>,
}

impl Location {
    /// Returns whether both are addresses of one node. If both have a GID, the GIDs decide. Else
    /// both have to be in one subnet, as packets without a GID stay in theirs, and the LIDs
    /// decide without the lowest `lmc` bits, by which a port has several.
    pub fn is_same_node(&self, other: &Location, lmc: u8) -> bool {
        match (self.gid, other.gid) {
            (Some(one), Some(other)) => one == other,
            _ => self.subnets_alike(other) && self.port_lid(lmc) == other.port_lid(lmc),
        }
    }

    /// Returns whether both nodes are in one subnet, and it is that of our port.
    fn subnets_alike(&self, other: &Location) -> bool {
        self.subnet == other.subnet && self.is_local() && other.is_local()
    }

    /// Returns whether the node is in the subnet of our port, as far as its GID tells.
    fn is_local(&self) -> bool {
        self.gid
            .is_none_or(|gid| gid.is_link_local() || gid.prefix() == self.subnet)
    }

    fn port_lid(&self, lmc: u8) -> u32 {
        self.lid.checked_shr(lmc.into()).unwrap_or(0)
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(oxib_cm_peer))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn senders_that_may_be_the_peer() {
        let [ours, theirs, other] = [1, 2, 3].map(CommId::new);
        let nobody = CommId::ZERO;
        // The names that we know, those in the message, and whether an address of the peer's is
        // needed.
        let table = [
            ((ours, theirs), (ours, theirs), false),
            ((ours, theirs), (ours, other), true),
            ((ours, theirs), (other, theirs), true),
            ((ours, theirs), (ours, nobody), true),
            ((ours, nobody), (ours, nobody), true),
            ((ours, nobody), (ours, theirs), true),
        ];
        for (known, named, is_needed) in table {
            assert_eq!(may_be(known, named, || false), !is_needed);
            assert!(may_be(known, named, || true));
        }
    }

    const HERE: [u8; 8] = [0xfd, 0, 0, 0, 0, 0, 0, 1];
    const THERE: [u8; 8] = [0xfd, 0, 0, 0, 0, 0, 0, 2];
    const LINK_LOCAL: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];

    fn gid(prefix: [u8; 8], last: u8) -> Option<Gid> {
        let mut bytes = [0; Gid::LEN];
        for (byte, prefix) in bytes.iter_mut().zip(prefix) {
            *byte = prefix;
        }
        bytes[Gid::LEN - 1] = last;
        Some(Gid::from_bytes(bytes))
    }

    #[test]
    fn nodes_are_apart_unless_their_subnets_are_alike() {
        // The subnet of our port, LID and GID, of the peer and of the sender, and whether they are
        // one node.
        let table = [
            ((HERE, 7, None), (HERE, 7, None), true),
            ((HERE, 7, None), (HERE, 8, None), false),
            // By two ports of ours, in two subnets.
            ((HERE, 7, None), (THERE, 7, None), false),
            ((HERE, 7, gid(HERE, 1)), (THERE, 7, None), false),
            ((HERE, 7, None), (THERE, 7, gid(THERE, 1)), false),
            // The sender is behind the router that has the peer's LID.
            ((HERE, 7, None), (HERE, 7, gid(THERE, 1)), false),
            // The router that leads to the peer is the sender, or a node with the router's old LID.
            ((HERE, 7, gid(THERE, 1)), (HERE, 7, None), false),
            // One of them uses a global route header within the subnet.
            ((HERE, 7, None), (HERE, 7, gid(HERE, 1)), true),
            ((HERE, 7, None), (HERE, 7, gid(LINK_LOCAL, 1)), true),
            ((HERE, 7, gid(HERE, 1)), (HERE, 7, None), true),
            ((HERE, 7, gid(HERE, 1)), (HERE, 8, None), false),
            // By two routers.
            ((HERE, 7, gid(THERE, 1)), (HERE, 8, gid(THERE, 1)), true),
            ((HERE, 7, gid(THERE, 1)), (HERE, 7, gid(THERE, 2)), false),
            // RoCE.
            (([0; 8], 0, gid(HERE, 1)), ([0; 8], 0, gid(HERE, 1)), true),
            (([0; 8], 0, gid(HERE, 1)), ([0; 8], 0, gid(HERE, 2)), false),
        ];
        let location = |(subnet, lid, gid)| Location { subnet, lid, gid };
        for (peer, sender, is_same) in table {
            let (peer, sender) = (location(peer), location(sender));
            assert_eq!(peer.is_same_node(&sender, 0), is_same);
            assert_eq!(sender.is_same_node(&peer, 0), is_same);
        }
    }

    #[test]
    fn a_port_has_several_lids() {
        let location = |lid| Location {
            subnet: HERE,
            lid,
            gid: None,
        };
        assert!(location(16).is_same_node(&location(19), 2));
        assert!(!location(16).is_same_node(&location(19), 1));
        assert!(!location(16).is_same_node(&location(20), 2));
    }
}
