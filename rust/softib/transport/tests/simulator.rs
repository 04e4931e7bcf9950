// SPDX-License-Identifier: GPL-2.0-only

//! Two connected queue pairs over a network that loses, copies, delays and reorders, with work
//! queues that fill and empty at random. Whatever happens, data is whole, everything is done once
//! and in order, and the end is reached.

mod host;

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use host::{
    add,
    pattern,
    swap,
    target,
    Frame,
    Host,
    Terms,
    ALL,
    MS, //
};
use oxib_softib_transport::attributes::{
    Mtu,
    Receiving,
    Sending,
    Service, //
};
use oxib_softib_transport::packet::{
    Body,
    Request,
    Response,
    Tail, //
};
use oxib_softib_transport::time::Time;
use oxib_softib_transport::work::{
    Delivery,
    Local,
    Operation,
    Received,
    Status, //
};
use oxib_softib_transport::{
    StateName,
    Verdict, //
};
use oxib_wire::aeth::{
    NakCode,
    Syndrome, //
};
use oxib_wire::immdt::ImmDt;
use oxib_wire::psn::Psn;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

const DATA: u32 = 0x100; // written by the peer
const SOURCE: u32 = 0x200; // read by the peer
const WORDS: u32 = 0x300; // atomics of the peer
const ONCE: u32 = 0x1000; // keys that the peer invalidates
const BASE: u64 = 0x7f00_0000_0000;
const SLOT: u64 = 1 << 13;

/// What the peer should see of a send.
#[derive(Clone, Debug)]
enum Expected {
    Message(Delivery, Vec<u8>, bool),
    Nothing,
}

/// What a send should have brought.
#[derive(Clone, Debug)]
enum Fetched {
    Data(Vec<u8>),
    Word(u64),
    Nothing,
}

/// One end, and what it has been asked for.
struct End {
    host: Host,
    /// Sends that are not posted yet.
    plan: Vec<(Operation, Vec<u8>, bool, bool, bool)>,
    expected: Vec<Expected>,
    fetched: Vec<Fetched>,
    /// What the peer's memory should hold in the end: offset and bytes.
    written: Vec<(u64, Vec<u8>)>,
    /// What the peer's word is after all of the plan.
    word: u64,
    locals: Vec<u32>,
    receives: u64,
    source: Vec<u8>,
}

/// What has happened in the schedules, so that a test can tell whether it tests anything.
#[derive(Clone, Copy, Default, Debug)]
struct Seen {
    lost: u32,
    duplicates: u32,
    out_of_order: u32,
    sequence_naks: u32,
    rnr_naks: u32,
    reads_restarted: u32,
    time_outs: u32,
}

impl Seen {
    fn all(&self) -> [u32; 7] {
        [
            self.lost,
            self.duplicates,
            self.out_of_order,
            self.sequence_naks,
            self.rnr_naks,
            self.reads_restarted,
            self.time_outs,
        ]
    }
}

thread_local! {
    static SEEN: Cell<Seen> = const { Cell::new(Seen {
        lost: 0,
        duplicates: 0,
        out_of_order: 0,
        sequence_naks: 0,
        rnr_naks: 0,
        reads_restarted: 0,
        time_outs: 0,
    }) };
}

fn see(what: impl FnOnce(&mut Seen)) {
    let mut seen = SEEN.get();
    what(&mut seen);
    SEEN.set(seen);
}

/// Notes what an emitted packet shows.
fn look_at(frame: &Frame) {
    match frame.body {
        Body::Response(Response::Acknowledge(acknowledgement)) => match acknowledgement.syndrome {
            Syndrome::Nak(NakCode::SequenceError) => see(|seen| seen.sequence_naks += 1),
            Syndrome::RnrNak(_) => see(|seen| seen.rnr_naks += 1),
            _ => {}
        },
        // READs begin at even multiples of the smallest MTU here, so that one at an odd one is the rest of another.
        Body::Request(Request::Read(remote)) if remote.address % 512 == 256 => {
            see(|seen| seen.reads_restarted += 1);
        }
        _ => {}
    }
}

struct Network {
    loss: u64,
    copies: u64,
    delay: u64,
    /// When, in which order sent, to which end, what.
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    frames: Vec<Option<(usize, Frame)>>,
}

impl Network {
    fn send(&mut self, to: usize, frame: Frame, now: u64, random: &mut Random) {
        look_at(&frame);
        if random.chance(self.loss) {
            see(|seen| seen.lost += 1);
            return;
        }
        if random.chance(self.copies) {
            self.queue_at(to, frame.clone(), now, random);
        }
        self.queue_at(to, frame, now, random);
    }

    fn queue_at(&mut self, to: usize, frame: Frame, now: u64, random: &mut Random) {
        let number = self.frames.len() as u64;
        let at = now + 1000 + number % 7 + random.below(self.delay);
        self.queue.push(Reverse((at, number)));
        self.frames.push(Some((to, frame)));
    }
}

fn length(random: &mut Random, mtu: Mtu) -> usize {
    let mtu = u64::from(mtu.bytes());
    let length = match random.below(8) {
        0 => 0,
        1 => 1 + random.below(3),
        2 => mtu,
        3 => mtu + 1,
        4 => mtu * (1 + random.below(5)),
        _ => random.below(mtu * 6),
    };
    length as usize
}

impl End {
    fn new(terms: &Terms, mut random: Random, reliable: bool, rounds: u64) -> End {
        let service = if reliable { Service::Rc } else { Service::Uc };
        let mut host = Host::new(service, terms);
        for rkey in [DATA, WORDS] {
            host.region(rkey, BASE, (SLOT * 64) as usize);
        }
        let source = pattern(7, (SLOT * 2) as usize);
        host.region(SOURCE, BASE, 0).bytes = source.clone();
        for number in 0..64 {
            host.region(ONCE + number, BASE, 8);
        }
        let mut end = End {
            host,
            plan: Vec::new(),
            expected: Vec::new(),
            fetched: Vec::new(),
            written: Vec::new(),
            word: 0,
            locals: Vec::new(),
            receives: 0,
            source,
        };
        let count = 1 + random.below(rounds);
        for number in 0..count {
            end.plan_one(number, &mut random, terms, reliable);
        }
        end
    }

    fn plan_one(&mut self, number: u64, random: &mut Random, terms: &Terms, reliable: bool) {
        let mtu = terms.receiving.mtu;
        let data = pattern(random.next() as u32, length(random, mtu));
        let solicited = random.chance(30);
        let immediate = ImmDt::from_bytes((number as u32).to_be_bytes());
        let place = BASE + number * SLOT + random.below(64);
        let kinds = if reliable { 11 } else { 5 };
        let (operation, buffer, expected, fetched) = match random.below(kinds) {
            0 | 1 => {
                let delivery = Delivery::Send(Tail::Plain);
                let expected = Expected::Message(delivery, data.clone(), solicited);
                (
                    Operation::Send(Tail::Plain),
                    data,
                    expected,
                    Fetched::Nothing,
                )
            }
            2 => {
                let tail = Tail::Immediate(immediate);
                let expected = Expected::Message(Delivery::Send(tail), data.clone(), solicited);
                (Operation::Send(tail), data, expected, Fetched::Nothing)
            }
            3 => {
                self.written.push((place, data.clone()));
                let operation = Operation::Write(target(DATA, place), None);
                (operation, data, Expected::Nothing, Fetched::Nothing)
            }
            4 => {
                self.written.push((place, data.clone()));
                let operation = Operation::Write(target(DATA, place), Some(immediate));
                let delivery = Delivery::Write(immediate);
                let expected = Expected::Message(delivery, data.clone(), solicited);
                (operation, data, expected, Fetched::Nothing)
            }
            5 => {
                let tail = Tail::Invalidate(ONCE + number as u32);
                let expected = Expected::Message(Delivery::Send(tail), data.clone(), solicited);
                (Operation::Send(tail), data, expected, Fetched::Nothing)
            }
            6 | 7 => {
                let offset = random.below(SLOT / 512) * 512;
                let wanted = self.source[offset as usize..][..data.len()].to_vec();
                let operation = Operation::Read(target(SOURCE, BASE + offset));
                let buffer = vec![0; data.len()];
                (operation, buffer, Expected::Nothing, Fetched::Data(wanted))
            }
            8 => {
                let (before, more) = (self.word, random.next());
                self.word = before.wrapping_add(more);
                let operation = add(WORDS, BASE, more);
                (
                    operation,
                    vec![0; 8],
                    Expected::Nothing,
                    Fetched::Word(before),
                )
            }
            9 => {
                let (before, next) = (self.word, random.next());
                let compare = if random.chance(50) { before } else { !before };
                if compare == before {
                    self.word = next;
                }
                let operation = swap(WORDS, BASE, compare, next);
                (
                    operation,
                    vec![0; 8],
                    Expected::Nothing,
                    Fetched::Word(before),
                )
            }
            _ => {
                self.locals.push(number as u32);
                let local = if random.chance(50) {
                    Local::Register
                } else {
                    Local::Invalidate
                };
                let operation = Operation::Local(local);
                (operation, Vec::new(), Expected::Nothing, Fetched::Nothing)
            }
        };
        self.expected.push(expected);
        self.fetched.push(fetched);
        let (signalled, fence) = (random.chance(60), random.chance(15));
        self.plan
            .push((operation, buffer, signalled, solicited, fence));
    }

    fn post_some(&mut self, random: &mut Random) {
        while !self.plan.is_empty() && random.chance(70) {
            let (operation, buffer, signalled, solicited, fence) = self.plan.remove(0);
            let post = self.host.post(operation, buffer);
            post.work.signalled = signalled;
            post.work.solicited = solicited;
            post.work.fence = fence;
        }
        if random.chance(40) && self.receives < 100 {
            self.receives += 1;
            self.host.post_receive((SLOT - 1) as usize);
            self.host.qp.receive_posted(&mut self.host.world);
        }
    }

    fn is_finished(&self) -> bool {
        self.plan.is_empty() && self.host.world.retired as usize == self.host.world.sends.len()
    }

    /// What this end did, on both sides.
    fn check(&self, peer: &End) {
        let world = &self.host.world;
        let signalled: Vec<_> = (0_u32..)
            .zip(&world.sends)
            .filter(|(_, post)| post.work.signalled)
            .map(|(index, _)| (index, Status::Success))
            .collect();
        assert_eq!(world.completions, signalled, "completions in order");
        assert_eq!(world.locals, self.locals, "local operations once");
        for (post, fetched) in world.sends.iter().zip(&self.fetched) {
            match fetched {
                Fetched::Data(data) => assert!(post.buffer == *data, "data read"),
                Fetched::Word(word) => assert_eq!(post.buffer, word.to_ne_bytes()),
                Fetched::Nothing => {}
            }
        }
        let mut messages = peer.host.world.received.iter();
        for expected in &self.expected {
            let Expected::Message(delivery, data, solicited) = expected else {
                continue;
            };
            let (received, bytes) = messages.next().expect("each message arrives");
            assert_eq!(received.status, Status::Success);
            assert_eq!(received.delivery, *delivery);
            assert_eq!(received.solicited, *solicited);
            assert_eq!(received.length as usize, data.len());
            if let Delivery::Send(_) = delivery {
                assert!(bytes == data, "data sent");
            }
        }
        assert!(messages.next().is_none(), "each message arrives once");
        let memory = &peer.host.world.regions[&DATA];
        for (place, data) in &self.written {
            let start = (place - BASE) as usize;
            assert!(memory.bytes[start..][..data.len()] == *data, "data written");
        }
        let words = &peer.host.world.regions[&WORDS].bytes;
        assert_eq!(words[..8], self.word.to_ne_bytes());
        let atomics = self
            .fetched
            .iter()
            .filter(|f| matches!(f, Fetched::Word(_)));
        assert_eq!(peer.host.world.atomics as usize, atomics.count());
        assert_eq!(self.host.qp.state(), StateName::Rts);
        assert!(world.events.is_empty());
    }
}

fn terms(random: &mut Random) -> Terms {
    let mtu = Mtu::ALL[random.below(3) as usize];
    // Often just before the end of the numbers.
    let psn = if random.chance(50) {
        Psn::wrapping(0u32.wrapping_sub(random.below(40) as u32))
    } else {
        Psn::wrapping(random.next() as u32)
    };
    let max_reads = 1 + random.below(16) as u8;
    Terms {
        receiving: Receiving {
            mtu,
            psn,
            access: ALL,
            max_reads,
            min_rnr_timer: 1 + random.below(14) as u8,
        },
        sending: Sending {
            psn,
            timeout: 10,
            retry_count: 7,
            rnr_retry: 7,
            max_reads,
        },
    }
}

struct Schedule {
    random: Random,
    ends: [End; 2],
    network: Network,
    now: u64,
    narrow: bool,
}

impl Schedule {
    fn new(seed: u64) -> Schedule {
        let mut random = Random(seed);
        let terms = terms(&mut random);
        let network = Network {
            loss: [0, 0, 1, 3, 8][random.below(5) as usize],
            copies: [0, 2, 10][random.below(3) as usize],
            delay: [1, 20_000, 300_000][random.below(3) as usize],
            queue: BinaryHeap::new(),
            frames: Vec::new(),
        };
        let ends = [0, 1].map(|_| End::new(&terms, Random(random.next()), true, 40));
        let narrow = random.chance(30);
        Schedule {
            random,
            ends,
            network,
            now: 0,
            narrow,
        }
    }

    /// Lets an end answer and send, and gives the network what it emits.
    fn run(&mut self, which: usize) {
        let end = &mut self.ends[which];
        end.host.now = Time::new(self.now);
        end.host.world.room = self.narrow.then(|| self.random.below(5) as u32);
        let timer = end.host.qp.due().is_some_and(|due| due <= end.host.now);
        let frames = if timer {
            see(|seen| seen.time_outs += 1);
            end.host.qp.timer(&mut end.host.world, Time::new(self.now));
            std::mem::take(&mut end.host.world.out)
        } else {
            end.host.run()
        };
        for frame in frames {
            self.network
                .send(1 - which, frame, self.now, &mut self.random);
        }
    }

    /// One step of time.
    fn step(&mut self) {
        for which in [0, 1] {
            self.ends[which].post_some(&mut self.random);
        }
        let mut touched = [false; 2];
        // Several packets may come before the queue pairs run.
        for _ in 0..=self.random.below(6) {
            let Some(Reverse((at, number))) = self.network.queue.pop() else {
                break;
            };
            self.now = self.now.max(at);
            if let Some((to, frame)) = self.network.frames[number as usize].take() {
                let host = &mut self.ends[to].host;
                host.now = Time::new(self.now);
                match host.take(&frame) {
                    Verdict::Duplicate => see(|seen| seen.duplicates += 1),
                    Verdict::OutOfOrder => see(|seen| seen.out_of_order += 1),
                    _ => {}
                }
                touched[to] = true;
            }
        }
        if touched == [false; 2] {
            let due = self.ends.iter().filter_map(|end| end.host.qp.due()).min();
            self.now = due.map_or(self.now + MS, |due| self.now.max(due.get()));
        }
        for which in [0, 1] {
            self.run(which);
        }
    }
}

fn simulate(seed: u64) {
    let mut schedule = Schedule::new(seed);
    let mut steps = 0;
    while !schedule.ends.iter().all(End::is_finished) {
        schedule.step();
        steps += 1;
        assert!(steps < 200_000, "no progress");
        for end in &schedule.ends {
            assert_eq!(
                end.host.qp.state(),
                StateName::Rts,
                "{:?}",
                end.host.world.completions.last()
            );
        }
    }
    let [one, other] = &schedule.ends;
    one.check(other);
    other.check(one);
}

/// Runs many seeds, and says which one it was that failed.
fn each(seeds: std::ops::Range<u64>, simulation: fn(u64)) {
    let only = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    for seed in seeds {
        if only.is_some_and(|only: u64| only != seed) {
            continue;
        }
        if let Err(panic) = std::panic::catch_unwind(|| simulation(seed)) {
            eprintln!("that was seed {seed}; run it alone with SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn reliable_connections() {
    each(0..4000, simulate);
    let seen = SEEN.get();
    eprintln!("{seen:?}");
    if std::env::var("SEED").is_err() {
        assert!(seen.all().iter().all(|count| *count > 100), "{seen:?}");
    }
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
    each(0..1000, pull);
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
    each(0..1000, lose);
}
