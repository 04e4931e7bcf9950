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
// In the kernel this is a private module, in cargo a crate whose users are other crates.
#![cfg_attr(
    CONFIG_RUST,
    allow(unreachable_pub, reason = "the same files are a public crate")
)]

// The paths are spelled out because this file is a crate root to cargo, and a crate root looks for
// its modules beside itself.
#[path = "wire/acm.rs"]
pub mod acm;
#[path = "wire/aeth.rs"]
pub mod aeth;
#[path = "wire/arp.rs"]
pub mod arp;
#[path = "wire/atomic.rs"]
pub mod atomic;
#[path = "wire/bits.rs"]
mod bits;
#[path = "wire/bth.rs"]
pub mod bth;
#[path = "wire/cm.rs"]
pub mod cm;
#[path = "wire/connected.rs"]
pub mod connected;
#[path = "wire/deth.rs"]
pub mod deth;
#[path = "wire/encap.rs"]
pub mod encap;
#[path = "wire/exchange.rs"]
pub mod exchange;
#[path = "wire/gid.rs"]
pub mod gid;
#[path = "wire/grh.rs"]
pub mod grh;
#[path = "wire/hwaddr.rs"]
pub mod hwaddr;
#[path = "wire/icrc.rs"]
pub mod icrc;
#[path = "wire/immdt.rs"]
pub mod immdt;
#[path = "wire/inbound.rs"]
pub mod inbound;
#[path = "wire/ipv6.rs"]
mod ipv6;
#[path = "wire/lid.rs"]
pub mod lid;
#[path = "wire/local_service.rs"]
pub mod local_service;
#[path = "wire/lrh.rs"]
pub mod lrh;
#[path = "wire/mad.rs"]
pub mod mad;
#[path = "wire/mgid.rs"]
pub mod mgid;
#[path = "wire/nd.rs"]
pub mod nd;
#[path = "wire/netlink.rs"]
pub mod netlink;
#[path = "wire/offload.rs"]
pub mod offload;
#[path = "wire/opcode.rs"]
pub mod opcode;
#[path = "wire/packet.rs"]
pub mod packet;
#[path = "wire/pkey.rs"]
pub mod pkey;
#[path = "wire/pma.rs"]
pub mod pma;
#[path = "wire/psn.rs"]
pub mod psn;
#[path = "wire/qpn.rs"]
pub mod qpn;
#[path = "wire/resolution.rs"]
pub mod resolution;
#[path = "wire/reth.rs"]
pub mod reth;
#[path = "wire/roce.rs"]
pub mod roce;
#[path = "wire/smp.rs"]
pub mod smp;
