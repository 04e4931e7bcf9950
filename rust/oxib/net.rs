// SPDX-License-Identifier: GPL-2.0-only

//! Safe wrappers over the network stack.
//!
//! The parts of net devices, packets, NAPI and the RTNL lock that policy code needs, in types
//! that make misuse a compile error. All `unsafe` that this takes stands here.

pub(crate) mod bh;
pub(crate) mod device;
pub(crate) mod errno;
pub(crate) mod ethtool;
pub(crate) mod extack;
pub(crate) mod genetlink;
pub(crate) mod link;
pub(crate) mod namespace;
pub(crate) mod napi;
pub(crate) mod neighbour;
pub(crate) mod netlink_socket;
pub(crate) mod page_pool;
pub(crate) mod queue;
pub(crate) mod queue_statistics;
pub(crate) mod rtnl;
pub(crate) mod skb;
pub(crate) mod statistics;
pub(crate) mod sysfs;
pub(crate) mod upper;
