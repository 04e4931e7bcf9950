// SPDX-License-Identifier: GPL-2.0-only

//! The names under which connections stand, and which connection takes a name from another.

#[allow(dead_code, reason = "each test uses its part")]
mod directory;

use directory::Directory;
use oxib_cm_machine::claim::{
    Adapter,
    Claims,
    Taken, //
};
use oxib_cm_machine::source::Source;
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::gid::Gid;
use oxib_wire::qpn::Qpn;

/// The peer's GUID, which any node may write.
const GUID: u64 = 0x51;

/// Bits of a LID that are not the port's.
const LMC: u8 = 2;

/// Our names for connections.
const FIRST: CommId = CommId::new(0xa1);
const SECOND: CommId = CommId::new(0xa2);

struct Tables {
    ids: Directory<CommId>,
    qpns: Directory<Qpn>,
}

impl Tables {
    fn new() -> Tables {
        Tables {
            ids: Directory::new(),
            qpns: Directory::new(),
        }
    }

    /// A message from `source` gives these names to the connection `ours`.
    fn claim(
        &self,
        ours: CommId,
        source: Source,
        (guid, id, qpn): (u64, u32, u8),
    ) -> Result<Claims, Taken> {
        let mut claims = Claims::default();
        claims.claim(
            ours,
            Adapter { guid, source },
            (&self.ids, CommId::new(id), ()),
            (&self.qpns, Qpn::from_bytes([0, 0, qpn]), ()),
        )?;
        Ok(claims)
    }

    fn release(&self, ours: CommId, claims: &mut Claims) {
        claims.release(ours, &self.ids, &self.qpns);
    }

    fn len(&self) -> (usize, usize) {
        (self.ids.len(), self.qpns.len())
    }
}

fn lid(lid: u32) -> Source {
    Source::new(lid, LMC, None)
}

fn behind(router: u32, last: u8) -> Source {
    let mut gid = [0x20; Gid::LEN];
    gid[Gid::LEN - 1] = last;
    Source::new(router, LMC, Some(Gid::from_bytes(gid)))
}

/// Outcomes of a second message with names of the first one.
#[test]
fn names_belong_to_the_address_that_they_came_from() {
    let (same, new) = ((GUID, 7, 9), (GUID, 8, 9));
    let duplicate = Some(Taken::Id(FIRST));
    let stale = Some(Taken::Qpn(FIRST));
    let peer = lid(16);
    let far = behind(32, 1);
    // The sources of both messages, the names of the second, and the holder of these.
    let table = [
        (peer, peer, same, duplicate),
        // The same queue pair for another connection: the first one is over.
        (peer, peer, new, stale),
        // By another LID of the same port.
        (peer, lid(19), same, duplicate),
        (peer, lid(19), new, stale),
        // A stranger was first, with all names of the peer.
        (lid(20), peer, same, None),
        (lid(20), peer, new, None),
        // The peer is back with another LID, or by its other port.
        (peer, lid(24), new, None),
        // A stranger says so.
        (peer, lid(24), same, None),
        // Behind a router all have its LID.
        (far, behind(32, 1), same, duplicate),
        (far, behind(32, 2), same, None),
        (far, behind(32, 2), new, None),
        // A neighbour writes the GID of a far peer into its packet.
        (behind(20, 1), far, new, None),
        // A node of another subnet has the LID of the peer there.
        (peer.in_subnet([1; 8]), peer.in_subnet([2; 8]), new, None),
        (peer.in_subnet([1; 8]), peer.in_subnet([2; 8]), same, None),
        // Another adapter has the address now.
        (peer, peer, (GUID + 1, 7, 9), None),
    ];
    for (first, second, names, expected) in table {
        let tables = Tables::new();
        let claims = tables.claim(FIRST, first, (GUID, 7, 9));
        assert!(claims.is_ok());
        let taken = tables.claim(SECOND, second, names).err();
        assert_eq!(taken, expected, "{first:?} {second:?} {names:?}");
    }
}

#[test]
fn a_refused_request_leaves_no_name_behind() {
    let tables = Tables::new();
    let mut first = tables.claim(FIRST, lid(16), (GUID, 7, 9)).unwrap();
    // The identifier is free, the queue pair is not.
    let taken = tables.claim(SECOND, lid(16), (GUID, 8, 9)).err();
    assert_eq!(taken, Some(Taken::Qpn(FIRST)));
    assert_eq!(tables.len(), (1, 1));
    tables.release(FIRST, &mut first);
    assert_eq!(tables.len(), (0, 0));
    // A second release takes nothing from later connections.
    let mut second = tables.claim(SECOND, lid(16), (GUID, 8, 9)).unwrap();
    tables.release(FIRST, &mut first);
    assert_eq!(tables.len(), (1, 1));
    tables.release(SECOND, &mut second);
    assert_eq!(tables.len(), (0, 0));
}

#[test]
fn a_peer_that_has_moved_is_elsewhere() {
    let tables = Tables::new();
    let claims = tables.claim(FIRST, lid(16), (GUID, 7, 9)).unwrap();
    assert!(!claims.are_from_elsewhere(lid(17)));
    assert!(claims.are_from_elsewhere(lid(20)));
    assert!(!Claims::default().are_from_elsewhere(lid(20)));
}
