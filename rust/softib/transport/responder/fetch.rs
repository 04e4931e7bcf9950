// SPDX-License-Identifier: GPL-2.0-only

//! READs and atomics at a responder: those that are still to be answered, and those that may have
//! to be answered once more (IBTA 9.7.7.1, "responder resources").
//!
//! They are kept in the order of their numbers, as many as the peer may have outstanding. The
//! first that is not answered has its turn. A repeated READ is read again from where the peer
//! wants it; a repeated atomic is answered with what it found when it was done.

use super::super::attributes::{
    Mtu,
    MAX_READS, //
};
use super::super::packet::{
    Acknowledgement,
    Outgoing,
    Payload,
    Remote,
    Response, //
};
use super::super::sequence::{
    after,
    ahead, //
};
use super::super::wire::psn::Psn;

const SLOTS: usize = MAX_READS as usize;

/// More READs and atomics are outstanding than were agreed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Crowded;

/// An answer that is being given.
#[derive(Clone, Copy, Debug)]
struct Answering {
    /// The number of the request, this time.
    first: Psn,
    /// The number of bytes that it asks for, this time.
    length: u32,
    /// The number of packets of it that have been sent.
    done: u32,
}

/// The progress of an answer.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// An answer that is being given for the first time.
    New(Answering),
    /// An answer that is being given once more.
    Again(Answering),
    /// An answer that was given.
    Given,
}

/// The requested operation.
#[derive(Clone, Copy, Debug)]
enum Operation {
    /// An RDMA READ of this memory.
    Read(Remote),
    /// An atomic operation on this word, which was `original` before.
    Atomic { remote: Remote, original: u64 },
}

impl Operation {
    fn remote(&self) -> Remote {
        match self {
            Operation::Read(remote) | Operation::Atomic { remote, .. } => *remote,
        }
    }
}

/// A READ or an atomic.
#[derive(Clone, Copy, Debug)]
struct Fetch {
    first: Psn,
    packets: u32,
    operation: Operation,
    stage: Stage,
}

impl Fetch {
    fn new(first: Psn, packets: u32, operation: Operation) -> Fetch {
        Fetch {
            first,
            packets,
            operation,
            stage: Stage::New(Answering {
                first,
                length: operation.remote().length,
                done: 0,
            }),
        }
    }

    /// Returns the number of its packets that come before that number; `None` if the number is
    /// not its own.
    fn place(&self, psn: Psn) -> Option<u32> {
        let place = ahead(self.first, psn);
        (place < self.packets).then_some(place)
    }

    fn answering(&self) -> Option<&Answering> {
        match &self.stage {
            Stage::New(answering) | Stage::Again(answering) => Some(answering),
            Stage::Given => None,
        }
    }

    /// The memory from that number on.
    fn rest(&self, psn: Psn, mtu: Mtu) -> Remote {
        let skipped = ahead(self.first, psn).wrapping_mul(mtu.bytes());
        self.operation.remote().skip(skipped)
    }

    /// Gives the answer from there, so many bytes.
    fn answer_from(&mut self, first: Psn, length: u32) {
        let answering = Answering {
            first,
            length,
            done: 0,
        };
        self.stage = match self.stage {
            Stage::New(_) => Stage::New(answering),
            Stage::Again(_) | Stage::Given => Stage::Again(answering),
        };
    }
}

/// The next packet of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// Data of a READ.
    Data {
        /// The number of the packet.
        psn: Psn,
        /// Whether it is the first of this answer.
        first: bool,
        /// The memory that is still to be read.
        rest: Remote,
    },
    /// The original value of an atomic operation's word.
    Original {
        /// The number of the packet.
        psn: Psn,
        /// The value of the word.
        original: u64,
    },
}

impl Turn {
    fn of(fetch: &Fetch, answering: &Answering, mtu: Mtu) -> Turn {
        let psn = after(answering.first, answering.done);
        if let Operation::Atomic { original, .. } = fetch.operation {
            return Turn::Original { psn, original };
        }
        let done = answering.done.wrapping_mul(mtu.bytes());
        let all = fetch.rest(answering.first, mtu).first(answering.length);
        Turn::Data {
            psn,
            first: answering.done == 0,
            rest: all.skip(done),
        }
    }

    /// Returns the packet of this turn.
    pub(super) fn answer(&self, acknowledgement: Acknowledgement, mtu: Mtu) -> Outgoing {
        let (psn, first, rest) = match *self {
            Turn::Original { psn, original } => {
                let response = Response::Atomic(acknowledgement, original);
                return Outgoing::response(response, psn, Payload::None);
            }
            Turn::Data { psn, first, rest } => (psn, first, rest),
        };
        let response = match (first, rest.length <= mtu.bytes()) {
            (true, true) => Response::ReadOnly(acknowledgement),
            (true, false) => Response::ReadFirst(acknowledgement),
            (false, false) => Response::ReadMiddle,
            (false, true) => Response::ReadLast(acknowledgement),
        };
        let payload = match rest.length {
            0 => Payload::None,
            _ => Payload::Remote(rest.first(mtu.bytes())),
        };
        Outgoing::response(response, psn, payload)
    }
}

/// The READs and atomics of a connection.
#[derive(Debug)]
pub(super) struct Fetches {
    slots: [Option<Fetch>; SLOTS],
    /// The number of slots that may be used.
    limit: usize,
    /// The slot of the oldest.
    oldest: usize,
    /// The number of slots in use.
    count: usize,
    /// The place, from the oldest, of the first that is not answered.
    turn: usize,
}

impl Fetches {
    pub(super) fn new(limit: u8) -> Fetches {
        Fetches {
            slots: [None; SLOTS],
            limit: usize::from(limit).min(SLOTS),
            oldest: 0,
            count: 0,
            turn: 0,
        }
    }

    /// Changes the number that may be kept. Those that are too many go when there is another.
    pub(super) fn set_limit(&mut self, limit: u8) {
        self.limit = usize::from(limit).min(SLOTS);
    }

    fn slot(&self, place: usize) -> usize {
        (self.oldest + place) % SLOTS
    }

    fn get(&self, place: usize) -> Option<&Fetch> {
        if place >= self.count {
            return None;
        }
        self.slots.get(self.slot(place))?.as_ref()
    }

    fn get_mut(&mut self, place: usize) -> Option<&mut Fetch> {
        if place >= self.count {
            return None;
        }
        let slot = self.slot(place);
        self.slots.get_mut(slot)?.as_mut()
    }

    /// Makes room for another by forgetting the oldest, unless those were never answered.
    pub(super) fn make_room(&mut self) -> Result<(), Crowded> {
        while self.count >= self.limit {
            match self.get(0).map(|fetch| fetch.stage) {
                None | Some(Stage::New(_)) => return Err(Crowded),
                Some(Stage::Again(_) | Stage::Given) => {
                    self.oldest = self.slot(1);
                    self.count -= 1;
                    self.turn = self.turn.saturating_sub(1);
                }
            }
        }
        Ok(())
    }

    /// Adds one behind the others; there is room.
    fn add(&mut self, fetch: Fetch) {
        let slot = self.slot(self.count);
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(fetch);
            self.count += 1;
        }
    }

    pub(super) fn add_read(&mut self, first: Psn, packets: u32, remote: &Remote) {
        self.add(Fetch::new(first, packets, Operation::Read(*remote)));
    }

    pub(super) fn add_atomic(&mut self, first: Psn, remote: &Remote, original: u64) {
        let operation = Operation::Atomic {
            remote: *remote,
            original,
        };
        self.add(Fetch::new(first, 1, operation));
    }

    /// The place of the one that has this number: the last of them, as numbers come again after
    /// 2^24 packets and an answered one may be older.
    fn find(&self, psn: Psn) -> Option<usize> {
        (0..self.count).rev().find(|place| {
            self.get(*place)
                .is_some_and(|fetch| fetch.place(psn).is_some())
        })
    }

    /// A READ came once more, perhaps for its later part only. One that is not within what was
    /// first asked for, or is too old, is nobody's.
    pub(super) fn repeat_read(&mut self, psn: Psn, remote: &Remote, mtu: Mtu) {
        let Some(place) = self.find(psn) else {
            return;
        };
        let Some(fetch) = self.get_mut(place) else {
            return;
        };
        let rest = fetch.rest(psn, mtu);
        let same = (remote.address, remote.rkey) == (rest.address, rest.rkey);
        if matches!(fetch.operation, Operation::Read(_)) && same && remote.length <= rest.length {
            fetch.answer_from(psn, remote.length);
            // The repeated one is next. Those behind it that were answered are passed over.
            self.turn = self.turn.min(place);
        }
    }

    /// An atomic came once more.
    pub(super) fn repeat_atomic(&mut self, psn: Psn, remote: &Remote) {
        let Some(place) = self.find(psn) else {
            return;
        };
        let Some(fetch) = self.get_mut(place) else {
            return;
        };
        match fetch.operation {
            Operation::Atomic { remote: word, .. } if word == *remote => {
                fetch.answer_from(psn, word.length);
                self.turn = self.turn.min(place);
            }
            _ => {}
        }
    }

    /// The next packet to send; after it follows [`Fetches::answered`] or [`Fetches::give_up`].
    pub(super) fn turn(&mut self, mtu: Mtu) -> Option<Turn> {
        loop {
            let fetch = self.get(self.turn)?;
            if let Some(answering) = fetch.answering() {
                return Some(Turn::of(fetch, answering, mtu));
            }
            self.turn += 1;
        }
    }

    /// The packet is sent.
    pub(super) fn answered(&mut self, mtu: Mtu) {
        let Some(fetch) = self.get_mut(self.turn) else {
            return;
        };
        if let Stage::New(answering) | Stage::Again(answering) = &mut fetch.stage {
            answering.done += 1;
            if answering.done >= mtu.packets(answering.length) {
                fetch.stage = Stage::Given;
            }
        }
    }

    /// The packet cannot be sent; whether it is missed. A READ that is repeated may be out of date,
    /// and its memory gone for good reason.
    pub(super) fn give_up(&mut self) -> bool {
        match self.get_mut(self.turn) {
            Some(fetch) => {
                let missed = matches!(fetch.stage, Stage::New(_));
                fetch.stage = Stage::Given;
                missed
            }
            None => false,
        }
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(softib_transport_fetch))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    const PSN: Psn = Psn::wrapping(7);

    fn word(address: u64) -> Remote {
        Remote {
            address,
            rkey: 1,
            length: 8,
        }
    }

    /// Gives the whole answer that has its turn.
    fn answer(fetches: &mut Fetches) -> Turn {
        let turn = fetches.turn(Mtu::Mtu256);
        fetches.answered(Mtu::Mtu256);
        turn.expect("there is one to answer")
    }

    #[test]
    fn a_repeated_atomic_is_the_last_of_its_number() {
        let mut fetches = Fetches::new(4);
        for original in [1, 2] {
            fetches.add_atomic(PSN, &word(64), original);
            let _ = answer(&mut fetches);
        }
        fetches.repeat_atomic(PSN, &word(64));
        let again = answer(&mut fetches);
        assert!(matches!(again, Turn::Original { original: 2, .. }));
    }

    #[test]
    fn a_repeated_read_is_the_last_of_its_number() {
        let mut fetches = Fetches::new(4);
        for address in [64, 128] {
            fetches.add_read(PSN, 1, &word(address));
            let _ = answer(&mut fetches);
        }
        fetches.repeat_read(PSN, &word(128), Mtu::Mtu256);
        let again = answer(&mut fetches);
        assert!(matches!(again, Turn::Data { rest, .. } if rest == word(128)));
    }
}
