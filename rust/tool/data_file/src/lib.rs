// SPDX-License-Identifier: GPL-2.0-only

//! The files that the address cache is loaded from. ibacm's `ibacm_hosts.data` is such a file.
//!
//! Each line maps an address to the GID of the port that has it:
//!
//! ```text
//! # comment
//! ADDRESS GID [qpn NUMBER] [pkey NUMBER] [lifetime SECONDS]
//! ```
//!
//! ADDRESS is IPv4, IPv6 or a name; a name stands for all addresses that the host's resolver has
//! for it (see [`resolver`]). Numbers are decimal, or hexadecimal after `0x`. `#` begins a comment
//! anywhere in a line.
//!
//! All files of a load are parsed into one [`FileSet`]. It collects every error with its location,
//! and returns entries only if there is none.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod diagnostic;
pub mod entry;
pub mod file_set;
pub mod line;
pub mod resolver;

pub use diagnostic::Diagnostic;
pub use entry::Entry;
pub use file_set::FileSet;
