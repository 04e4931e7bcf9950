// SPDX-License-Identifier: GPL-2.0-only

//! A request that has not been answered: when it is repeated, and when that has been enough.

use super::actions::RoundTrip;
use super::input::Patience;
use super::time::Time;
use super::wire::cm::comm_id::CommId;

/// A request that is out.
///
/// The specification leaves repeating to a timer of the consumer's choice (IBTA 12.9), and
/// consumers choose seconds, for a peer that is slow. A message that is lost is another matter,
/// and is made good sooner here: the first repetition comes after a round trip's time, the next
/// ones after twice as long each, up to the consumer's choice. How long it takes altogether until
/// the peer is given up is as ever.
///
/// Repetitions come later than that by up to half of their interval, each request's by a part of
/// its own; so does the first one where the caller has an estimate of the round trip. None comes
/// later than the consumer's choice: at intervals that long, repetitions come earlier by up to a
/// third. Requests that a busy peer drops together would otherwise be repeated together, and
/// dropped again.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    /// The time of the first try.
    began: Time,
    /// The time of the next repetition, if there is to be one.
    next: Option<Time>,
    /// The time at which the peer is given up.
    deadline: Time,
    /// The time of the last try so far.
    sent: Time,
    /// Milliseconds from that try to the next one.
    interval: u32,
    /// The longest interval, in milliseconds: the time-out of a try.
    longest: u32,
    /// Number of tries that the consumer allows after the first.
    retries: u8,
    /// Milliseconds from the first try for which the peer has asked to be left alone; 0 if it has
    /// not, or that is over.
    put_off: u32,
    /// The next repetition is the first one of the consumer's choice, for a peer that has asked
    /// for time. No estimate delays it.
    is_chosen: bool,
}

/// The timer of a request coming due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tick {
    pub(super) now: Time,
    /// Milliseconds after which a request that is sent now would be repeated; zero if unknown.
    rto: u32,
    /// Our name for the connection.
    name: CommId,
}

impl Tick {
    /// The timer of the connection that we call `name`.
    pub(super) fn new(name: CommId, rto: u32, now: Time) -> Tick {
        Tick { now, rto, name }
    }
}

/// The action for a request when its timer has come due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// The timer came due too early.
    Nothing,
    /// The request is repeated.
    Again,
    /// The peer is given up.
    Over,
}

impl Pending {
    /// A request that is sent now, and for the first time again after `rto` milliseconds.
    pub(super) fn new(patience: Patience, rto: u32, now: Time) -> Pending {
        let longest = patience.timeout.max(1);
        let interval = rto.clamp(1, longest);
        let tries = u64::from(patience.retries).saturating_add(1);
        let repeated = patience.retries > 0;
        Pending {
            began: now,
            sent: now,
            next: repeated.then(|| now.after(interval.into())),
            deadline: now.after(u64::from(longest).saturating_mul(tries)),
            interval,
            longest,
            retries: patience.retries,
            put_off: 0,
            is_chosen: false,
        }
    }

    /// Starts the times of a request again that had to wait and is sent only now.
    pub(super) fn start(&mut self, now: Time) {
        let waited = now.since(self.began);
        self.began = now;
        self.sent = now;
        self.next = self.next.map(|next| next.after(waited));
        self.deadline = self.deadline.after(waited);
    }

    /// The time of the first try.
    pub(super) fn began(&self) -> Time {
        self.began
    }

    /// Returns whether it has been sent once, and not again.
    pub(super) fn is_first_try(&self) -> bool {
        self.sent == self.began
    }

    /// The time at which the timer is due.
    pub(super) fn due(&self) -> Time {
        self.next
            .map_or(self.deadline, |next| next.min(self.deadline))
    }

    /// Handles the timer, which came due.
    pub(super) fn expire(&mut self, tick: Tick) -> Due {
        let now = tick.now;
        if now >= self.deadline {
            return Due::Over;
        }
        self.follow(tick);
        if self.next.is_none_or(|next| now < next) {
            return Due::Nothing;
        }
        self.interval = self.interval.saturating_mul(2).min(self.longest);
        // Before the interval is spread: the time of this try is part of the seed.
        self.sent = now;
        self.is_chosen = false;
        let over = self.began.after(self.put_off.into());
        if now >= over {
            self.put_off = 0;
        }
        let next = now.after(self.spread(self.interval, tick.name).into());
        self.next = Some(next.max(over));
        Due::Again
    }

    /// Waits for as long as answers take by now: a peer that is busy with many requests would
    /// only be given more to do, and may take a repetition that it sees late for a new request.
    /// Once the peer has caught up, a request that it has not answered is late after its own
    /// interval again.
    fn follow(&mut self, tick: Tick) {
        // A try can be spread no further.
        let unmeasured = self.longest - self.longest / 3;
        let rto = tick.rto.min(unmeasured);
        // What the peer asked for has made a try longer than the consumer chose, and with it the
        // bound of the estimate.
        if rto == 0 || self.is_chosen {
            return;
        }
        let is_unmeasured = self.interval >= unmeasured;
        if self.is_first_try() && self.put_off == 0 && is_unmeasured {
            self.interval = rto;
        }
        let wait = self.spread(self.interval, tick.name).max(rto);
        let next = self.sent.after(wait.into());
        self.next = self.next.map(|old| match self.put_off {
            0 if self.is_first_try() => next,
            _ => old.max(self.sent.after(rto.into())),
        });
    }

    /// An interval that begins now, longer by up to a half, and no longer than a try. Requests
    /// that were sent together get different ones.
    fn spread(&self, interval: u32, name: CommId) -> u32 {
        let longest = interval.saturating_add(interval / 2).min(self.longest);
        // Fibonacci hashing: the upper half is mixed.
        let seed = u64::from(name.get()) ^ self.sent.get() << 20;
        let lot = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let earlier = u64::from(longest / 3) * lot >> 32;
        longest - earlier as u32
    }

    /// Postpones repetitions for a peer that asks for time, until that time is over. From then on
    /// a try takes as long, so that a peer that needs even longer gets as many times it as there
    /// are tries left, as with the C implementation.
    ///
    /// The first repetition of the consumer's choice comes all the same, and no estimate of the
    /// round trip delays it. Earlier ones have the peer ask for time where its consumer takes a
    /// moment longer than a message. What it sends after that may be lost, and an RTU or a REJ is
    /// sent again only for a duplicate.
    pub(super) fn put_off(self, milliseconds: u32, now: Time) -> Pending {
        let over = now.after(milliseconds.into());
        let chosen = self.began.after(self.longest.into());
        let is_chosen = now < chosen && chosen < over;
        let quiet_until = if is_chosen { chosen } else { over };
        let tried = now.since(self.began) / u64::from(self.longest.max(1));
        let left = u64::from(self.retries).saturating_sub(tried);
        let last = over.after(u64::from(milliseconds).saturating_mul(left));
        Pending {
            next: self
                .next
                .filter(|_| left > 0)
                .map(|next| next.max(quiet_until)),
            deadline: self.deadline.max(last),
            longest: self.longest.max(milliseconds),
            put_off: u32::try_from(over.since(self.began)).unwrap_or(u32::MAX),
            is_chosen,
            ..self
        }
    }

    /// Gives the peer up so many milliseconds after the first try, whatever else was agreed.
    pub(super) fn within(self, milliseconds: u64) -> Pending {
        Pending {
            deadline: self.deadline.min(self.began.after(milliseconds)),
            ..self
        }
    }

    /// Returns the time that the answer took which comes now.
    pub(super) fn round_trip(&self, now: Time) -> RoundTrip {
        let milliseconds = |sent| u32::try_from(now.since(sent)).unwrap_or(u32::MAX);
        RoundTrip {
            milliseconds: milliseconds(self.began),
            since_repeated: (!self.is_first_try()).then(|| milliseconds(self.sent)),
        }
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(oxib_cm_pending))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    fn tick(rto: u32, now: Time) -> Tick {
        Tick::new(CommId::ZERO, rto, now)
    }

    /// Runs a request without an answer. Returns the number of its repetitions and its end.
    fn unanswered(mut pending: Pending) -> (u32, u64) {
        let mut count = 0;
        loop {
            let now = pending.due();
            match pending.expire(tick(0, now)) {
                Due::Nothing => return (count, u64::MAX),
                Due::Again => count += 1,
                Due::Over => return (count, now.get()),
            }
        }
    }

    /// Checks that it is repeated as often as this, and ends then.
    fn assert_unanswered(pending: Pending, repetitions: [u32; 2], end: u64) {
        let [fewest, most] = repetitions;
        let (count, over) = unanswered(pending);
        assert!((fewest..=most).contains(&count));
        assert_eq!(over, end);
    }

    #[test]
    fn no_peer_answers() {
        // Timeout, retries, first repetition; the least and the greatest number of repetitions,
        // the end.
        let table = [
            (4096, 0, 20, [0, 0], 4096),
            (4096, 1, 20, [8, 9], 8192),
            (10, 2, 20, [2, 3], 30),
            (1000, 2, 1000, [2, 3], 3000),
            (0, 3, 0, [3, 3], 4),
            (100, 3, 30, [4, 6], 400),
        ];
        for (timeout, retries, rto, repetitions, end) in table {
            let patience = Patience { timeout, retries };
            let pending = Pending::new(patience, rto, Time::new(0));
            assert_unanswered(pending, repetitions, end);
        }
    }

    /// Checks the intervals between the repetitions of a request without an answer.
    fn assert_intervals(name: u32, mut check: impl FnMut(u64)) {
        let patience = Patience {
            timeout: 4096,
            retries: 15,
        };
        let (mut pending, mut last) = (Pending::new(patience, 20, Time::new(0)), Time::new(0));
        for _ in 0..20 {
            let due = pending.due();
            let again = pending.expire(Tick::new(CommId::new(name), 20, due));
            if again == Due::Again {
                check(due.since(last));
                last = due;
            }
        }
    }

    #[test]
    fn intervals_double_and_differ() {
        let mut first = [0_u64; 16];
        for (name, first) in (0..16).zip(first.iter_mut()) {
            let mut interval = 20;
            assert_intervals(name, |gap| {
                *first = if *first == 0 { gap } else { *first };
                // Up to half as long again, and no longer than a try.
                let longest = 4096.min(interval + interval / 2);
                assert!((longest - longest / 3..=longest).contains(&gap));
                interval = 4096.min(2 * interval);
            });
        }
        // Of 16 requests in 10 ms, some are repeated at the same time, but not many.
        for gap in first {
            assert!(first.iter().filter(|other| **other == gap).count() < 6);
        }
    }

    #[test]
    fn a_request_that_was_sent_in_ignorance_is_repeated_when_its_time_is_known() {
        let patience = Patience {
            timeout: 4096,
            retries: 15,
        };
        let mut pending = Pending::new(patience, u32::MAX, Time::new(0));
        assert_eq!(pending.due(), Time::new(4096));
        assert_eq!(pending.expire(tick(u32::MAX, Time::new(100))), Due::Nothing);
        assert!(pending.due() >= Time::new(2 * 4096 / 3));
        assert_eq!(pending.expire(tick(150, Time::new(100))), Due::Nothing);
        assert!((150..=225).contains(&pending.due().get()));
        assert_eq!(pending.expire(tick(50, Time::new(300))), Due::Again);
    }

    #[test]
    fn a_peer_that_has_caught_up_gets_no_more_time() {
        let patience = Patience {
            timeout: 4096,
            retries: 15,
        };
        let mut pending = Pending::new(patience, 20, Time::new(0));
        // Others are answered before it, and then none.
        assert_eq!(pending.expire(tick(1500, Time::new(100))), Due::Nothing);
        assert_eq!(pending.due(), Time::new(1500));
        assert_eq!(pending.expire(tick(40, Time::new(200))), Due::Again);
    }

    #[test]
    fn it_had_to_wait() {
        let patience = Patience {
            timeout: 100,
            retries: 2,
        };
        let mut pending = Pending::new(patience, 20, Time::new(0));
        pending.start(Time::new(5000));
        assert_eq!(pending.round_trip(Time::new(5010)).milliseconds, 10);
        assert_eq!(pending.due(), Time::new(5020));
        assert!(pending.is_first_try());
        assert_eq!(pending.clone().expire(tick(0, Time::new(5020))), Due::Again);
        assert_eq!(unanswered(pending).1, 5300);
        let patience = Patience {
            timeout: 100,
            retries: 0,
        };
        let mut once = Pending::new(patience, 20, Time::new(0));
        once.start(Time::new(7));
        assert_eq!(unanswered(once), (0, 107));
    }

    #[test]
    fn the_first_try() {
        let patience = Patience {
            timeout: 100,
            retries: 2,
        };
        let mut pending = Pending::new(patience, 20, Time::new(0));
        assert!(pending.is_first_try());
        let first = pending.round_trip(Time::new(10));
        assert_eq!(first.since_repeated, None);
        assert_eq!(pending.expire(tick(0, Time::new(20))), Due::Again);
        assert!(!pending.is_first_try());
        let round_trip = RoundTrip {
            milliseconds: 30,
            since_repeated: Some(10),
        };
        assert_eq!(pending.round_trip(Time::new(30)), round_trip);
    }

    #[test]
    fn the_end_of_time() {
        let patience = Patience {
            timeout: u32::MAX,
            retries: u8::MAX,
        };
        let pending = Pending::new(patience, u32::MAX, Time::new(u64::MAX - 1));
        let mut pending = pending.put_off(u32::MAX, Time::new(u64::MAX));
        assert_eq!(pending.due(), Time::new(u64::MAX));
        assert_eq!(pending.expire(tick(0, Time::new(u64::MAX))), Due::Over);
    }

    #[test]
    fn the_peer_asks_for_time() {
        let patience = Patience {
            timeout: 100,
            retries: 2,
        };
        let pending = Pending::new(patience, 20, Time::new(0));
        let mut early = pending.clone().put_off(1000, Time::new(10));
        assert_eq!(early.expire(tick(0, Time::new(99))), Due::Nothing);
        assert_eq!(early.round_trip(Time::new(10)).milliseconds, 10);
        // Once when the consumer would have had it repeated.
        assert_eq!(early.due(), Time::new(100));
        assert_eq!(early.expire(tick(0, Time::new(100))), Due::Again);
        assert_eq!(early.due(), Time::new(1010));
        // At 1010, then 80 to 120, 160 to 240 and so on later; three times a second after it was
        // asked for.
        assert_unanswered(early, [5, 6], 3010);
        // One try was over, or two, or all were.
        let table = [(150, (5, 2150)), (250, (0, 1250)), (299, (0, 1299))];
        for (now, expected) in table {
            let late = pending.clone().put_off(1000, Time::new(now));
            assert_eq!(unanswered(late), expected);
        }
        // Less than the consumer allows is nothing.
        let short = pending.put_off(1, Time::new(10));
        assert_eq!(unanswered(short).1, 300);
    }

    #[test]
    fn no_estimate_delays_the_first_repetition_of_the_consumers_choice() {
        let patience = Patience {
            timeout: 4096,
            retries: 15,
        };
        let early = Pending::new(patience, 20, Time::new(0)).put_off(65_664, Time::new(10));
        for rto in [0, 20, 8000, u32::MAX] {
            let mut early = early.clone();
            assert_eq!(early.expire(tick(rto, Time::new(2000))), Due::Nothing);
            assert_eq!(early.due(), Time::new(4096));
            assert_eq!(early.expire(tick(rto, Time::new(4096))), Due::Again);
            assert_eq!(early.due(), Time::new(65_674));
        }
        // A peer that asks for less than one try has answers counted as before.
        let mut short = Pending::new(patience, 20, Time::new(0)).put_off(100, Time::new(10));
        assert_eq!(short.expire(tick(2000, Time::new(110))), Due::Nothing);
        assert_eq!(short.due(), Time::new(2000));
    }

    #[test]
    fn once_only() {
        let patience = Patience {
            timeout: 100,
            retries: 0,
        };
        let mut pending = Pending::new(patience, 20, Time::new(0));
        assert_eq!(pending.expire(tick(0, Time::new(99))), Due::Nothing);
        let pending = pending.put_off(1000, Time::new(99));
        assert_eq!(unanswered(pending), (0, 1099));
    }
}
