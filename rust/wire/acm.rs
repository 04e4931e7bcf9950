// SPDX-License-Identifier: GPL-2.0-only

//! Entries of the address cache as they come from an administrator: which IP address has which GID.
//!
//! The rules for an entry are checked here, wherever it comes from: a netlink message, a record of
//! a bulk load, or what a peer says of itself.

pub mod entry;
pub mod family;
pub mod filter;
pub mod record;
pub mod request;
pub mod source;
