// SPDX-License-Identifier: GPL-2.0-only

//! The GID table of a port, of which the source GID is chosen.
//!
//! `ib_core` writes the table anew after many events: it takes each entry out and puts it in again,
//! and nothing tells when it is done. What is read meanwhile lacks entries. So the table is read
//! before the choice and after it, and as long as it is not at rest, the choice of before stays.

use kernel::{
    prelude::*,
    sync::aref::ARef, //
};

use super::{
    worth,
    Port,
    Prefixes, //
};
use crate::{
    rdma::{
        device::Device,
        gid::Entry,
        port::PortNumber, //
    },
    wire::gid::Gid,
    work, //
};

/// Longest time for which the source GID is kept while the table is not at rest, in milliseconds.
const SETTLE_MS: u64 = 1000;

/// A place of the table. It equals another one if the same entry is there, and not only the same
/// GID.
struct Place(Option<ARef<Entry>>);

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        let entry = self.0.as_deref().map(core::ptr::from_ref);
        entry == other.0.as_deref().map(core::ptr::from_ref)
    }
}

impl Place {
    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// Reads the GID table of `port`.
///
/// # Errors
///
/// `ENOMEM`.
fn read(device: &Device, port: PortNumber) -> Result<KVec<Place>> {
    let places = device.gids(port);
    let mut table = KVec::with_capacity(places as usize, GFP_KERNEL)?;
    for index in 0..places {
        // An entry that reads as zero is one that is not written yet.
        let entry = device.gid(port, index);
        let entry = entry.filter(|entry| entry.gid() != Gid::ZERO);
        table.push(Place(entry), GFP_KERNEL)?;
    }
    Ok(table)
}

/// Returns whether a table is at rest, by two looks at it and the place of the GID in use, if there
/// is one.
fn is_at_rest<P: PartialEq>(
    before: &[P],
    after: &[P],
    used: Option<usize>,
    is_empty: impl Fn(&P) -> bool,
) -> bool {
    let is_there = |place: usize| after.get(place).is_some_and(|place| !is_empty(place));
    before == after && used.is_none_or(is_there)
}

/// Returns the entry of a table that ranks best by [`worth`] as the source GID, the first of those.
fn choose(table: &[Place], chosen: Option<[u8; 8]>) -> Option<&ARef<Entry>> {
    let entries = table.iter().filter_map(|place| place.0.as_ref());
    entries.reduce(|best, entry| {
        if worth(&entry.gid(), chosen) > worth(&best.gid(), chosen) {
            entry
        } else {
            best
        }
    })
}

/// The time since when a table is not at rest, in milliseconds; `None` if it is.
#[derive(Default)]
pub(super) struct Unrest(Option<u64>);

impl Unrest {
    /// Notes at time `now` whether the table is at rest. Returns whether to wait until it is.
    fn note(&mut self, is_at_rest: bool, now: u64) -> bool {
        if is_at_rest {
            self.0 = None;
            return false;
        }
        now < *self.0.get_or_insert(now) + SETTLE_MS
    }
}

impl Port {
    /// Chooses the source GID, which is in the interface's address, too, and reads the prefixes of
    /// the subnet. Both stay as they are while the table is being written. Returns whether it is:
    /// it is to be read again shortly then.
    pub(super) fn follow_gids(&self) -> bool {
        let (chosen, used) = (*self.guid.lock(), self.source());
        let looks = read(self.device(), self.number).and_then(|before| {
            let entry = choose(&before, chosen).cloned();
            Ok((read(self.device(), self.number)?, before, entry))
        });
        let Ok((after, before, entry)) = looks else {
            // No memory for it at the moment.
            return true;
        };
        let place = used.as_ref().map(|entry| entry.index() as usize);
        let is_at_rest = is_at_rest(&before, &after, place, Place::is_empty);
        let waits = self.unrest.lock().note(is_at_rest, work::milliseconds());
        if waits && used.is_some() {
            return true;
        }
        let mut prefixes = Prefixes::default();
        let entries = before.iter().filter_map(|place| place.0.as_ref());
        entries.for_each(|entry| prefixes.add(&entry.gid()));
        *self.prefixes.lock() = prefixes;
        let old = core::mem::replace(&mut *self.source.lock(), entry);
        // Dropped without the lock.
        drop(old);
        !is_at_rest
    }

    /// Returns the GID that would be the source without a GUID that an administrator chose.
    pub(super) fn own_gid(&self) -> Option<Gid> {
        let table = read(self.device(), self.number).ok()?;
        Some(choose(&table, None)?.gid())
    }
}

#[kernel::prelude::kunit_tests(oxib_infiniband_gids)]
mod tests {
    use super::*;

    #[test]
    fn tables_at_rest_have_the_same_entries_and_the_one_in_use() {
        // Entries by number; 0 is an empty place.
        for (before, after, used, expected) in [
            (&[1, 2], &[1, 2], Some(0), true),
            (&[1, 2], &[1, 2], None, true),
            (&[0, 0], &[0, 0], None, true),
            (&[1, 0], &[1, 0], Some(0), true),
            // Written during the choice: the entry was missing, or is another one since.
            (&[0, 2], &[3, 2], Some(0), false),
            (&[0, 2], &[3, 2], None, false),
            (&[1, 2], &[0, 2], Some(1), false),
            (&[1, 2], &[3, 2], Some(1), false),
            // Written all the time.
            (&[0, 2], &[0, 2], Some(0), false),
            (&[0, 0], &[0, 0], Some(1), false),
            // The table has become shorter.
            (&[1, 2], &[1, 2], Some(2), false),
        ] {
            let is_empty = |place: &i32| *place == 0;
            assert_eq!(is_at_rest(before, after, used, is_empty), expected);
        }
    }

    #[test]
    fn the_wait_for_rest_ends() {
        let mut unrest = Unrest::default();
        for (is_at_rest, now, waits) in [
            (true, 0, false),
            (false, 10, true),
            (false, 9 + SETTLE_MS, true),
            (false, 10 + SETTLE_MS, false),
            (false, 20 + SETTLE_MS, false),
            (true, 30 + SETTLE_MS, false),
            (false, 40 + SETTLE_MS, true),
        ] {
            assert_eq!(unrest.note(is_at_rest, now), waits);
        }
    }
}
