// SPDX-License-Identifier: GPL-2.0-only

//! The arriving side of a node, its peers, an attacker, and the judge of what the node does.

pub mod node;
pub mod peer;
pub mod world;
