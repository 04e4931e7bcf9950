// SPDX-License-Identifier: GPL-2.0-only

//! Two nodes in conversation, and a third one that forges messages about it: the simulator's
//! nodes, network and consumers, and whatever is drawn there comes from the input, as do the
//! forgeries.
//!
//! A stranger that does not know both names of a connection neither ends nor hinders it. One
//! that sends from the peer's address may do so, but leaves nothing behind. ARP and neighbour
//! discovery packets come in between: they are taken apart, and make a node ask for no more paths
//! than its budget allows.

#![no_main]
// What the simulator's tests use besides.
#![allow(dead_code, reason = "the simulator has more than is needed here")]

// A file of the kernel module without a kernel in it.
#[path = "../../../../acm/budget.rs"]
mod budget;
// The tests of the crate have the same modules.
#[path = "../../tests"]
mod tests {
    pub mod allowed;
    pub mod directory;
    pub mod random;
    pub mod simulation;
}

use budget::{
    Budget,
    MOVE_HINTS, //
};
use libfuzzer_sys::fuzz_target;
use oxib_wire::arp;
use oxib_wire::hwaddr::HwAddr;
use oxib_wire::nd;
use random::Random;
use tests::simulation::forger::{
    converse,
    scenario,
    Forger, //
};
use tests::simulation::world::World;

// By these names the modules of the tests have each other.
use tests::allowed;
use tests::directory;
use tests::random;

/// Questions that ARP and neighbour discovery have had the node ask.
struct Neighbours {
    budget: Budget,
    began: u64,
    asked: u64,
}

impl Neighbours {
    /// A packet says that a neighbour is elsewhere: the node may ask, if its budget allows it.
    fn hint(&mut self, now: u64) {
        self.asked += u64::from(self.budget.take(now));
        // Eight at once, and then one for each half of a minute.
        assert!(self.asked <= 8 + now / 30_000);
    }

    fn hear(&mut self, world: &mut World) {
        let now = world.now.get() - self.began;
        let length = world.random.below(96) as usize;
        let bytes: Vec<u8> = (0..length).map(|_| world.random.below(256) as u8).collect();
        let mut packet = bytes.clone();
        if let Ok((_, parsed)) = arp::Packet::parse(&bytes) {
            let again = arp::Packet::parse_mut(&mut packet);
            assert!(again.is_ok_and(|(_, same)| format!("{same:?}") == format!("{parsed:?}")));
            self.hint(now);
        }
        for kind in [nd::Kind::Source, nd::Kind::Target] {
            let found = nd::find(&bytes, kind);
            let same = nd::find_mut(&mut packet, kind).map(|option| option.is_some());
            assert_eq!(found.as_ref().map(Option::is_some), same.as_ref().copied());
            if let Ok(Some(address)) = found {
                let _: HwAddr = address;
                self.hint(now);
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut random = Random::chosen(bytes);
    let forger = random.choose(&[Forger::Stranger, Forger::Anybody]);
    let scenario = scenario(&mut random, forger);
    let world = World::new(scenario, random);
    let mut neighbours = Neighbours {
        budget: Budget::new(MOVE_HINTS),
        began: world.now.get(),
        asked: 0,
    };
    let hear = |world: &mut World| neighbours.hear(world);
    converse(world, forger, hear, |world| world.random.is_chosen());
});
