// SPDX-License-Identifier: GPL-2.0-only

//! A request that has not been answered: when it is repeated, and when that has been enough.

use super::actions::RoundTrip;
use super::input::Patience;
use super::time::Time;

/// A request that is out.
///
/// The specification leaves repeating to a timer of the consumer's choice (IBTA 12.9), and
/// consumers choose seconds, for a peer that is slow. A message that is lost is another matter, and
/// is made good sooner here: the first repetition comes after a round trip's time, the next ones
/// after twice as long each, up to the consumer's choice. How long it takes altogether until the
/// peer is given up is as ever.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    /// When it was sent first.
    began: Time,
    /// When it is repeated next, if it is at all.
    next: Option<Time>,
    /// When the peer is given up.
    deadline: Time,
    /// When it was sent last.
    sent: Time,
    /// Between that and the next time, in milliseconds.
    interval: u32,
    /// The most that may be: the time of a try.
    longest: u32,
    /// How many tries the consumer allows after the first.
    retries: u8,
}

/// What is to be done when the timer of a request has come due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// Nothing yet.
    Nothing,
    /// It is repeated.
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
        }
    }

    /// It had to wait and is sent only now: all of its times begin anew.
    pub(super) fn start(&mut self, now: Time) {
        let waited = now.since(self.began);
        self.began = now;
        self.sent = now;
        self.next = self.next.map(|next| next.after(waited));
        self.deadline = self.deadline.after(waited);
    }

    /// When it was sent first.
    pub(super) fn began(&self) -> Time {
        self.began
    }

    /// Whether it has been sent once, and not again.
    pub(super) fn is_first_try(&self) -> bool {
        self.sent == self.began
    }

    /// When the timer is due.
    pub(super) fn due(&self) -> Time {
        self.next
            .map_or(self.deadline, |next| next.min(self.deadline))
    }

    /// The timer came due; a request sent now would be repeated after `rto` milliseconds.
    pub(super) fn expire(&mut self, rto: u32, now: Time) -> Due {
        if now >= self.deadline {
            return Due::Over;
        }
        self.follow(rto);
        if self.next.is_none_or(|next| now < next) {
            return Due::Nothing;
        }
        self.interval = self.interval.saturating_mul(2).min(self.longest);
        self.sent = now;
        self.next = Some(now.after(self.interval.into()));
        Due::Again
    }

    /// Waits for as long as answers take by now: a peer that is busy with many requests would only
    /// be given more to do, and may take a repetition that it sees late for a new request.
    fn follow(&mut self, rto: u32) {
        let rto = rto.min(self.longest);
        if rto > self.interval {
            self.interval = rto;
            let next = self.sent.after(rto.into());
            self.next = self.next.map(|old| old.max(next));
        }
    }

    /// The peer asks for time: nothing is repeated before that is over. From then on a try takes as
    /// long, so that a peer that needs even longer gets as many times it as there are tries left, as
    /// with the C implementation.
    pub(super) fn put_off(self, milliseconds: u32, now: Time) -> Pending {
        let over = now.after(milliseconds.into());
        let tried = now.since(self.began) / u64::from(self.longest.max(1));
        let left = u64::from(self.retries).saturating_sub(tried);
        let last = over.after(u64::from(milliseconds).saturating_mul(left));
        Pending {
            next: self.next.filter(|_| left > 0).map(|next| next.max(over)),
            deadline: self.deadline.max(last),
            longest: self.longest.max(milliseconds),
            ..self
        }
    }

    /// The peer is given up so many milliseconds after the first try, whatever else was agreed.
    pub(super) fn within(self, milliseconds: u64) -> Pending {
        Pending {
            deadline: self.deadline.min(self.began.after(milliseconds)),
            ..self
        }
    }

    /// How long the answer took that comes now.
    pub(super) fn round_trip(&self, now: Time) -> RoundTrip {
        RoundTrip {
            milliseconds: u32::try_from(now.since(self.began)).unwrap_or(u32::MAX),
            repeated: !self.is_first_try(),
        }
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(oxib_cm_pending))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    /// Runs a request that nobody answers: how often it is repeated, when last, when it ends.
    fn unanswered(mut pending: Pending) -> (u32, u64, u64) {
        let (mut count, mut last) = (0, 0);
        loop {
            let now = pending.due();
            match pending.expire(0, now) {
                Due::Nothing => return (count, last, u64::MAX),
                Due::Again => (count, last) = (count + 1, now.get()),
                Due::Over => return (count, last, now.get()),
            }
        }
    }

    #[test]
    fn nobody_answers() {
        // Timeout, retries, first repetition; how many there are, when the last, when the end.
        let table = [
            (4096, 0, 20, (0, 0, 4096)),
            (4096, 1, 20, (8, 20 * 255, 8192)),
            (10, 2, 20, (2, 20, 30)),
            (1000, 2, 1000, (2, 2000, 3000)),
            (0, 3, 0, (3, 3, 4)),
            (100, 3, 30, (5, 30 + 60 + 100 + 100 + 100, 400)),
        ];
        for (timeout, retries, rto, expected) in table {
            let patience = Patience { timeout, retries };
            let pending = Pending::new(patience, rto, Time::new(0));
            assert_eq!(unanswered(pending), expected);
        }
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
        assert_eq!(pending.clone().expire(0, Time::new(5020)), Due::Again);
        assert_eq!(unanswered(pending).2, 5300);
        let patience = Patience {
            timeout: 100,
            retries: 0,
        };
        let mut once = Pending::new(patience, 20, Time::new(0));
        once.start(Time::new(7));
        assert_eq!(unanswered(once), (0, 0, 107));
    }

    #[test]
    fn the_first_try() {
        let patience = Patience {
            timeout: 100,
            retries: 2,
        };
        let mut pending = Pending::new(patience, 20, Time::new(0));
        assert!(pending.is_first_try());
        assert!(!pending.round_trip(Time::new(10)).repeated);
        assert_eq!(pending.expire(0, Time::new(20)), Due::Again);
        assert!(!pending.is_first_try());
        let round_trip = RoundTrip {
            milliseconds: 30,
            repeated: true,
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
        assert_eq!(pending.expire(0, Time::new(u64::MAX)), Due::Over);
    }

    #[test]
    fn the_peer_asks_for_time() {
        let patience = Patience {
            timeout: 100,
            retries: 2,
        };
        let pending = Pending::new(patience, 20, Time::new(0));
        let mut early = pending.clone().put_off(1000, Time::new(10));
        assert_eq!(early.expire(0, Time::new(1009)), Due::Nothing);
        assert_eq!(early.due(), Time::new(1010));
        assert_eq!(early.round_trip(Time::new(10)).milliseconds, 10);
        // At 1010, then 40, 80 and so on later; three times a second after it was asked for.
        assert_eq!(unanswered(early), (6, 1010 + 40 * 31, 3010));
        // One try was over, or two, or all were.
        let table = [
            (150, (5, 1150 + 40 * 15, 2150)),
            (250, (0, 0, 1250)),
            (299, (0, 0, 1299)),
        ];
        for (now, expected) in table {
            let late = pending.clone().put_off(1000, Time::new(now));
            assert_eq!(unanswered(late), expected);
        }
        // Less than the consumer allows is nothing.
        let short = pending.put_off(1, Time::new(10));
        assert_eq!(unanswered(short).2, 300);
    }

    #[test]
    fn once_only() {
        let patience = Patience {
            timeout: 100,
            retries: 0,
        };
        let mut pending = Pending::new(patience, 20, Time::new(0));
        assert_eq!(pending.expire(0, Time::new(99)), Due::Nothing);
        let pending = pending.put_off(1000, Time::new(99));
        assert_eq!(unanswered(pending), (0, 0, 1099));
    }
}
