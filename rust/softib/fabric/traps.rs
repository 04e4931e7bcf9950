// SPDX-License-Identifier: GPL-2.0-only

//! Traps: an agent tells the subnet manager of something, again and again until it is heard
//! (IBTA 13.4.5.3, 13.4.9, 14.2.5.1).

use super::wire::smp::notice::{
    Details,
    Kind, //
};

/// Traps that an agent can have pending at a time. A trap that finds no slot is not sent; each of
/// the events that cause one has a counter, too. Ports without a manager, of which a router may
/// have many, leave their slots to others.
const SLOTS: usize = 8;

/// Times that a trap is sent to a manager that does not answer.
const TELLS: u8 = 8;

/// The unit of the subnet timeout: 4.096 µs.
const TIMEOUT_UNIT: u64 = 4096;

/// A time that is never: no manager is known yet.
const NEVER: u64 = u64::MAX;

/// A trap that has not been answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Trap {
    /// The port with the manager that is told; 0 is a switch's own.
    pub(super) port: u8,
    /// The urgency of the trap.
    pub(super) kind: Kind,
    /// The event and its details.
    pub(super) details: Details,
    /// The transaction ID by which an answer is matched.
    pub(super) tid: u64,
    /// The time at which it is sent next, in nanoseconds.
    due: u64,
    /// The earliest time at which it is sent again if it changes.
    earliest: u64,
    /// The number of times that it is still to be sent.
    left: u8,
}

/// The pending traps of an agent.
#[derive(Clone, Default, Debug)]
pub(super) struct Traps {
    slots: [Option<Trap>; SLOTS],
    tid: u64,
}

/// Returns the time that a trap waits for its answer, in nanoseconds.
pub(super) const fn interval(subnet_timeout: u8) -> u64 {
    TIMEOUT_UNIT << (subnet_timeout & 0x1f)
}

impl Traps {
    /// Remembers to send a trap. If the same trap of the same port has not been answered, it is
    /// replaced by the new one, and sent again not sooner than the specification allows.
    /// `has_manager` returns whether a port can send traps now.
    pub(super) fn raise(
        &mut self,
        port: u8,
        kind: Kind,
        details: Details,
        now: u64,
        has_manager: impl Fn(u8) -> bool,
    ) {
        self.tid = self.tid.wrapping_add(1);
        let same = |slot: &Option<Trap>| {
            slot.is_some_and(|trap| trap.port == port && trap.details.number() == details.number())
        };
        let known = self.slots.iter().position(same);
        let place = known.or_else(|| self.slots.iter().position(Option::is_none));
        let waits = |slot: &Option<Trap>| slot.is_some_and(|trap| !has_manager(trap.port));
        let place = place.or_else(|| {
            let mut slots = self.slots.iter();
            has_manager(port).then(|| slots.position(waits)).flatten()
        });
        let Some(slot) = place.and_then(|place| self.slots.get_mut(place)) else {
            return;
        };
        // That of a trap which gave its slot away is not this one's.
        let former = slot.filter(|_| known.is_some());
        let earliest = former.map_or(0, |trap| trap.earliest);
        *slot = Some(Trap {
            port,
            kind,
            details,
            tid: self.tid,
            due: earliest.max(now),
            earliest,
            left: TELLS,
        });
    }

    /// The manager has heard: the trap of that number and identifier is told no more.
    pub(super) fn repress(&mut self, tid: u64, number: u16) {
        for slot in &mut self.slots {
            if slot.is_some_and(|trap| trap.tid == tid && trap.details.number() == number) {
                *slot = None;
            }
        }
    }

    /// Takes a trap that is due; `wait` returns the time that a trap of that port waits for its
    /// answer, or `None` if no manager is known there, so that it cannot be told.
    pub(super) fn due(&mut self, now: u64, wait: impl Fn(u8) -> Option<u64>) -> Option<Trap> {
        for slot in &mut self.slots {
            let Some(trap) = slot else { continue };
            let Some(wait) = wait(trap.port).filter(|_| trap.due <= now) else {
                continue;
            };
            let told = *trap;
            trap.left = trap.left.saturating_sub(1);
            trap.due = now.saturating_add(wait);
            trap.earliest = trap.due;
            if trap.left == 0 {
                *slot = None;
            }
            return Some(told);
        }
        None
    }

    /// Returns the time at which the next trap at a port with a manager is due, if there is one.
    pub(super) fn next(&self, has_manager: impl Fn(u8) -> bool) -> Option<u64> {
        self.slots
            .iter()
            .flatten()
            .filter(|trap| has_manager(trap.port))
            .map(|trap| trap.due)
            .min()
            .filter(|due| *due != NEVER)
    }

    /// Returns whether there is something to tell at that port.
    pub(super) fn has_any(&self, port: u8) -> bool {
        self.slots.iter().flatten().any(|trap| trap.port == port)
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(softib_fabric_traps))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::super::wire::lid::Lid;
    use super::super::wire::smp::notice::trap;
    use super::*;

    const LINK: Details = Details::LinkState { lid: Lid::new(5) };

    #[test]
    fn told_until_heard() {
        let mut traps = Traps::default();
        assert_eq!(traps.next(|_| true), None);
        traps.raise(0, Kind::Urgent, LINK, 100, |_| true);
        assert!(traps.has_any(0));
        assert!(!traps.has_any(1));
        // Without a manager it waits.
        assert_eq!(traps.due(100, |_| None), None);
        assert_eq!(traps.next(|_| false), None);
        assert_eq!(traps.next(|_| true), Some(100));
        let told = traps.due(100, |_| Some(50)).map(|trap| trap.tid);
        assert_eq!(told, Some(1));
        assert_eq!(traps.due(149, |_| Some(50)), None);
        assert_eq!(traps.next(|_| true), Some(150));
        // An answer to another one changes nothing.
        traps.repress(2, trap::LINK_STATE);
        traps.repress(1, trap::LOCAL_CHANGES);
        assert!(traps.has_any(0));
        traps.repress(1, trap::LINK_STATE);
        assert!(!traps.has_any(0));
    }

    #[test]
    fn not_for_ever() {
        let mut traps = Traps::default();
        traps.raise(0, Kind::Urgent, LINK, 0, |_| true);
        let mut now = 0;
        let mut told = 0;
        while traps.due(now, |_| Some(10)).is_some() {
            told += 1;
            now += 10;
        }
        assert_eq!((told, traps.has_any(0)), (TELLS, false));
    }

    #[test]
    fn news_are_not_told_sooner() {
        let mut traps = Traps::default();
        traps.raise(0, Kind::Urgent, LINK, 0, |_| true);
        assert!(traps.due(0, |_| Some(10)).is_some());
        traps.raise(0, Kind::Urgent, LINK, 5, |_| true);
        assert_eq!(traps.due(9, |_| Some(10)), None);
        assert_eq!(traps.due(10, |_| Some(10)).map(|trap| trap.tid), Some(2));
    }

    #[test]
    fn ports_without_a_manager_leave_their_slots() {
        const LAST: u8 = SLOTS as u8;
        let mut traps = Traps::default();
        // One more than there are slots.
        for port in 0..=LAST {
            traps.raise(port, Kind::Urgent, LINK, 0, |_| false);
        }
        assert!(traps.has_any(0) && !traps.has_any(LAST));
        traps.raise(LAST, Kind::Urgent, LINK, 0, |port| port == LAST);
        assert!(!traps.has_any(0) && traps.has_any(LAST));
        let told = traps.due(0, |port| (port == LAST).then_some(10));
        assert_eq!(told.map(|trap| trap.port), Some(LAST));
        // Those that are sent stay.
        let other = LAST + 1;
        traps.raise(other, Kind::Urgent, LINK, 0, |_| true);
        assert!(traps.has_any(1) && !traps.has_any(other));
    }
}
