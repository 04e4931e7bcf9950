// SPDX-License-Identifier: GPL-2.0-only

//! Bulk loads: many entries that come in parts, and are entered all at once or not at all.

use core::{
    fmt,
    net::IpAddr, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    cache::{
        key,
        Cache,
        Changing, //
    },
    change::Refused,
    entry::Stored,
    Counter,
    Source, //
};
use crate::{
    counters::seconds,
    hash_table::{
        Batch,
        Refused as BatchRefused, //
    },
    wire::acm::record::{
        Record,
        Wrong, //
    }, //
};

/// A load that is being gathered. Readers see nothing of it.
pub(super) struct Load(Batch<Stored>);

/// Reason why a record ends a load. Records are numbered from 1, through all parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// The record does not describe a valid entry.
    Wrong(usize, Wrong),
    /// Another record has the same address.
    Duplicate(IpAddr, usize, usize),
    /// The load has more entries than the cache may have.
    Full(usize, usize),
    /// The kernel is short of memory.
    NoMemory(usize),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Wrong(number, wrong) => write!(f, "record {number}: {wrong}"),
            Fault::Duplicate(address, first, second) => {
                write!(f, "records {first} and {second} are of {address}")
            }
            Fault::Full(number, limit) => {
                write!(
                    f,
                    "record {number}: there may be {limit} entries (acm_entries)"
                )
            }
            Fault::NoMemory(number) => write!(f, "record {number}: out of memory"),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Wrong(..) => EINVAL,
            Fault::Duplicate(..) => EEXIST,
            Fault::Full(..) => ENOSPC,
            Fault::NoMemory(_) => ENOMEM,
        }
    }
}

impl Load {
    /// Begins an empty load.
    pub(super) fn new() -> Self {
        Self(Batch::new())
    }

    /// Adds records, numbered on from those before. Sleeps.
    ///
    /// # Errors
    ///
    /// The first record that is at fault. The load is of no use then.
    pub(super) fn add(
        &mut self,
        cache: &Cache,
        records: &[Record],
    ) -> core::result::Result<(), Fault> {
        let now = seconds();
        for record in records {
            let number = self.0.len() + 1;
            if number > cache.limit() {
                return Err(Fault::Full(number, cache.limit()));
            }
            let entry = record
                .entry()
                .map_err(|wrong| Fault::Wrong(number, wrong))?;
            let stored = Stored::new(&entry, Source::File, now);
            let node = cache
                .entries()
                .node(key(entry.address), stored)
                .map_err(|_| Fault::NoMemory(number))?;
            self.0.push(node).map_err(|refused| match refused {
                BatchRefused::Duplicate(place) => {
                    Fault::Duplicate(entry.address, place + 1, number)
                }
                BatchRefused::NoMemory => Fault::NoMemory(number),
            })?;
        }
        Ok(())
    }
}

impl Cache {
    /// Enters all of a load, as entries of source file, in the place of what is there; with
    /// `replace_all` the other entries of that source go. What peers said of their queue pairs
    /// stays. Sleeps.
    ///
    /// # Errors
    ///
    /// Nothing has changed.
    pub(super) fn commit(
        self: &Arc<Self>,
        mut load: Load,
        replace_all: bool,
    ) -> core::result::Result<(), Refused> {
        // One hold from the count to the last mark: no other change comes in between.
        let mut writer = self.entries().write();
        self.count_load(&mut load, &mut writer, replace_all)?;
        self.enter_load(&mut load, &mut writer, replace_all)
    }

    /// Marks the entries of a load, and checks that there is room for them.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`].
    pub(super) fn count_load(
        &self,
        load: &mut Load,
        writer: &mut Changing<'_>,
        replace_all: bool,
    ) -> core::result::Result<(), Refused> {
        let Load(batch) = load;
        let (mut fresh, mut kept) = (0, 0);
        for node in batch.nodes() {
            // Marked before it is in the table: `retain` keeps what this load brings.
            node.value().mark(true);
            match writer.get(node.key()).map(|stored| stored.source()) {
                None | Some(Source::Sidr | Source::Learned) => fresh += 1,
                Some(Source::File) => kept += 1,
                // An entry of this source is counted among the administrator's already.
                Some(Source::Netlink) => {}
            }
        }
        let files = *writer.state().number(Source::File);
        let leaving = if replace_all { files - kept } else { 0 };
        if fresh > leaving && writer.state().configured() + fresh - leaving > self.limit() {
            return Err(Refused::Full);
        }
        Ok(())
    }

    /// Enters a load that was counted with this hold of the lock. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and the like, as [`Refused::Other`]. Nothing has changed.
    pub(super) fn enter_load(
        self: &Arc<Self>,
        load: &mut Load,
        writer: &mut Changing<'_>,
        replace_all: bool,
    ) -> core::result::Result<(), Refused> {
        let now = seconds();
        let Load(batch) = load;
        // The new entries come before old ones go: no address of both files is missing for a
        // moment.
        batch.apply(writer, |new, old| {
            // Before readers see it, so that no peer is asked for what is known. Not earlier: what
            // peers say meanwhile is kept in the old entry, and many entries take seconds.
            new.inherit(old, now);
        })?;
        batch.outcome(writer, |state, key, new, old| {
            self.entered(state, key, new, old, now);
        });
        if replace_all {
            writer.retain(
                |_, stored| stored.source() != Source::File || stored.is_marked(),
                |state, gone| self.removed(state, gone),
            );
        }
        batch.outcome(writer, |_, _, new, _| new.mark(false));
        self.counters().count(Counter::Loads);
        Ok(())
    }
}
