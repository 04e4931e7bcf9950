// SPDX-License-Identifier: GPL-2.0-only

//! Two connected queue pairs over a network that loses, copies, delays and reorders, with work
//! queues that fill and empty at random. Whatever happens, data is whole, everything is done once
//! and in order, and the end is reached.
//!
//! `OXIB_SCHEDULES` says how many to run of each sort, `OXIB_FIRST_SEED` from which seed on (0
//! unless told), `OXIB_SEED` which one alone.

mod host;
mod simulation;

use host::{
    Frame,
    Host, //
};
use oxib_softib_transport::attributes::Service;
use oxib_softib_transport::work::{
    Delivery,
    Received,
    Status, //
};
use oxib_softib_transport::StateName;
use simulation::end::{
    End,
    Expected,
    BASE,
    DATA,
    SLOT, //
};
use simulation::network::{
    see,
    SEEN, //
};
use simulation::random::Random;
use simulation::{
    terms,
    Schedule, //
};

/// The send that put a queue pair into the error state; those after it are flushed.
fn first_failure(end: &End) -> Option<&(u32, Status)> {
    let mut completions = end.host.world.completions.iter();
    completions.find(|(_, status)| *status != Status::Success)
}

fn simulate(seed: u64) {
    let mut schedule = Schedule::new(seed);
    let mut steps = 0;
    while !schedule.ends.iter().all(End::is_finished) {
        schedule.step();
        steps += 1;
        assert!(steps < 200_000, "no progress");
        for end in &schedule.ends {
            if end.host.qp.state() == StateName::Rts {
                continue;
            }
            let failure = first_failure(end);
            let gave_up = matches!(failure, Some((_, Status::RetryExceeded)));
            assert!(gave_up && schedule.network.loss > 0, "{failure:?}");
            see(|seen| seen.gave_up += 1);
            println!("out of retries: OXIB_SEED={seed}");
            return;
        }
    }
    let [one, other] = &schedule.ends;
    one.check(other);
    other.check(one);
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number in the environment"))
}

/// Runs so many schedules unless told otherwise, and says which one it was that failed.
fn each(schedules: u64, simulation: fn(u64)) {
    if let Some(seed) = number("OXIB_SEED") {
        return simulation(seed);
    }
    let first = number("OXIB_FIRST_SEED").unwrap_or(0);
    for index in 0..number("OXIB_SCHEDULES").unwrap_or(schedules) {
        let seed = first.wrapping_add(index);
        let failed = std::panic::catch_unwind(|| simulation(seed)).is_err();
        assert!(!failed, "OXIB_SEED={seed}");
    }
}

/// Schedules of which one may lose a packet, and what repeats it, until there are no retries left.
const SCHEDULES_TO_GIVE_UP: u64 = 20_000;

#[test]
fn reliable_connections() {
    let schedules = 4000;
    each(schedules, simulate);
    // Whether all that may go wrong has gone wrong.
    let seen = SEEN.get();
    let mut run = 1;
    if number("OXIB_SEED").is_none() {
        assert!(seen.all().iter().all(|count| *count > 100), "{seen:?}");
        run = number("OXIB_SCHEDULES").unwrap_or(schedules);
    }
    assert!(
        u64::from(seen.gave_up) <= run / SCHEDULES_TO_GIVE_UP,
        "{seen:?}"
    );
}

/// The cable is pulled at some time: each end either has nothing under way, or it gives up, and
/// every send is reported, in order: those before as they were, one as not answered, the rest as
/// flushed.
fn pull(seed: u64) {
    let mut schedule = Schedule::new(seed ^ 0xcab1e);
    let steps = schedule.random.below(60);
    for _ in 0..steps {
        schedule.step();
    }
    schedule.network.loss = 100;
    schedule.network.queue.clear();
    let is_over = |end: &End| end.is_finished() && end.host.world.out.is_empty();
    for step in 0.. {
        schedule.step();
        assert!(step < 20_000, "no end");
        if schedule.ends.iter().all(is_over) {
            break;
        }
    }
    for end in &schedule.ends {
        let world = &end.host.world;
        let mut completions = world.completions.iter().copied().peekable();
        let mut last = None;
        while let Some((index, _)) = completions.next_if(|(_, status)| *status == Status::Success) {
            assert!(world.sends[index as usize].work.signalled && last < Some(index));
            last = Some(index);
        }
        let Some((failed, status)) = completions.next() else {
            assert_eq!(end.host.qp.state(), StateName::Rts);
            continue;
        };
        assert_eq!(status, Status::RetryExceeded);
        assert_eq!(end.host.qp.state(), StateName::Error);
        assert!(last < Some(failed));
        let rest: Vec<_> = completions.collect();
        let all: Vec<_> = (failed + 1..world.sends.len() as u32)
            .map(|index| (index, Status::Flushed))
            .collect();
        assert_eq!(rest, all);
        let is_flushed = |received: &Received| received.status == Status::Flushed;
        let posted = end.receives as usize;
        assert_eq!(world.received.len(), posted, "all receives are reported");
        let done = world
            .received
            .iter()
            .take_while(|(received, _)| !is_flushed(received));
        let done = done.count();
        assert!(world.received[done..]
            .iter()
            .all(|(received, _)| is_flushed(received)));
    }
}

#[test]
fn pulled_cables() {
    each(1000, pull);
}

/// An unreliable connection: what arrives is whole and in order, and every send succeeds.
fn lose(seed: u64) {
    let mut random = Random(seed ^ 0x0c0c);
    let terms = terms(&mut random);
    let mut sender = End::new(&terms, Random(random.next()), false, 40);
    let mut receiver = Host::new(Service::Uc, &terms);
    receiver.region(DATA, BASE, (SLOT * 64) as usize);
    let (loss, swaps) = (random.below(20), random.below(10));
    let mut waiting: Vec<Frame> = Vec::new();
    while !sender.is_finished() || !waiting.is_empty() {
        sender.post_some(&mut random);
        sender.host.world.room = Some(random.below(10) as u32);
        waiting.extend(sender.host.run());
        if waiting.len() > 1 && random.chance(swaps) {
            waiting.swap(0, 1);
        }
        for frame in waiting.drain(..waiting.len().min(3)) {
            if !random.chance(loss) {
                receiver.take(&frame);
            }
        }
        if random.chance(40) {
            receiver.post_receive((SLOT - 1) as usize);
        }
    }
    // Messages of one packet that overtake each other are taken as they come.
    let mut expected = sender.expected.clone();
    let mut next = 0;
    for (received, bytes) in &receiver.world.received {
        assert_eq!(received.status, Status::Success);
        let same = |expected: &Expected| match expected {
            Expected::Message(delivery, data, _) => {
                let whole = matches!(delivery, Delivery::Write(_)) || data == bytes;
                *delivery == received.delivery && whole && data.len() == received.length as usize
            }
            Expected::Nothing => false,
        };
        let place = next
            + expected[next..]
                .iter()
                .position(same)
                .expect("one that was sent");
        expected[place] = Expected::Nothing;
        if swaps == 0 {
            next = place;
        }
    }
    let statuses = &sender.host.world.completions;
    assert!(statuses
        .iter()
        .all(|(_, status)| *status == Status::Success));
    assert!(receiver.run().is_empty(), "nothing is answered");
}

#[test]
fn unreliable_connections() {
    each(1000, lose);
}
