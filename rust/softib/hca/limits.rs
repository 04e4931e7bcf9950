// SPDX-License-Identifier: GPL-2.0-only

//! Limits that a device promises to keep.

/// Completions of a queue: what libfabric wants for 256 peers fits.
pub(crate) const COMPLETIONS: u32 = 1 << 18;

/// Completion queues of a device.
pub(crate) const COMPLETION_QUEUES: u32 = 1 << 16;

/// Queue pairs, and the bits of a number that say which.
pub(crate) const QUEUE_PAIR_BITS: u32 = 14;
pub(crate) const QUEUE_PAIRS: u32 = 1 << QUEUE_PAIR_BITS;

/// Work requests of a queue.
pub(crate) const WORK_REQUESTS: u32 = 1 << 14;

/// Pieces of memory in a work request.
pub(crate) const SEGMENTS: u32 = 32;

/// Memory regions, and pages of one.
pub(crate) const REGIONS: u32 = 1 << 16;
pub(crate) const REGION_PAGES: u32 = 1 << 12;

/// Shared receive queues of a device.
pub(crate) const SHARED_QUEUES: u32 = 1 << 12;

/// Multicast groups, and queue pairs in each.
pub(crate) const GROUPS: u32 = 1 << 12;
pub(crate) const GROUP_MEMBERS: u32 = 1 << 8;

/// READs and atomics that a queue pair may have outstanding.
pub(crate) const READS: u32 = 16;

/// The longest message, in bytes.
pub(crate) const MESSAGE: u32 = 1 << 30;
