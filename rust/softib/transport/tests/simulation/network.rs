// SPDX-License-Identifier: GPL-2.0-only

//! The network between the ends, and what has been seen on it.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use oxib_softib_transport::packet::{
    Body,
    Request,
    Response, //
};
use oxib_wire::aeth::{
    NakCode,
    Syndrome, //
};

use super::random::Random;
use crate::host::Frame;

/// Counts of what happened in the schedules, so that a test can tell whether it tests anything.
#[derive(Clone, Copy, Default, Debug)]
pub struct Seen {
    pub lost: u32,
    pub duplicates: u32,
    pub out_of_order: u32,
    pub sequence_naks: u32,
    pub rnr_naks: u32,
    pub reads_restarted: u32,
    pub time_outs: u32,
    pub gave_up: u32,
}

impl Seen {
    /// Everything that a run has to see; giving up is rare.
    pub fn all(&self) -> [u32; 7] {
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
    pub static SEEN: Cell<Seen> = const { Cell::new(Seen {
        lost: 0,
        duplicates: 0,
        out_of_order: 0,
        sequence_naks: 0,
        rnr_naks: 0,
        reads_restarted: 0,
        time_outs: 0,
        gave_up: 0,
    }) };
}

pub fn see(what: impl FnOnce(&mut Seen)) {
    let mut seen = SEEN.get();
    what(&mut seen);
    SEEN.set(seen);
}

/// Notes what an emitted packet shows.
pub fn look_at(frame: &Frame) {
    match frame.body {
        Body::Response(Response::Acknowledge(acknowledgement)) => match acknowledgement.syndrome {
            Syndrome::Nak(NakCode::SequenceError) => see(|seen| seen.sequence_naks += 1),
            Syndrome::RnrNak(_) => see(|seen| seen.rnr_naks += 1),
            _ => {}
        },
        // READs begin at even multiples of the smallest MTU here, so that one at an odd multiple
        // is the rest of another.
        Body::Request(Request::Read(remote)) if remote.address % 512 == 256 => {
            see(|seen| seen.reads_restarted += 1);
        }
        _ => {}
    }
}

pub struct Network {
    pub loss: u64,
    pub copies: u64,
    pub delay: u64,
    /// The time of arrival and the index in `frames` of each frame that is under way.
    pub queue: BinaryHeap<Reverse<(u64, u64)>>,
    pub frames: Vec<Option<(usize, Frame)>>,
}

impl Network {
    pub fn send(&mut self, to: usize, frame: Frame, now: u64, random: &mut Random) {
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

    pub fn queue_at(&mut self, to: usize, frame: Frame, now: u64, random: &mut Random) {
        let number = self.frames.len() as u64;
        let at = now + 1000 + number % 7 + random.below(self.delay);
        self.queue.push(Reverse((at, number)));
        self.frames.push(Some((to, frame)));
    }
}
