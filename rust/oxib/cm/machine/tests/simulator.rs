// SPDX-License-Identifier: GPL-2.0-only

//! Two ends with a machine for each of their connections, a network between them that loses,
//! repeats, delays and reorders, and consumers of many tempers: schedules without number, each
//! drawn from a seed.
//!
//! `OXIB_SCHEDULES` says how many to run of each sort (10,000 unless told), `OXIB_FIRST_SEED` from
//! which seed on (0 unless told), `OXIB_SEED` which one alone.

mod allowed;
mod directory;
mod random;
mod simulation;

use random::Random;
use simulation::consumer::Temper;
use simulation::forger::{
    self,
    Forger, //
};
use simulation::world::{
    Scenario,
    World, //
};

/// The sorts of schedules that are run.
#[derive(Clone, Copy, Debug)]
enum Sort {
    /// The network is good, and both consumers want the connection until one does not.
    Fair,
    /// The network is bad for a while at each step, and the consumers are those of a fair
    /// schedule.
    Lossy,
    /// The network may be bad, and the consumers take longer than their peers would wait.
    Slow,
    /// The network and the consumers do anything.
    Wild,
    /// A third party forges messages.
    Forged(Forger),
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number in the environment"))
}

fn scenario(sort: Sort, random: &mut Random) -> Scenario {
    match sort {
        Sort::Forged(forger) => forger::scenario(random, forger),
        Sort::Fair => Scenario {
            loss: 0,
            duplicates: 0,
            longest_delay: 8,
            temper: Temper::Willing,
            connections: 1,
        },
        Sort::Lossy => Scenario {
            loss: random.below(60),
            duplicates: random.below(40),
            longest_delay: 1 + random.below(40),
            temper: Temper::Willing,
            connections: 1,
        },
        Sort::Slow => Scenario {
            loss: random.choose(&[0, 20, 60]),
            duplicates: random.below(40),
            longest_delay: 1 + random.below(40),
            temper: Temper::Slow,
            connections: 1,
        },
        Sort::Wild => Scenario {
            loss: random.below(50),
            duplicates: random.below(50),
            longest_delay: 1 + random.below(3000),
            temper: Temper::Any,
            connections: 1 + random.below(4),
        },
    }
}

fn run(sort: Sort, seed: u64) {
    let mut random = Random::new(seed);
    let scenario = scenario(sort, &mut random);
    let mut world = World::new(scenario, random);
    if let Sort::Forged(forger) = sort {
        return forger::converse(world, forger, |_| {}, |_| true);
    }
    world.run();
    world.judge_every_schedule();
    match sort {
        Sort::Fair => world.judge_fair(),
        Sort::Lossy => world.judge_willing(),
        // MRAs and then RTUs may be lost, one after the other, until the patience is over.
        Sort::Slow if scenario.loss == 0 => world.judge_willing(),
        Sort::Slow => {}
        Sort::Wild | Sort::Forged(_) => {}
    }
}

/// Runs the schedules of a sort; the seed of one that fails is printed.
fn run_all(sort: Sort) {
    if let Some(seed) = number("OXIB_SEED") {
        run(sort, seed);
        return;
    }
    let first = number("OXIB_FIRST_SEED").unwrap_or(0);
    for index in 0..number("OXIB_SCHEDULES").unwrap_or(10_000) {
        let seed = first.wrapping_add(index);
        let failed = std::panic::catch_unwind(|| run(sort, seed)).is_err();
        assert!(!failed, "{sort:?} schedule, OXIB_SEED={seed}");
    }
}

#[test]
fn fair_schedules() {
    run_all(Sort::Fair);
}

#[test]
fn lossy_schedules() {
    run_all(Sort::Lossy);
}

#[test]
fn slow_schedules() {
    run_all(Sort::Slow);
}

#[test]
fn wild_schedules() {
    run_all(Sort::Wild);
}

#[test]
fn schedules_with_a_strangers_forgeries() {
    run_all(Sort::Forged(Forger::Stranger));
}

#[test]
fn schedules_with_anybodys_forgeries() {
    run_all(Sort::Forged(Forger::Anybody));
}
