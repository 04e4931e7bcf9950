// SPDX-License-Identifier: GPL-2.0-only

//! The names and numbers of the family `oxib`, version 1.

use oxib_wire::acm::family;
use std::ffi::CStr;

pub use oxib_wire::acm::family::{
    entry,
    interface,
    load,
    operation,
    path,
    resolution,
    step,
    PATHS,
    VERSION, //
};

/// The name of the family.
pub const NAME: &str = to_str(family::NAME);

/// The multicast group that announces changes of the cache.
pub const CHANGES: &str = to_str(family::CHANGES);

const fn to_str(name: &'static CStr) -> &'static str {
    match name.to_str() {
        Ok(name) => name,
        Err(_) => panic!("names are ASCII"),
    }
}

/// The names of an attribute set's members, for messages about errors of the kernel.
pub type Names = &'static [(u16, &'static str)];

/// The names, as shown to users, of the attributes of an entry and of requests for entries.
pub const ENTRY_NAMES: Names = &[
    (entry::ADDRESS, "address"),
    (entry::GID, "gid"),
    (entry::QPN, "qpn"),
    (entry::PKEY, "pkey"),
    (entry::SOURCE, "source"),
    (entry::LIFETIME, "lifetime"),
    (entry::LEARNED_QPN, "learned-qpn"),
    (entry::PREFIX_LENGTH, "prefix length"),
];

/// The names, as shown to users, of the attributes of a request to resolve an address.
pub const RESOLUTION_NAMES: Names = &[
    (resolution::ADDRESS, "address"),
    (resolution::IFINDEX, "interface"),
];

/// The names, as shown to users, of the attributes of one message of a load.
pub const LOAD_NAMES: Names = &[(load::ENTRIES, "entries"), (load::FLAGS, "flags")];

/// The names, as shown to users, of the attributes of a request to resolve a path.
pub const PATH_NAMES: Names = &[(path::DGID, "gid"), (path::IFINDEX, "interface")];

/// The names, as shown to users, of the attributes of an interface.
pub const INTERFACE_NAMES: Names = &[(interface::IFINDEX, "interface"), (interface::ACM, "acm")];

/// Attributes of the answer to [`operation::STATS_GET`], all u64, with the names shown to users.
pub const STATISTICS: Names = &[
    (1, "entries"),
    (2, "entries-file"),
    (3, "entries-netlink"),
    (4, "entries-sidr"),
    (5, "entries-learned"),
    (6, "memory"),
    (7, "hits"),
    (8, "misses"),
    (9, "expired"),
    (10, "refused"),
    (11, "arp-answered"),
    (12, "nd-answered"),
    (13, "sidr-sent"),
    (14, "sidr-answered"),
    (15, "sidr-refused"),
    (16, "sidr-timeouts"),
    (17, "sidr-in-flight"),
    (18, "sidr-waiting"),
    (19, "sidr-served"),
    (20, "paths"),
    (21, "path-hits"),
    (22, "path-misses"),
    (23, "path-queries"),
    (24, "path-invalidated"),
    (25, "router-no-oxib"),
    (26, "loads"),
    (28, "programs-answered"),
    (29, "programs-declined"),
];
