// SPDX-License-Identifier: GPL-2.0-only

//! Entries of the address cache as they come from an administrator: which IP address has which GID.
//!
//! What may stand in one is checked here, wherever it comes from: a netlink message, or a record of a bulk load.

#[path = "acm/entry.rs"]
pub mod entry;
#[path = "acm/source.rs"]
pub mod source;
