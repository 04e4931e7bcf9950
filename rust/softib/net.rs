// SPDX-License-Identifier: GPL-2.0-only

//! Cables: net devices that carry InfiniBand packets. All `unsafe` code for net devices stands
//! here.

pub(crate) mod burst;
pub(crate) mod cable;
pub(crate) mod checksum;
pub(crate) mod crc;
pub(crate) mod crossing;
pub(crate) mod frame;
pub(crate) mod line;
pub(crate) mod notifier;
// Both modules have it.
#[path = "../oxib/net/rtnl.rs"]
pub(crate) mod rtnl;
pub(crate) mod signal;
