// SPDX-License-Identifier: GPL-2.0-only

//! The command `oxib`: controls oxib's address cache through its generic netlink family, in the
//! manner of ip(8).
//!
//! ```text
//!  cli ──▶ command ──▶ netlink ──▶ the kernel
//!             │  ╲
//!             ▼   ╲▶ oxib-data-file
//!          output
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod cli;
pub mod command;
pub mod entry;
pub mod error;
pub mod filter;
pub mod manual;
pub mod netlink;
pub mod netns;
pub mod output;
pub mod path;
pub mod progress;
pub mod resolution;
pub mod words;
