// SPDX-License-Identifier: GPL-2.0-only

//! The arriving side of a node: machines, tables of remote names, slots and timers. Peers
//! connect, crash and move, an attacker forges, the network reorders, repeats and loses, and the
//! input chooses all of it. Each input is a sequence of [`STEPS`] steps; a short one goes on with
//! numbers of its own.
//!
//! No slot is lost, no peer is refused that has a right to one, nobody is told of a connection
//! of others, no message changes a connection of others, and memory is bounded.

#![no_main]
// What the simulator's tests use besides.
#![allow(dead_code, reason = "the simulator has more than is needed here")]

// The tests of the crate have the same modules.
#[path = "../../tests"]
mod tests {
    pub mod arriving;
    pub mod directory;
    pub mod random;
}

use libfuzzer_sys::fuzz_target;
use random::Random;
use tests::arriving::world::{
    World,
    STEPS, //
};

// By these names the modules of the tests have each other.
use tests::directory;
use tests::random;

// `scripts/fuzz` counts steps by it.
const _: () = assert!(STEPS == 100);

fuzz_target!(|bytes: &[u8]| {
    World::new(Random::chosen(bytes)).run();
});
