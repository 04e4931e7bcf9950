// SPDX-License-Identifier: GPL-2.0-only

//! The answer to a request for statistics.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    super::{
        Cache,
        Counter, //
    },
    paths,
    Oxib, //
};
use crate::net::genetlink::Request;

/// Attributes that are no counters of the cache's.
mod attribute {
    /// Number of entries of all sources.
    pub(super) const ENTRIES: u16 = 1;
    /// Entries of the first source; of the others next.
    pub(super) const FIRST_SOURCE: u16 = 2;
    /// Memory of the table, in bytes.
    pub(super) const MEMORY: u16 = 6;
    /// Padding that aligns attributes of eight bytes.
    pub(super) const PAD: u16 = 27;
}

/// Answers with all that is counted.
pub(super) fn show(request: &Request<'_, Oxib>, cache: &Arc<Cache>) -> Result {
    let known_paths = paths::count(cache)? as u64;
    let numbers = cache.numbers();
    let table = cache.entries();
    request.reply(|message| {
        let mut put = |number, value| message.put_u64(number, value, attribute::PAD);
        put(attribute::ENTRIES, table.len() as u64)?;
        for (number, count) in (attribute::FIRST_SOURCE..).zip(numbers) {
            put(number, count as u64)?;
        }
        put(attribute::MEMORY, table.memory() as u64)?;
        for counter in Counter::ALL {
            let value = match counter {
                Counter::Paths => known_paths,
                counter => cache.counters().get(*counter),
            };
            put(counter.attribute(), value)?;
        }
        Ok(())
    })
}
