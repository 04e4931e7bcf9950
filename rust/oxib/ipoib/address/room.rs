// SPDX-License-Identifier: GPL-2.0-only

//! Room for destinations, and which of them give way when there is none.
//!
//! A destination that was not found tells nothing but not to look for it yet. So it gives way to
//! another one, wherever it comes from: invented destinations take no room from peers.

use super::{
    Destinations,
    Handle,
    State, //
};
use crate::wire::gid::Gid;

/// Most destinations, so that a scan of a large network does not take all memory.
pub(super) const DESTINATIONS: usize = 16_384;

/// Number of destinations from which on there is little room for others.
pub(super) const CROWD: usize = DESTINATIONS - DESTINATIONS / 16;

/// Time after which an unused peer is forgotten then, in seconds. As long as the port's own table
/// of paths has room for the path, the subnet administrator is not asked again.
pub(super) const CROWD_LIFETIME_SECS: u64 = 10;

/// Share of the destinations and searches that groups take at most: any program can send to as
/// many as it likes, and peers are to be found all the same.
pub(super) const GROUP_SHARE: usize = 2;

/// Number of destinations that are looked at for one that can give way: a transmit queue is locked
/// meanwhile.
const STEPS: usize = 1024;

/// The first GID in the table's order.
pub(super) const FIRST: Gid = Gid::from_bytes([0; Gid::LEN]);

/// A number of destinations or searches.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) all: usize,
    /// Number of them that are groups.
    pub(super) groups: usize,
}

impl Count {
    /// Counts a destination `gid` that is added.
    pub(super) fn add(&mut self, gid: &Gid) {
        self.all += 1;
        self.groups += usize::from(gid.is_multicast());
    }

    /// Counts a destination `gid` that is removed.
    pub(super) fn remove(&mut self, gid: &Gid) {
        self.all -= 1;
        self.groups -= usize::from(gid.is_multicast());
    }

    /// Returns whether there is room for `gid` among at most `most`.
    pub(super) fn has_room(&self, gid: &Gid, most: usize) -> bool {
        self.all < most && (!gid.is_multicast() || self.groups < most / GROUP_SHARE)
    }
}

impl<H: Handle, P> Destinations<H, P> {
    /// Makes room for `gid`, if there is none, by forgetting a destination that was not found.
    pub(super) fn make_room(&mut self, gid: &Gid) {
        if self.count.has_room(gid, DESTINATIONS) {
            return;
        }
        // Groups that fill their share give way among themselves.
        let is_for_group = self.count.all < DESTINATIONS;
        let mut steps = STEPS;
        // The second round begins at the table's front: it looks at what lies before the hand.
        for _ in 0..2 {
            let mut cursor = self.table.cursor_lower_bound_mut(&self.hand);
            while let Some(current) = cursor {
                let (&other, state) = current.current();
                // The next call goes on here: packets to many new destinations do not look at the
                // same ones.
                self.hand = other;
                if steps == 0 {
                    return;
                }
                steps -= 1;
                let is_failed = matches!(state, State::Failed(_));
                if is_failed && (!is_for_group || other.is_multicast()) {
                    let _ = current.remove_current();
                    self.count.remove(&other);
                    return;
                }
                cursor = current.move_next();
            }
            self.hand = FIRST;
        }
    }
}
