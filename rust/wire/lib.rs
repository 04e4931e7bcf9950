// SPDX-License-Identifier: GPL-2.0-only

//! Wire formats of InfiniBand: its packets, its subnet management, IP over it, its connection
//! manager; and the arithmetic of their addresses.
//!
//! Everything here is a value or a view of a byte slice: no allocation, no clock, no device, no
//! kernel type. The same files are part of the kernel module (`mod wire;`), where KUnit runs their
//! tests, and the cargo crate `oxib-wire`, where `cargo test`, the property tests and the fuzz
//! targets do.
//!
//! No function here panics. A parser takes what came from the wire, reads nothing past the slice
//! it was given, and answers with a reference into it or with an error that names the field.
//!
//! The clauses cited are those of RFC 4391 (IP over InfiniBand), RFC 4392 (its architecture),
//! RFC 4755 (connected mode) and the InfiniBand Architecture Specification, volume 1 ("IBTA").

#![cfg_attr(not(CONFIG_RUST), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
// A kernel module is one crate: what this module of the product does not call (yet), other crates
// made of the same files (the test fabric, the host tests) do.
#![cfg_attr(
    CONFIG_RUST,
    allow(
        dead_code,
        unused_imports,
        reason = "each crate uses its part of the formats"
    )
)]
// In the kernel this is a private module, in cargo a crate that other crates use.
#![cfg_attr(
    CONFIG_RUST,
    allow(unreachable_pub, reason = "the same files are a public crate")
)]

pub mod acm;
pub mod aeth;
pub mod arp;
pub mod atomic;
mod bits;
pub mod bth;
pub mod cm;
pub mod connected;
pub mod deth;
pub mod encap;
pub mod exchange;
pub mod gid;
pub mod grh;
pub mod hwaddr;
pub mod icrc;
pub mod immdt;
pub mod inbound;
mod ipv6;
pub mod lid;
pub mod local_service;
pub mod lrh;
pub mod mad;
pub mod mgid;
pub mod nd;
pub mod netlink;
pub mod offload;
pub mod opcode;
pub mod packet;
pub mod pkey;
pub mod pma;
pub mod psn;
pub mod qpn;
pub mod resolution;
pub mod reth;
pub mod roce;
pub mod smp;
