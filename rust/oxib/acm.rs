// SPDX-License-Identifier: GPL-2.0-only

//! The address cache: which IP address has which GID, for each network namespace.
//!
//! ```text
//!  cache       the entries of a namespace: look-up, changes, sources and their ranks
//!   ├ entry      one of them, as the table has it
//!   ├ load       many at once, all or none
//!   ├ expiry     forgetting what is too old
//!   └ change     what the administrator asks of single entries
//!  exchange    a peer's queue pair, found by asking its connection manager
//!   └ host       the interface that asks and is asked
//!  diagnosis   the same step by step, for administrators
//!  budget      how often strangers may have the subnet administrator asked
//!  paths       what the subnet administrator said of a port's paths
//!  local_service  paths for programs that connect by rdma_cm
//!  fifo        exchanges and searches that wait for their turn
//!  statistics  what is counted
//!  options     parameters
//!  netlink     the family `oxib`: requests for entries, loads, and notices to listeners
//!   ├ interface  requests about interfaces
//!   ├ paths      requests for the paths of ports
//!   ├ inquiry    requests that wait for another node (`resolve`, `paths preload`)
//!   └ statistics the answer to a request for statistics
//! ```

use kernel::prelude::*;

use crate::{
    hash_table::Slab,
    net::{
        genetlink,
        namespace, //
    }, //
};

pub(crate) mod budget;
pub(crate) mod cache;
mod change;
pub(crate) mod diagnosis;
mod entry;
pub(crate) mod exchange;
mod expiry;
pub(crate) mod fifo;
mod host;
mod load;
pub(crate) mod local_service;
mod netlink;
pub(crate) mod options;
pub(crate) mod paths;
pub(crate) mod sources;
pub(crate) mod statistics;
mod tests;

pub(crate) use cache::{
    Cache,
    LearnedEntry,
    LIFETIME_SECS, //
};
pub(crate) use entry::Known;
pub(crate) use host::Host;
pub(crate) use statistics::Counter;

pub(crate) use crate::wire::acm::source::Source;

/// The address cache, as a part of the module. Dropping it drops the caches of all namespaces.
pub(crate) struct Acm {
    // First what asks for caches.
    _netlink: genetlink::Registration<netlink::Oxib>,
    _caches: namespace::Registration<Cache>,
}

impl Acm {
    /// Makes a cache for each namespace that is there, and for those that come.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a parameter out of range, which the log names; `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        options::check()?;
        let caches = namespace::Registration::new(Slab::new(c"oxib_acm")?)?;
        Ok(Self {
            _netlink: netlink::register()?,
            _caches: caches,
        })
    }
}
