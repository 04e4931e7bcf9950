// SPDX-License-Identifier: GPL-2.0-only

//! Two ends that have much to say to each other, and the network between them, all drawn from a
//! seed.

pub mod end;
pub mod network;
pub mod random;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use oxib_softib_transport::attributes::{
    Mtu,
    Receiving,
    Sending, //
};
use oxib_softib_transport::time::Time;
use oxib_softib_transport::Verdict;
use oxib_wire::psn::Psn;

use crate::host::{
    Terms,
    ALL,
    MS, //
};
use end::End;
use network::{
    see,
    Network, //
};
use random::Random;

pub fn terms(random: &mut Random) -> Terms {
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

pub struct Schedule {
    pub random: Random,
    pub ends: [End; 2],
    pub network: Network,
    pub now: u64,
    pub narrow: bool,
}

impl Schedule {
    pub fn new(seed: u64) -> Schedule {
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
    pub fn run(&mut self, which: usize) {
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
    pub fn step(&mut self) {
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
