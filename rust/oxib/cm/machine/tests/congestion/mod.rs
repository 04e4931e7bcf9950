// SPDX-License-Identifier: GPL-2.0-only

//! The parts of the storm's simulation.

pub mod caller;
pub mod fixed;
pub mod ground;
pub mod listener;
