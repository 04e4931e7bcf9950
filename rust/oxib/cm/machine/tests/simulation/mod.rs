// SPDX-License-Identifier: GPL-2.0-only

//! The parts of the simulator.

pub mod consumer;
pub mod forger;
pub mod judge;
pub mod network;
pub mod node;
pub mod record;
pub mod world;
