// SPDX-License-Identifier: GPL-2.0-only

//! The generic netlink family `oxib`: its names and numbers, as
//! Documentation/netlink/specs/oxib.yaml has them.

/// The name that the family is found by.
pub const NAME: &core::ffi::CStr = c"oxib";

/// The version of the family.
pub const VERSION: u8 = 1;

/// The multicast group that hears of changes.
pub const CHANGES: &core::ffi::CStr = c"changes";

/// Paths that are kept of a port, at most.
pub const PATHS: usize = 16_384;

/// Numbers of the family's operations.
pub mod operation {
    /// Shows one entry, or all that a filter lets through.
    pub const ENTRY_GET: u8 = 1;
    /// Enters an entry that is not there.
    pub const ENTRY_ADD: u8 = 2;
    /// Enters an entry, in the place of what is there.
    pub const ENTRY_REPLACE: u8 = 3;
    /// Takes one entry out.
    pub const ENTRY_DEL: u8 = 4;
    /// Takes all out that a filter lets through.
    pub const ENTRY_FLUSH: u8 = 5;
    /// A part of a bulk load.
    pub const LOAD: u8 = 6;
    /// Shows what was counted.
    pub const STATS_GET: u8 = 7;
    /// Finds the way to an address, step by step. The first message of the answer is the request.
    pub const RESOLVE: u8 = 8;
    /// Shows the paths that are known.
    pub const PATH_GET: u8 = 9;
    /// Drops all paths that are known.
    pub const PATH_FLUSH: u8 = 10;
    /// Shows how interfaces use the cache.
    pub const INTERFACE_GET: u8 = 11;
    /// Changes how an interface uses the cache.
    pub const INTERFACE_SET: u8 = 12;
    /// Announces an entry that is new, or says something else now.
    pub const ENTRY_NEW_NTF: u8 = 13;
    /// Announces an entry that is gone.
    pub const ENTRY_DEL_NTF: u8 = 14;
    /// Resolves the path to a GID. The first message of the answer is the request.
    pub const PATH_RESOLVE: u8 = 15;
}

/// Attributes of entries, and of requests for them.
pub mod entry {
    /// 4 or 16 bytes.
    pub const ADDRESS: u16 = 1;
    /// The GID of the port, 16 bytes.
    pub const GID: u16 = 2;
    /// The queue pair number, u32.
    pub const QPN: u16 = 3;
    /// The P_Key of the partition, u16.
    pub const PKEY: u16 = 4;
    /// The source, u8: [`Source::number`](super::super::source::Source::number).
    pub const SOURCE: u16 = 5;
    /// u32, seconds; 0 for ever.
    pub const LIFETIME: u16 = 6;
    /// No value: the queue pair is what the peer said.
    pub const LEARNED_QPN: u16 = 7;
    /// u8: bits of the address that count.
    pub const PREFIX_LENGTH: u16 = 8;
}

/// Attributes of parts of a bulk load.
pub mod load {
    /// Entries, as an array of [`Record`](super::super::record::Record).
    pub const ENTRIES: u16 = 1;
    /// u32: what to do.
    pub const FLAGS: u16 = 2;

    /// The load is complete, and is to happen.
    pub const COMMIT: u32 = 1;
    /// Discards the load: none of its entries is entered.
    pub const ABORT: u32 = 2;
    /// Entries of files that are not in the load go.
    pub const REPLACE_ALL: u32 = 4;

    /// Records of one message, at most.
    pub const MOST: usize = 680;
}

/// Attributes of the steps of a resolution.
pub mod step {
    /// u8: 0 the cache, 1 the exchange of queue pairs, 2 the path.
    pub const KIND: u16 = 1;
    /// u8: 0 found, 1 none, 2 no answer, 3 refused, 4 not to be asked, 5 not asked.
    pub const RESULT: u16 = 2;
    /// The duration in microseconds, u32.
    pub const TIME: u16 = 3;
    /// Text for the user, a string.
    pub const TEXT: u16 = 4;
}

/// Attributes of paths, and of requests for them.
pub mod path {
    /// The source GID, 16 bytes.
    pub const SGID: u16 = 1;
    /// The destination GID, 16 bytes.
    pub const DGID: u16 = 2;
    /// The P_Key of the partition, u16.
    pub const PKEY: u16 = 3;
    /// The traffic class, u8.
    pub const TRAFFIC_CLASS: u16 = 4;
    /// The destination LID, u16.
    pub const DLID: u16 = 5;
    /// The source LID, u16.
    pub const SLID: u16 = 6;
    /// The service level, u8.
    pub const SL: u16 = 7;
    /// The path MTU in bytes, u16.
    pub const MTU: u16 = 8;
    /// u8, as the IBTA numbers rates.
    pub const RATE: u16 = 9;
    /// The hop limit, u8.
    pub const HOP_LIMIT: u16 = 10;
    /// u32, seconds since the subnet administrator said so.
    pub const AGE: u16 = 11;
    /// u32, seconds that are left.
    pub const LIFETIME: u16 = 12;
    /// The RDMA device's name.
    pub const DEVICE: u16 = 13;
    /// The number of the device's port, u32.
    pub const PORT: u16 = 14;
    /// The flow label, u32.
    pub const FLOW_LABEL: u16 = 15;
    /// u32: the interface from which a path is wanted.
    pub const IFINDEX: u16 = 16;
    /// u64: the service that a program asked for it for.
    pub const SERVICE_ID: u16 = 17;
    /// u16: the class of the quality of service that a program asked for.
    pub const QOS_CLASS: u16 = 18;
}

/// Attributes of what is found step by step.
pub mod resolution {
    /// Attributes of the entry.
    pub const ENTRY: u16 = 1;
    /// Attributes of a step; one for each.
    pub const STEP: u16 = 2;
    /// Attributes of the path.
    pub const PATH: u16 = 3;
    /// 4 or 16 bytes: the address that is resolved.
    pub const ADDRESS: u16 = 4;
    /// u32: the interface from which it is.
    pub const IFINDEX: u16 = 5;
}

/// Attributes of interfaces, and of requests for them.
pub mod interface {
    /// The interface's index, u32.
    pub const IFINDEX: u16 = 1;
    /// u8: 0 off, 1 prefer, 2 only.
    pub const ACM: u16 = 2;

    /// The greatest number of [`ACM`].
    pub const LAST_MODE: u8 = 2;
}
