// SPDX-License-Identifier: GPL-2.0-only

//! Entries of the address cache as they come from an administrator: which IP address has which GID.
//!
//! The rules for an entry are checked here, wherever it comes from: a netlink message, or a
//! record of a bulk load.

#[path = "acm/entry.rs"]
pub mod entry;
#[path = "acm/family.rs"]
pub mod family;
#[path = "acm/filter.rs"]
pub mod filter;
#[path = "acm/record.rs"]
pub mod record;
#[path = "acm/request.rs"]
pub mod request;
#[path = "acm/source.rs"]
pub mod source;
