// SPDX-License-Identifier: GPL-2.0-only

//! The addresses that messages come from.

use super::wire::gid::Gid;

/// The address that a message came from, as its headers have it.
///
/// On InfiniBand no node sends from the LID of another, while every node may write the GID of
/// another into a global route header. So the LID counts always. The nodes behind a router have
/// the LID of the router, so the GID counts besides where there is one. LIDs are those of one
/// subnet, so the subnet of the port here counts, too: a node may have ports in several. On RoCE
/// there are GIDs alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Source {
    lid: u32,
    gid: Option<Gid>,
    /// The prefix of the subnet that the message came from.
    subnet: [u8; 8],
}

impl Source {
    /// The source of a message from `lid`, 0 on RoCE, with `gid` in its global route header. A
    /// port has several LIDs, which differ in the lowest `lmc` bits: all of them are one source.
    ///
    /// The LMC of the sender's port is not known, so `lmc` is that of the port here. A sender
    /// with a larger one is several sources; senders with a smaller one may be one source.
    pub fn new(lid: u32, lmc: u8, gid: Option<Gid>) -> Source {
        Source {
            lid: lid.checked_shr(lmc.into()).unwrap_or(0),
            gid,
            subnet: [0; 8],
        }
    }

    /// Returns the same source by a port in the subnet that has this prefix.
    pub fn in_subnet(self, prefix: [u8; 8]) -> Source {
        Source {
            subnet: prefix,
            ..self
        }
    }

    /// The source without what its sender is free to write: on InfiniBand the LID alone. All nodes
    /// behind a router are one then.
    pub fn without_claims(self) -> Source {
        match self.lid {
            0 => self,
            _ => Source { gid: None, ..self },
        }
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(oxib_cm_source))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    fn gid(last: u8) -> Option<Gid> {
        let mut bytes = [0xfe; Gid::LEN];
        bytes[Gid::LEN - 1] = last;
        Some(Gid::from_bytes(bytes))
    }

    #[test]
    fn sources_that_are_one() {
        // LID and GID of two messages, the LMC, and whether one port sent both.
        let table = [
            ((16, None), (16, None), 0, true),
            ((16, None), (17, None), 0, false),
            // Two LIDs of one port, which has a larger LMC than ours.
            ((16, None), (18, None), 1, false),
            // Two LIDs of one port, or of two ports of which each has one.
            ((16, None), (19, None), 2, true),
            ((16, None), (20, None), 2, false),
            // Two nodes behind one router.
            ((16, gid(1)), (16, gid(2)), 0, false),
            ((16, gid(1)), (17, gid(1)), 1, true),
            // A GID that another node has written into its own packet.
            ((16, gid(1)), (17, gid(1)), 0, false),
            ((16, None), (17, gid(1)), 0, false),
            // RoCE.
            ((0, gid(1)), (0, gid(1)), 0, true),
            ((0, gid(1)), (0, gid(2)), 0, false),
        ];
        for (one, other, lmc, is_same) in table {
            let one = Source::new(one.0, lmc, one.1);
            let other = Source::new(other.0, lmc, other.1);
            assert_eq!((one == other), is_same);
        }
    }

    #[test]
    fn subnets_are_apart() {
        let [one, other] = [1, 2].map(|last| [0xfd, 0, 0, 0, 0, 0, 0, last]);
        for gid in [None, gid(1)] {
            let source = Source::new(16, 0, gid);
            assert_eq!(source.in_subnet(one), source.in_subnet(one));
            assert_ne!(source.in_subnet(one), source.in_subnet(other));
            let [one, other] = [one, other].map(|prefix| source.in_subnet(prefix));
            assert_ne!(one.without_claims(), other.without_claims());
        }
    }
}
