// SPDX-License-Identifier: GPL-2.0-only

//! Requests of the administrator for single entries, and for those that a filter lets through.

use core::net::IpAddr;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    cache::{
        address,
        key,
        Cache, //
    },
    Source, //
};
use crate::{
    counters::seconds,
    wire::acm::{
        entry::Entry,
        filter::Filter, //
    }, //
};

/// Reason for refusing a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// An entry of this source has the address.
    Exists(Source),
    /// No entry has the address.
    Missing,
    /// The cache has as many entries as it may have.
    Full,
    /// Another error, such as a lack of memory.
    Other(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        if error == ENOSPC {
            Refused::Full
        } else {
            Refused::Other(error)
        }
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Exists(_) => EEXIST,
            Refused::Missing => ENOENT,
            Refused::Full => ENOSPC,
            Refused::Other(error) => error,
        }
    }
}

impl Cache {
    /// Enters an entry; `replace` one of the same rank that is there. What the network said of
    /// the address is always replaced. Sleeps.
    ///
    /// # Errors
    ///
    /// Nothing has changed.
    pub(super) fn enter(
        self: &Arc<Self>,
        entry: &Entry,
        replace: bool,
    ) -> core::result::Result<(), Refused> {
        let now = seconds();
        let mut writer = self.entries().write();
        let there = writer
            .get(&key(entry.address))
            .filter(|stored| !stored.is_expired(now))
            .map(|stored| stored.source());
        match there {
            Some(source) if source.outranks(Source::Netlink) => Err(Refused::Exists(source)),
            Some(Source::Netlink) if !replace => Err(Refused::Exists(Source::Netlink)),
            _ => Ok(self.put(&mut writer, entry, Source::Netlink, now)?),
        }
    }

    /// Takes the entry of an address out, whatever its source. Sleeps.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(super) fn delete(&self, address: IpAddr) -> core::result::Result<(), Refused> {
        let now = seconds();
        let mut writer = self.entries().write();
        let gone = writer.remove(&key(address)).ok_or(Refused::Missing)?;
        // An expired entry counts until it is taken out, and takes room.
        self.removed(writer.state(), &gone);
        if gone.value().is_expired(now) {
            return Err(Refused::Missing);
        }
        Ok(())
    }

    /// Takes all entries out that `filter` lets through. Sleeps.
    pub(super) fn flush(&self, filter: &Filter) {
        self.entries().write().retain(
            |key, stored| !filter.matches(address(key), stored.source(), stored.gid()),
            |state, gone| self.removed(state, gone),
        );
    }

    /// Returns the number of entries of each source, highest rank first.
    pub(super) fn numbers(&self) -> [usize; Source::ALL.len()] {
        let mut writer = self.entries().write();
        Source::ALL.map(|source| *writer.state().number(source))
    }
}
