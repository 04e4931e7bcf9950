// SPDX-License-Identifier: GPL-2.0-only

//! The arriving side of a node: machines, tables of remote names, places and timers. Peers
//! connect, crash and move, an attacker forges, the network reorders, repeats and loses, and the
//! input chooses all of it. Each input is a sequence of [`STEPS`] steps; a short one goes on with
//! numbers of its own.
//!
//! No place is lost, no peer is refused that has a right to one, nobody is told of a connection
//! of others, no message changes a connection of others, and memory is bounded.

#![no_main]
// What the simulator's tests use besides.
#![allow(dead_code, reason = "the simulator has more than is needed here")]

#[path = "../../tests/arriving/mod.rs"]
mod arriving;
#[path = "../../tests/simulation/directory.rs"]
mod directory;
#[path = "../../tests/simulation/random.rs"]
mod random;

use arriving::world::{
    World,
    STEPS, //
};
use libfuzzer_sys::fuzz_target;
use random::Random;

// `scripts/fuzz` counts steps by it.
const _: () = assert!(STEPS == 100);

fuzz_target!(|bytes: &[u8]| {
    World::new(Random::chosen(bytes)).run();
});
