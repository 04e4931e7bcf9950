// SPDX-License-Identifier: GPL-2.0-only

//! Files that the address cache is loaded from: ibacm's `ibacm_hosts.data`, and more.
//!
//! A line has an address and the GID of the port that has it:
//!
//! ```text
//! # comment
//! ADDRESS GID [qpn NUMBER] [pkey NUMBER] [lifetime SECONDS]
//! ```
//!
//! ADDRESS is IPv4, IPv6 or a name; a name stands for all addresses that the host's resolver has
//! for it (see [`resolve`]). Numbers are decimal, or hexadecimal after `0x`. `#` begins a comment
//! anywhere in a line.
//!
//! All files of a load are read into one [`Reading`]. It keeps every complaint with its place, and
//! gives entries only if there is none.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod entry;
pub mod line;
pub mod place;
pub mod reading;
pub mod resolve;

pub use entry::Entry;
pub use place::Complaint;
pub use reading::Reading;
