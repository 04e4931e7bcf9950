// SPDX-License-Identifier: GPL-2.0-only

//! Numbers and names of the family `oxib`, version 1.

/// The family's name.
pub const NAME: &str = "oxib";

/// The version that requests carry.
pub const VERSION: u8 = 1;

/// The multicast group that announces changes of the cache.
pub const CHANGES: &str = "changes";

/// Operations.
pub mod operation {
    /// One entry, or a dump of those that a filter takes.
    pub const ENTRY_GET: u8 = 1;
    /// A new entry.
    pub const ENTRY_ADD: u8 = 2;
    /// An entry, new or not.
    pub const ENTRY_REPLACE: u8 = 3;
    /// One entry less.
    pub const ENTRY_DEL: u8 = 4;
    /// All entries less that a filter takes.
    pub const ENTRY_FLUSH: u8 = 5;
    /// A part of a load.
    pub const LOAD: u8 = 6;
    /// Counters.
    pub const STATS_GET: u8 = 7;
    /// All that has to be known to reach an address.
    pub const RESOLVE: u8 = 8;
    /// A dump of the path cache.
    pub const PATH_GET: u8 = 9;
    /// An empty path cache.
    pub const PATH_FLUSH: u8 = 10;
    /// What an interface, or each of them, uses the cache for.
    pub const INTERFACE_GET: u8 = 11;
    /// To change that.
    pub const INTERFACE_SET: u8 = 12;
    /// An entry came or changed.
    pub const ENTRY_NEW_NTF: u8 = 13;
    /// An entry went.
    pub const ENTRY_DEL_NTF: u8 = 14;
}

/// Names of a set's attributes, for what the kernel complains of.
pub type Names = &'static [(u16, &'static str)];

/// Attributes of an entry, and of what asks for entries.
pub mod entry {
    /// 4 or 16 bytes.
    pub const ADDRESS: u16 = 1;
    /// 16 bytes.
    pub const GID: u16 = 2;
    /// u32
    pub const QPN: u16 = 3;
    /// u16
    pub const PKEY: u16 = 4;
    /// u8
    pub const SOURCE: u16 = 5;
    /// u32, in seconds.
    pub const LIFETIME: u16 = 6;
    /// A flag: the queue pair's number is from SIDR.
    pub const LEARNED_QPN: u16 = 8;
    /// u8
    pub const PREFIX_LENGTH: u16 = 9;
    /// u32
    pub const IFINDEX: u16 = 10;
    /// What people call them.
    pub const NAMES: super::Names = &[
        (ADDRESS, "address"),
        (GID, "gid"),
        (QPN, "qpn"),
        (PKEY, "pkey"),
        (SOURCE, "source"),
        (LIFETIME, "lifetime"),
        (LEARNED_QPN, "learned-qpn"),
        (PREFIX_LENGTH, "prefix length"),
        (IFINDEX, "interface"),
    ];
}

/// Attributes of a part of a load.
pub mod load {
    /// Records.
    pub const ENTRIES: u16 = 1;
    /// u32: [`COMMIT`], [`ABORT`], [`REPLACE_ALL`].
    pub const FLAGS: u16 = 2;
    /// What people call them.
    pub const NAMES: super::Names = &[(ENTRIES, "entries"), (FLAGS, "flags")];

    /// What was loaded happens now.
    pub const COMMIT: u32 = 1;
    /// What was loaded is forgotten.
    pub const ABORT: u32 = 2;
    /// Entries of files that are not in the load go.
    pub const REPLACE_ALL: u32 = 4;
}

/// Attributes of the answer to [`operation::STATS_GET`], all u64, with the names that they are shown by.
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
];

/// Attributes of a step of a resolution.
pub mod step {
    /// u8
    pub const KIND: u16 = 1;
    /// u8
    pub const RESULT: u16 = 2;
    /// u32, in microseconds.
    pub const TIME: u16 = 3;
    /// For people.
    pub const TEXT: u16 = 4;
}

/// Attributes of a path.
pub mod path {
    /// 16 bytes.
    pub const SGID: u16 = 1;
    /// 16 bytes.
    pub const DGID: u16 = 2;
    /// u16
    pub const PKEY: u16 = 3;
    /// u8
    pub const TRAFFIC_CLASS: u16 = 4;
    /// u16
    pub const DLID: u16 = 5;
    /// u16
    pub const SLID: u16 = 6;
    /// u8
    pub const SL: u16 = 7;
    /// u16, in bytes.
    pub const MTU: u16 = 8;
    /// u8, as IBTA encodes it.
    pub const RATE: u16 = 9;
    /// u8
    pub const HOP_LIMIT: u16 = 10;
    /// u32, in seconds.
    pub const AGE: u16 = 11;
    /// u32, in seconds.
    pub const LIFETIME: u16 = 12;
    /// A name.
    pub const DEVICE: u16 = 13;
    /// u32
    pub const PORT: u16 = 14;
    /// u32
    pub const FLOW_LABEL: u16 = 15;
}

/// Attributes of a resolution.
pub mod resolution {
    /// A nest of [`entry`](super::entry).
    pub const ENTRY: u16 = 1;
    /// A nest of [`step`](super::step), any number of times.
    pub const STEP: u16 = 2;
    /// A nest of [`path`](super::path).
    pub const PATH: u16 = 3;
}

/// Attributes of an interface.
pub mod interface {
    /// u32
    pub const IFINDEX: u16 = 1;
    /// u8
    pub const ACM: u16 = 2;
    /// What people call them.
    pub const NAMES: super::Names = &[(IFINDEX, "interface"), (ACM, "acm")];
}
