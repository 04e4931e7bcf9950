// SPDX-License-Identifier: GPL-2.0-only

//! One end: a host, what it is going to send, and what should come of it.

use oxib_softib_transport::attributes::{
    Mtu,
    Service, //
};
use oxib_softib_transport::packet::Tail;
use oxib_softib_transport::work::{
    Delivery,
    Local,
    Operation,
    Status, //
};
use oxib_softib_transport::StateName;
use oxib_wire::immdt::ImmDt;

use super::random::Random;
use crate::host::{
    add,
    pattern,
    swap,
    target,
    Host,
    Terms, //
};

pub const DATA: u32 = 0x100; // written by the peer
pub const SOURCE: u32 = 0x200; // read by the peer
pub const WORDS: u32 = 0x300; // atomics of the peer
pub const ONCE: u32 = 0x1000; // keys that the peer invalidates
pub const BASE: u64 = 0x7f00_0000_0000;
pub const SLOT: u64 = 1 << 13;

/// The effect of a send that the peer should see.
#[derive(Clone, Debug)]
pub enum Expected {
    Message(Delivery, Vec<u8>, bool),
    Nothing,
}

/// The result that a send should have brought.
#[derive(Clone, Debug)]
pub enum Fetched {
    Data(Vec<u8>),
    Word(u64),
    Nothing,
}

/// One end, and what it has been asked for.
pub struct End {
    pub host: Host,
    /// Sends that are not posted yet.
    pub plan: Vec<(Operation, Vec<u8>, bool, bool, bool)>,
    pub expected: Vec<Expected>,
    pub fetched: Vec<Fetched>,
    /// Contents that the peer's memory should have in the end: offset and bytes.
    pub written: Vec<(u64, Vec<u8>)>,
    /// The value of the peer's word after all of the plan.
    pub word: u64,
    pub locals: Vec<u32>,
    pub receives: u64,
    pub source: Vec<u8>,
}

pub fn length(random: &mut Random, mtu: Mtu) -> usize {
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
    pub fn new(terms: &Terms, mut random: Random, reliable: bool, rounds: u64) -> End {
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

    pub fn plan_one(&mut self, number: u64, random: &mut Random, terms: &Terms, reliable: bool) {
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

    pub fn post_some(&mut self, random: &mut Random) {
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

    pub fn is_finished(&self) -> bool {
        self.plan.is_empty() && self.host.world.retired as usize == self.host.world.sends.len()
    }

    /// Checks what this end did, on both sides.
    pub fn check(&self, peer: &End) {
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
