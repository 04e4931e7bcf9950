// SPDX-License-Identifier: GPL-2.0-only

//! The backlog of a listener: the connections that are not finished, and the sources that hold
//! their slots.
//!
//! A source does not tell whether it means to finish its connections, and until then it holds a
//! slot for each. So a source has at most as many slots as are left for others: one source
//! alone half of them, two a third each, and a source that holds none finds one. Sources that are
//! more than the slots take the last one, too. Then a newcomer may take a slot from a source
//! that holds more than the newcomer does, but not before the holder has had [time to finish].
//!
//! The time to finish depends on the share of the backlog's time that is used by connections which
//! finish. If it is all, the slots are full because many nodes connect at once: they need their
//! slots, and newcomers repeat their requests. Where it is hardly any, somebody takes slots
//! only to hold them, and as often as they become free: then a holder has hardly any time, so
//! that there are slots to take at any moment. A newcomer takes one at random, so connections
//! that finish are seldom hit. Only time counts in which all slots are taken: a connection that
//! fails while there are others for everybody keeps nobody out. An attack is forgotten while a
//! slot is free.
//!
//! [time to finish]: Backlog::time_to_finish

use core::ops::DerefMut;

use super::time::Time;
use super::wire::cm::comm_id::CommId;

/// The time for which a peer has a slot where all connections finish, in milliseconds: two of the
/// tries of `rdma_cm`.
const LONGEST: u64 = 8192;

/// The time of slots that is remembered, in milliseconds: that of a few hundred connections which
/// were waited for in vain.
const REMEMBERED: u64 = 1 << 20;

/// The time of connections that finished that a new backlog begins with, in milliseconds. Nodes
/// that connect at once are the more likely cause of a first crowd: a holder has the longest time,
/// and half of it only after a hundred have lost their slots.
const FIRST: u64 = REMEMBERED / 2;

/// The time with a free slot after which half of the outcomes are forgotten, in milliseconds.
///
/// An attacker gains little by pausing. No less than [`FIRST`] is remembered at any time, so a
/// minute with a free slot brings the time to finish at most half of the way to the longest. An
/// attacker that takes all slots then keeps newcomers out for so long. With 4096 slots that is 4 s:
/// when each holder has lost its slot, hardly any time is left. With 64 slots it takes 17 s until
/// less than a second is left. At worst the backlog is as a new one. An attacker that wants holders
/// to lose their slots has to take all of them again and again, as without pauses.
const HALF_LIFE: u64 = 60_000;

/// Cells of the first memory.
const FIRST_CELLS: usize = 32;

/// Slots that are looked at from a random one on, until one is not free.
const LOOKED_AT: usize = 8;

/// Share of the slots, as a divisor, that connections may be giving up at a time.
const GIVING_UP: u32 = 16;

/// The end of the list of free slots.
const NONE: u32 = u32::MAX;

/// Memory of a backlog: a slot, in the first half of all cells, and the count of a source.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    /// Our identifier of the connection that has the slot, 0 if the slot is free.
    name: u32,
    /// Source of that connection, or of a free slot the next free one.
    source: u32,
    /// The time in which all slots were taken before it took this one, in milliseconds, without
    /// its upper half.
    since: u32,
    /// A source that holds slots.
    counted: u32,
    /// The number of its slots, 0 if there is no such source.
    slots: u32,
}

/// A slot. It is given back by [`Backlog::end`] or [`Backlog::give_back`].
#[derive(Debug)]
pub struct Slot {
    index: u32,
    source: u32,
}

impl Slot {
    /// A slot that was given back.
    const NOWHERE: Slot = Slot {
        index: NONE,
        source: 0,
    };

    /// Returns whether it was given back.
    pub fn is_given_back(&self) -> bool {
        self.index == NONE
    }
}

/// The reasons for which there is no slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// All that the source may have are taken.
    Full,
    /// The backlog needs memory of so many cells.
    Memory(usize),
}

/// The outcome of a REP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The peer has made the connection.
    Finished,
    /// The peer has not answered, or has rejected the REP.
    Failed,
}

/// The slots of a listener. Sources are hashes, with a key that no other node knows.
#[derive(Debug)]
pub struct Backlog<M> {
    most: u32,
    taken: u32,
    /// The number of sources that hold a slot.
    sources: u32,
    /// The first of the slots that have become free.
    free: u32,
    /// The number of slots that have been used.
    used: u32,
    /// The number of connections that are giving their slots up.
    giving_up: u32,
    /// The time for which the last connections that finished had their slots, and all slots were
    /// taken, in milliseconds.
    finished: u64,
    /// Time of those that failed, in milliseconds.
    failed: u64,
    /// The time in which all slots were taken, until one of them became free last, in
    /// milliseconds.
    crowded: u64,
    /// The time in which a slot was free, until half of the outcomes were forgotten last, in
    /// milliseconds.
    free_before: u64,
    /// The time since which all slots are taken, if they are.
    full_since: Time,
    /// The latest time that is known.
    latest: Time,
    cells: M,
}

impl<M: DerefMut<Target = [Cell]>> Backlog<M> {
    /// A backlog of `most` slots, with empty memory.
    pub const fn new(most: u32, cells: M) -> Backlog<M> {
        Backlog {
            most,
            taken: 0,
            sources: 0,
            free: NONE,
            used: 0,
            giving_up: 0,
            finished: FIRST,
            failed: 0,
            crowded: 0,
            free_before: 0,
            full_since: Time::new(0),
            latest: Time::new(0),
            cells,
        }
    }

    /// The number of slots that are taken.
    pub fn taken(&self) -> u32 {
        self.taken
    }

    /// Gives the backlog more memory, all default cells, and returns the memory that it does not
    /// need.
    pub fn grow(&mut self, cells: M) -> M {
        if cells.len() <= self.cells.len() {
            return cells;
        }
        let old = core::mem::replace(&mut self.cells, cells);
        for (new, old) in self.cells.iter_mut().zip(old.iter()) {
            (new.name, new.source, new.since) = (old.name, old.source, old.since);
        }
        // The cell of a count depends on the number of cells, so counts are looked up again.
        for cell in old.iter().filter(|cell| cell.slots > 0) {
            if let Some(new) = self.counter_mut(cell.counted) {
                (new.counted, new.slots) = (cell.counted, cell.slots);
            }
        }
        old
    }

    /// Takes a slot for the connection that we call `name`.
    ///
    /// # Errors
    ///
    /// There is no slot for the source, or no memory.
    pub fn take(&mut self, source: u32, name: CommId, now: Time) -> Result<Slot, Refused> {
        self.advance(now);
        if !self.has_slot(source) {
            return Err(Refused::Full);
        }
        self.enter(source, name, now)
    }

    /// Returns whether there is a slot for `source`, or perhaps one of another source. A caller
    /// that has to do something costly for a request asks before.
    pub fn admits(&self, source: u32) -> bool {
        self.has_slot(source) || self.may_take_over(source)
    }

    /// Returns whether there is a slot for any source: more than half of them are free, and a
    /// source holds no more than are taken.
    pub fn admits_all(&self) -> bool {
        self.taken < self.most.saturating_sub(self.taken)
    }

    fn has_slot(&self, source: u32) -> bool {
        self.held(source) < self.most.saturating_sub(self.taken)
    }

    /// Takes a slot that another source was made to give up.
    ///
    /// # Errors
    ///
    /// The errors of [`Backlog::take`]: another newcomer may have been faster.
    pub fn take_over(&mut self, source: u32, name: CommId, now: Time) -> Result<Slot, Refused> {
        if self.taken >= self.most {
            return Err(Refused::Full);
        }
        self.enter(source, name, now)
    }

    /// Gives the slot of a connection back that has come to an outcome.
    pub fn end(&mut self, slot: &mut Slot, outcome: Outcome, now: Time) {
        self.advance(now);
        let crowded = self.crowded_until(self.latest);
        if let Some(cell) = self.cells.get(slot.index as usize) {
            // At least a millisecond: a near peer needs less.
            let time = (crowded as u32).wrapping_sub(cell.since).max(1);
            match outcome {
                Outcome::Finished => self.finished += u64::from(time),
                Outcome::Failed => self.failed += u64::from(time),
            }
            // Both are halved: their ratio stays, and old outcomes count less and less.
            while self.finished + self.failed > REMEMBERED {
                self.finished /= 2;
                self.failed /= 2;
            }
        }
        self.give_back(slot);
    }

    /// Gives a slot back, at the latest time that is known: that of the last request or
    /// outcome. What has passed since counts as time with a free slot.
    pub fn give_back(&mut self, slot: &mut Slot) {
        let Slot { index, source } = core::mem::replace(slot, Slot::NOWHERE);
        let Some(cell) = self.cells.get_mut(index as usize) else {
            return;
        };
        (cell.name, cell.source) = (0, self.free);
        self.free = index;
        self.crowded = self.crowded_until(self.latest);
        self.taken -= 1;
        self.uncount(source);
    }

    /// Counts a connection that is to give its slot up, and returns `true`, if there are not too
    /// many of them. The connection outlives its slot until its consumer has been told, however
    /// long that takes.
    pub fn begin_giving_up(&mut self) -> bool {
        let may_begin = self.may_give_up();
        self.giving_up += u32::from(may_begin);
        may_begin
    }

    /// Subtracts a connection that [gave its slot up](Backlog::begin_giving_up) from their count.
    pub fn end_giving_up(&mut self) {
        self.giving_up = self.giving_up.saturating_sub(1);
    }

    fn may_give_up(&self) -> bool {
        self.giving_up < self.most.div_ceil(GIVING_UP)
    }

    /// Returns whether `source` may take the slot of another one: it holds less than sources do
    /// on average, and not too many connections are giving their slots up.
    pub fn may_take_over(&self, source: u32) -> bool {
        if !self.may_give_up() {
            return false;
        }
        let held = u64::from(self.held(source));
        held * u64::from(self.sources) < u64::from(self.taken)
    }

    /// Returns a connection that a newcomer from `source` may take the slot of: one at random,
    /// if its source holds more slots than the newcomer's.
    pub fn candidate(&self, source: u32, random: u32) -> Option<CommId> {
        let slots = self.cells.get(..self.used as usize)?;
        let first = (random as usize).checked_rem(slots.len())?;
        let (before, after) = slots.split_at_checked(first)?;
        let mut holders = after.iter().chain(before).take(LOOKED_AT);
        let holder = holders.find(|cell| cell.name != 0)?;
        (self.held(holder.source) > self.held(source)).then_some(CommId::new(holder.name))
    }

    /// The time that a peer has for its RTU before a newcomer may have its slot, in milliseconds.
    pub fn time_to_finish(&self) -> u64 {
        let all = self.finished + self.failed;
        (LONGEST * self.finished)
            .checked_div(all)
            .unwrap_or(LONGEST)
    }

    /// The number of slots that a source holds.
    pub fn held(&self, source: u32) -> u32 {
        let cell = self.counter(source).and_then(|index| self.cells.get(index));
        cell.map_or(0, |cell| cell.slots)
    }

    /// Milliseconds until `now` in which all slots were taken.
    fn crowded_until(&self, now: Time) -> u64 {
        match self.taken < self.most {
            true => self.crowded,
            false => self.crowded + now.since(self.full_since),
        }
    }

    /// Advances the latest time to `now`, and forgets half of the outcomes for each [`HALF_LIFE`]
    /// with a free slot: what is known comes half of the way back to what a new backlog knows.
    fn advance(&mut self, now: Time) {
        self.latest = self.latest.max(now);
        let crowded = self.crowded_until(self.latest);
        let free = self.latest.get().saturating_sub(crowded);
        let halvings = free.saturating_sub(self.free_before) / HALF_LIFE;
        self.free_before += halvings * HALF_LIFE;
        // More halvings than a number has bits change nothing.
        for _ in 0..halvings.min(u64::BITS.into()) {
            self.finished = (self.finished + FIRST) / 2;
            self.failed /= 2;
        }
    }

    fn enter(&mut self, source: u32, name: CommId, now: Time) -> Result<Slot, Refused> {
        self.advance(now);
        // Half of the cells are slots, so that at most half of them count sources.
        let slots = self.cells.len() / 2;
        let index = match self.free {
            NONE if self.used as usize >= slots => {
                return Err(Refused::Memory(FIRST_CELLS.max(4 * slots)));
            }
            NONE => self.used,
            free => free,
        };
        let full = Refused::Full;
        let cell = self.cells.get_mut(index as usize).ok_or(full)?;
        match self.free {
            NONE => self.used += 1,
            _ => self.free = cell.source,
        }
        (cell.name, cell.source) = (name.get(), source);
        // One slot was free until now.
        cell.since = self.crowded as u32;
        self.full_since = self.latest;
        self.taken += 1;
        let counter = self.counter_mut(source).ok_or(full)?;
        counter.counted = source;
        counter.slots += 1;
        let is_first = counter.slots == 1;
        self.sources += u32::from(is_first);
        Ok(Slot { index, source })
    }

    /// The cell where a search for a source begins.
    fn home(&self, source: u32) -> usize {
        (source as usize).checked_rem(self.cells.len()).unwrap_or(0)
    }

    /// The cell behind another one, in a circle.
    fn next(&self, index: usize) -> usize {
        (index + 1).checked_rem(self.cells.len()).unwrap_or(0)
    }

    /// The cell of a source, or the free one where it would be. At most half of the cells count.
    fn counter(&self, source: u32) -> Option<usize> {
        let mut index = self.home(source);
        for _ in 0..self.cells.len() {
            let cell = self.cells.get(index)?;
            if cell.slots == 0 || cell.counted == source {
                return Some(index);
            }
            index = self.next(index);
        }
        None
    }

    fn counter_mut(&mut self, source: u32) -> Option<&mut Cell> {
        let index = self.counter(source)?;
        self.cells.get_mut(index)
    }

    /// Counts one slot of a source less. After its last one the cells behind close the gap, so
    /// that a search still finds them.
    fn uncount(&mut self, source: u32) {
        let Some(mut gap) = self.counter(source) else {
            return;
        };
        let Some(cell) = self.cells.get_mut(gap) else {
            return;
        };
        cell.slots = cell.slots.saturating_sub(1);
        if cell.slots > 0 {
            return;
        }
        self.sources -= 1;
        let mut index = self.next(gap);
        while let Some(cell) = self.cells.get(index).copied().filter(|cell| cell.slots > 0) {
            let home = self.home(cell.counted);
            if self.distance(home, index) >= self.distance(gap, index) {
                self.put_count(gap, cell);
                self.put_count(index, Cell::default());
                gap = index;
            }
            index = self.next(index);
        }
    }

    /// Cells from one to another, in the direction of a search.
    fn distance(&self, from: usize, to: usize) -> usize {
        let length = self.cells.len();
        (to + length - from).checked_rem(length).unwrap_or(0)
    }

    fn put_count(&mut self, index: usize, count: Cell) {
        if let Some(cell) = self.cells.get_mut(index) {
            (cell.counted, cell.slots) = (count.counted, count.slots);
        }
    }
}
