// SPDX-License-Identifier: GPL-2.0-only

//! Sequences of messages to one node, from peers and from an attacker: forged, reordered, repeated
//! and lost, with the node's consumer and its timers in between. The fuzz target `cm_arrivals`
//! chooses such sequences, here a seed does.
//!
//! `OXIB_SCHEDULES` says how many to run (2000 unless told), `OXIB_FIRST_SEED` from which seed on.

mod arriving;
mod directory;
#[allow(dead_code, reason = "each test uses its part")]
mod random;

use arriving::world::World;
use random::Random;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number in the environment"))
}

#[test]
fn whatever_arrives_the_node_keeps_its_rules() {
    let first = number("OXIB_FIRST_SEED").unwrap_or(0);
    let count = number("OXIB_SCHEDULES").unwrap_or(2000);
    for seed in (0..count).map(|index| index.wrapping_add(first)) {
        let run = || World::new(Random::new(seed)).run();
        let failed = std::panic::catch_unwind(run).is_err();
        assert!(!failed, "seed {seed}");
    }
}
