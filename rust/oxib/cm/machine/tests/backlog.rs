// SPDX-License-Identifier: GPL-2.0-only

//! The slots of a listener: which connection gets one, which has to give one up, and that none
//! is lost.

#[allow(dead_code, reason = "each test uses its part")]
mod random;

use std::collections::BTreeMap;

use oxib_cm_machine::backlog::{
    Backlog,
    Cell,
    Outcome,
    Refused, //
    Slot,
};
use oxib_cm_machine::time::Time;
use oxib_wire::cm::comm_id::CommId;
use random::Random;

type Slots = Backlog<Vec<Cell>>;

/// The default of `half_open`.
const MOST: u32 = 4096;

const NOW: Time = Time::new(1_000_000);

fn slots(most: u32) -> Slots {
    Backlog::new(most, Vec::new())
}

/// A source as the shell has it: a hash.
fn source(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b9).rotate_left(16)
}

fn hold(
    slots: &mut Slots,
    take: impl Fn(&mut Slots) -> Result<Slot, Refused>,
) -> Result<Slot, Refused> {
    loop {
        match take(slots) {
            Err(Refused::Memory(cells)) => {
                let old = slots.grow(vec![Cell::default(); cells]);
                assert!(old.len() < cells);
            }
            other => return other,
        }
    }
}

fn take(slots: &mut Slots, number: u32, name: u32) -> Result<Slot, Refused> {
    take_at(slots, number, name, NOW)
}

fn take_at(slots: &mut Slots, number: u32, name: u32, now: Time) -> Result<Slot, Refused> {
    hold(slots, |slots| {
        slots.take(source(number), CommId::new(name), now)
    })
}

/// Takes all that a source gets.
fn take_all(slots: &mut Slots, number: u32) -> Vec<Slot> {
    let name = 1 + number * MOST;
    (name..)
        .map_while(|name| take(slots, number, name).ok())
        .collect()
}

/// Returns whether a newcomer finds a holder that may have to give a slot up, in as many tries
/// as the shell has.
fn finds(slots: &Slots, number: u32, random: &mut Random) -> bool {
    let number = source(number);
    slots.may_take_over(number)
        && (0..16).any(|_| {
            let chance = random.below(1 << 32) as u32;
            slots.candidate(number, chance).is_some()
        })
}

#[test]
fn a_source_has_as_many_as_are_left() {
    let mut slots = slots(MOST);
    let first = take_all(&mut slots, 1);
    assert_eq!(first.len(), 2048);
    assert_eq!(take_all(&mut slots, 2).len(), 1024);
    for mut slot in first {
        slots.end(&mut slot, Outcome::Finished, NOW);
        assert!(slot.is_given_back());
        // A second time is nothing.
        slots.end(&mut slot, Outcome::Finished, NOW);
    }
    assert_eq!(slots.taken(), 1024);
    assert_eq!(take_all(&mut slots, 2).len(), 1024);
}

#[test]
fn a_source_without_a_slot_is_not_admitted() {
    let mut slots = slots(4);
    let _first = take_all(&mut slots, 1);
    assert!(!slots.admits(source(1)));
    // It has fewer than the first one, and may have one of that one's.
    let _second = take_all(&mut slots, 2);
    assert!(slots.admits(source(2)));
    assert!(!slots.admits(source(1)));
    assert!(slots.admits(source(3)));
    let _third = take_all(&mut slots, 3);
    assert_eq!(slots.taken(), 4);
    assert!(slots.admits(source(4)));
}

/// A source that holds all slots which are taken is the last to be admitted with all others.
#[test]
fn all_are_admitted_while_more_than_half_is_free() {
    for most in [0, 1, 2, 5, 64] {
        let mut slots = slots(most);
        let mut held = Vec::new();
        while slots.admits_all() {
            assert!(slots.admits(source(1)) && slots.admits(source(2)));
            let name = 1 + slots.taken();
            held.push(take(&mut slots, 1, name).expect("all are admitted"));
        }
        assert!(!slots.admits(source(1)));
        assert_eq!(slots.taken(), most.div_ceil(2));
    }
}

#[test]
fn one_slot_is_one() {
    let mut slots = slots(1);
    let mut slot = take(&mut slots, 1, 1).unwrap();
    assert_eq!(take(&mut slots, 2, 2).err(), Some(Refused::Full));
    let over = hold(&mut slots, |slots| {
        slots.take_over(source(2), CommId::new(2), NOW)
    });
    assert_eq!(over.err(), Some(Refused::Full));
    slots.end(&mut slot, Outcome::Failed, NOW);
    assert!(take(&mut slots, 2, 2).is_ok());
}

/// Sources that have all that they get leave a slot to all others.
#[test]
fn a_source_without_a_slot_finds_one_beside_greedy_ones() {
    for greedy in 40..=120 {
        let mut slots = slots(MOST);
        // In turn, so that all have the same share.
        for round in 0.. {
            let asks = |number| take(&mut slots, number, 1 + round * 128 + number).is_ok();
            if (0..greedy).map(asks).filter(|is_taken| *is_taken).count() == 0 {
                break;
            }
        }
        assert!(slots.held(source(0)) >= MOST / (greedy + 1) - 1, "{greedy}");
        for newcomer in 0..1000 {
            let newcomer = 1000 + newcomer;
            let mut slot = take(&mut slots, newcomer, 0x10_0000 + newcomer)
                .unwrap_or_else(|_| panic!("{newcomer} finds no slot beside {greedy} greedy ones"));
            slots.end(&mut slot, Outcome::Finished, NOW);
        }
    }
}

/// Sources that are more than the slots leave none, but a newcomer may have one of theirs.
#[test]
fn a_source_that_holds_none_may_take_one_of_many() {
    let mut random = Random::new(1);
    let mut slots = slots(MOST);
    for number in 0..MOST {
        assert!(take(&mut slots, number, 1 + number).is_ok());
    }
    for newcomer in MOST..MOST + 1000 {
        assert!(finds(&slots, newcomer, &mut random), "{newcomer}");
    }
    // Sources that hold one have what every source has.
    for number in 0..MOST {
        assert!(!finds(&slots, number, &mut random), "{number}");
    }
}

/// Three of forty connections may be giving their slots up: then no newcomer is admitted.
#[test]
fn few_connections_give_their_slots_up_at_a_time() {
    let mut slots = slots(40);
    let held: Vec<Slot> = (0..40)
        .map(|number| take(&mut slots, number, 1 + number).expect("one is free"))
        .collect();
    let newcomer = source(99);
    for _ in 0..3 {
        assert!(slots.may_take_over(newcomer));
        assert!(slots.begin_giving_up());
    }
    assert!(!slots.begin_giving_up());
    assert!(!slots.may_take_over(newcomer) && !slots.admits(newcomer));
    slots.end_giving_up();
    assert!(slots.admits(newcomer) && slots.begin_giving_up());
    assert!(!slots.begin_giving_up());
    assert_eq!(held.len(), 40);
}

/// A dozen sources take all slots, each half of what was left: the last one has one.
#[test]
fn slots_are_taken_from_sources_that_hold_more() {
    let mut random = Random::new(1);
    let mut slots = slots(MOST);
    for number in 0..13 {
        take_all(&mut slots, number);
    }
    assert_eq!(slots.taken(), MOST);
    for _ in 0..10_000 {
        let chance = random.below(1 << 32) as u32;
        // One that holds 256, 16 times less than all, and more than three quarters of the others.
        if let Some(name) = slots.candidate(source(3), chance) {
            let holder = (name.get() - 1) / MOST;
            assert!(holder < 3, "{holder}");
        }
    }
    assert!(finds(&slots, 13, &mut random));
    assert!(!finds(&slots, 0, &mut random));
}

/// A connection takes a slot, and comes to an outcome so many milliseconds later.
fn pass(slots: &mut Slots, now: &mut Time, (outcome, time): (Outcome, u64)) {
    let begin = *now;
    *now = begin.after(time);
    let mut slot =
        hold(slots, |slots| slots.take(source(1), CommId::new(1), begin)).expect("one is free");
    slots.end(&mut slot, outcome, *now);
}

/// Connections that finish soon do not make up for those that never do. Each of them has the only
/// slot, so all of their time counts.
#[test]
fn time_to_finish_follows_the_time_of_slots() {
    let (mut slots, mut now) = (slots(1), NOW);
    assert_eq!(slots.time_to_finish(), 8192);
    let mut end = |outcomes: &[(Outcome, u64)]| {
        for _ in 0..5000 {
            for outcome in outcomes {
                pass(&mut slots, &mut now, *outcome);
            }
        }
        slots.time_to_finish()
    };
    let slow = end(&[(Outcome::Finished, 3000)]);
    assert!(slow > 8000, "{slow}");
    let mixed = end(&[(Outcome::Finished, 3000), (Outcome::Failed, 3000)]);
    assert!((3000..5000).contains(&mixed), "{mixed}");
    let attacked = end(&[
        (Outcome::Finished, 2),
        (Outcome::Finished, 2),
        (Outcome::Failed, 3000),
    ]);
    assert!(attacked < 20, "{attacked}");
    let over = end(&[(Outcome::Finished, 2)]);
    assert!(over < 200, "{over}");
    let over = end(&[(Outcome::Finished, 3000)]);
    assert!(over > 8000, "{over}");
}

/// A peer that crashed while slots were free for all takes none from others.
#[test]
fn failures_beside_free_slots_cost_no_time() {
    for failures in [1, 100] {
        let (mut slots, mut now) = (slots(MOST), NOW);
        for _ in 0..failures {
            pass(&mut slots, &mut now, (Outcome::Failed, 65_536));
        }
        for _ in 0..1000 {
            pass(&mut slots, &mut now, (Outcome::Finished, 2));
        }
        let time = slots.time_to_finish();
        assert!(time >= 8000, "{time} ms after {failures} failures");
    }
}

/// Holders that never finish lose their slots one after the other, as soon as they may.
#[test]
fn a_hundred_lose_their_slots_before_the_time_is_halved() {
    let (mut slots, mut now) = (slots(1), NOW);
    let mut lose = |count| {
        for _ in 0..count {
            let time = slots.time_to_finish();
            pass(&mut slots, &mut now, (Outcome::Failed, time));
        }
        slots.time_to_finish()
    };
    assert!(lose(1) > 8000);
    assert!(lose(89) > 4096);
    assert!(lose(20) < 4096);
    // All slots once.
    assert!(lose(MOST - 110) < 1000);
}

/// Strangers take all slots at once, each by a source of its own, and lose them as soon as they
/// may. Returns the milliseconds for which no newcomer finds a slot.
fn crowd(slots: &mut Slots, now: &mut Time) -> u64 {
    let mut held: Vec<Slot> = (1..=MOST)
        .map(|number| take_at(slots, number, number, *now).expect("one is free"))
        .collect();
    let time = slots.time_to_finish();
    *now = now.after(time);
    for slot in &mut held {
        slots.end(slot, Outcome::Failed, *now);
    }
    time
}

/// Once there are free slots, an attack is forgotten within minutes: few connections are made
/// meanwhile, or they fail, or come to no outcome, or there are none.
#[test]
fn an_attack_is_forgotten_in_minutes() {
    let (finished, failed) = (Some(Outcome::Finished), Some(Outcome::Failed));
    for (connections, outcome) in [(480, finished), (480, failed), (480, None), (0, None)] {
        let (mut slots, mut now) = (slots(MOST), NOW);
        crowd(&mut slots, &mut now);
        let attacked = slots.time_to_finish();
        assert!(attacked < 100, "{attacked}");
        let end = now.after(480_000);
        // One a second.
        for _ in 0..connections {
            let mut slot = take_at(&mut slots, 1, 1, now).unwrap();
            match outcome {
                Some(outcome) => slots.end(&mut slot, outcome, now.after(2)),
                None => slots.give_back(&mut slot),
            }
            now = now.after(1000);
        }
        assert!(take_at(&mut slots, 1, 1, end).is_ok());
        let time = slots.time_to_finish();
        assert!(time >= 8000, "{time} ms, {connections}, {outcome:?}");
    }
}

/// An attack goes on as long as its slots are taken, however long it has lasted.
#[test]
fn an_attack_is_not_forgotten_while_it_lasts() {
    let (mut slots, mut now) = (slots(1), NOW);
    for _ in 0..10_000 {
        let time = slots.time_to_finish().max(1000);
        pass(&mut slots, &mut now, (Outcome::Failed, time));
    }
    assert!(slots.time_to_finish() < 100);
}

/// An attacker takes all slots, pauses, and takes them again, for an hour. Whatever its pauses,
/// newcomers find no slot for 4096 ms for each minute in which they do, at most.
#[test]
fn an_attacker_that_pauses_gains_little() {
    for pause in [10_000, 30_000, 59_000, 60_000, 61_000, 150_000, 600_000] {
        let (mut slots, mut now) = (slots(MOST), NOW);
        let (mut kept_out, mut paused) = (0, 0);
        while paused < 3_600_000 {
            kept_out += crowd(&mut slots, &mut now);
            now = now.after(pause);
            paused += pause;
        }
        // The first attack finds a new backlog, and may begin in the middle of a minute.
        let most = 8192 + 4096 * (1 + paused / 60_000);
        assert!(kept_out <= most, "{kept_out} ms with pauses of {pause} ms");
    }
}

/// Time counts from when the last slot is taken until one becomes free.
#[test]
fn time_counts_while_all_slots_are_taken() {
    let at = |time| NOW.after(time);
    let take = |slots: &mut Slots, number, time| take_at(slots, number, number, at(time));
    // Milliseconds that count where the second slot is given back without an outcome: until it
    // was seen last that both are taken.
    for (outcome, counts) in [(Some(Outcome::Finished), 300_000), (None, 200_000)] {
        let mut slots = slots(2);
        let mut first = take(&mut slots, 1, 0).unwrap();
        let mut second = take(&mut slots, 2, 100_000).unwrap();
        let third = take(&mut slots, 3, 300_000);
        assert_eq!(third.err(), Some(Refused::Full));
        let finished = match outcome {
            Some(outcome) => {
                slots.end(&mut second, outcome, at(400_000));
                counts
            }
            None => {
                slots.give_back(&mut second);
                0
            }
        };
        // Before the finished one is forgotten.
        slots.end(&mut first, Outcome::Failed, at(410_000));
        let finished = (1 << 19) + finished;
        let expected = 8192 * finished / (finished + counts);
        let time = slots.time_to_finish();
        assert!(time.abs_diff(expected) <= 1, "{time}, not {expected}");
    }
}

/// Beside a model that knows each slot, whatever comes and goes.
#[test]
fn nothing_is_lost_and_nothing_counted_twice() {
    let first = std::env::var("OXIB_FIRST_SEED").map_or(0, |text| text.parse().expect("a number"));
    for seed in (0..200).map(|index: u64| index.wrapping_add(first)) {
        let mut random = Random::new(seed);
        let most = 1 + random.below(100) as u32;
        let sources = 1 + random.below(150);
        let mut slots = slots(most);
        let mut held: Vec<(u32, u32, Slot)> = Vec::new();
        for name in 1..3000 {
            let number = random.below(sources) as u32;
            if random.percent(55) {
                let own = held.iter().filter(|(other, ..)| *other == number).count();
                let free = most as usize - held.len();
                match take(&mut slots, number, name) {
                    Ok(slot) => {
                        assert!(own < free);
                        held.push((number, name, slot));
                    }
                    Err(refused) => assert!(refused == Refused::Full && own >= free),
                }
            } else if !held.is_empty() {
                let index = random.below(held.len() as u64) as usize;
                let (_, _, mut slot) = held.swap_remove(index);
                match random.choose(&[Some(Outcome::Finished), Some(Outcome::Failed), None]) {
                    Some(outcome) => slots.end(&mut slot, outcome, NOW),
                    None => slots.give_back(&mut slot),
                }
            }
            check(&slots, &held, sources as u32, &mut random);
        }
    }
}

fn check(slots: &Slots, held: &[(u32, u32, Slot)], sources: u32, random: &mut Random) {
    let mut counts = BTreeMap::new();
    for (number, ..) in held {
        *counts.entry(*number).or_insert(0) += 1;
    }
    assert_eq!(slots.taken() as usize, held.len());
    for number in 0..sources {
        let count = counts.get(&number).copied().unwrap_or(0);
        assert_eq!(slots.held(source(number)), count);
        let is_below = count as usize * counts.len() < held.len();
        assert_eq!(slots.may_take_over(source(number)), is_below);
    }
    let newcomer = random.below(sources.into()) as u32;
    let chance = random.below(1 << 32) as u32;
    if let Some(name) = slots.candidate(source(newcomer), chance) {
        let holder = held.iter().find(|(_, other, _)| *other == name.get());
        let (holder, ..) = holder.expect("a candidate has a slot");
        let newcomers = counts.get(&newcomer).copied().unwrap_or(0);
        assert!(counts[holder] > newcomers);
    }
}
