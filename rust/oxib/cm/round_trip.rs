// SPDX-License-Identifier: GPL-2.0-only

//! Round trips to the peers of a port, and the time after which a request is repeated.
//!
//! The mean and the deviation are kept as TCP keeps those of its round trip (RFC 6298), shared by
//! all connections of the port, for each kind of request.
//!
//! An answer does not tell which copy of a repeated request it answers. If the answer comes as
//! soon after the last copy as answers come, it is most likely for that one: the others were
//! lost, or the peer dropped them because it has too much to do, and the time until the answer
//! says nothing about how long answers take. It is left out, as TCP does (Karn). So are the
//! answers that come later, as long as they are few. If they are many, the peers are slower than
//! was thought: then the time counts from the first copy, too long rather than too short, so that
//! a slow peer is not asked ever faster.
//!
//! Peers that get many requests at once answer them one after the other, the last ones late. So a
//! request is repeated only if one that was sent later has been answered, or if nobody has
//! answered a first copy for as long as it would take.

use core::sync::atomic::{
    AtomicU64,
    Ordering, //
};

use super::machine::{
    actions,
    time::Time, //
};
use crate::wire::cm::Kind;

/// The least time before a request is repeated, in milliseconds.
const FLOOR: u32 = 20;

/// The least time before a REP is repeated, in milliseconds: its receiver readies a queue pair
/// before it answers, and perhaps those of others before.
const REP_FLOOR: u32 = 4 * FLOOR;

/// The time before the first sample, in milliseconds: whatever the consumer says. A peer that
/// takes a repetition for a new request does more harm than one late start.
const UNKNOWN: u32 = u32::MAX;

/// Time for which a request keeps others waiting while no request has been answered yet, in
/// milliseconds: its peer may be one of many that do not answer at all.
pub(super) const UNHEARD: u32 = 5 * FLOOR;

/// The most that is remembered, in milliseconds: half a minute.
const CEILING: u32 = 30_000;

/// Round trips on one port, by what is asked for: a DREQ is answered at once by the peer's
/// kernel, a REQ and a SIDR_REQ by a consumer there, and a REP by one that may have a thousand
/// others to look at first.
pub(super) struct RoundTrips {
    req: RoundTrip,
    rep: RoundTrip,
    dreq: RoundTrip,
}

impl RoundTrips {
    /// Creates the round trips of a port that has not sent a request yet.
    pub(super) const fn new() -> Self {
        Self {
            req: RoundTrip::new(FLOOR),
            rep: RoundTrip::new(REP_FLOOR),
            dreq: RoundTrip::new(FLOOR),
        }
    }

    /// The round trips of requests of this kind.
    pub(super) fn of(&self, kind: Kind) -> &RoundTrip {
        match kind {
            Kind::Rep => &self.rep,
            Kind::Dreq => &self.dreq,
            _ => &self.req,
        }
    }
}

/// Round trips of one kind of request.
pub(super) struct RoundTrip {
    /// An [`Estimate`], in one word, so that its parts are of the same moment.
    estimate: AtomicU64,
    /// The time at which the latest of the requests that have been answered was sent, in
    /// milliseconds.
    overtaken: AtomicU64,
    /// The time of the last answer to a first copy, in milliseconds.
    answered: AtomicU64,
    /// The least time before a request is repeated, in milliseconds.
    floor: u32,
}

impl RoundTrip {
    /// Creates round trips without a sample.
    const fn new(floor: u32) -> Self {
        Self {
            floor,
            estimate: AtomicU64::new(Estimate::NONE.pack()),
            overtaken: AtomicU64::new(0),
            answered: AtomicU64::new(0),
        }
    }

    /// Takes in how long an answer took that came `now`. Where it came late, and requests that
    /// were sent much later have been answered before, a message was lost on the way, perhaps the
    /// answer, which the peer repeats by itself: that says nothing of the others.
    pub(super) fn sample(&self, sample: actions::RoundTrip, now: Time) {
        let sent = now.get().saturating_sub(sample.milliseconds.into());
        // Relaxed, here and below: these are estimates, and no other memory is published by them.
        let overtaken = self.overtaken.fetch_max(sent, Ordering::Relaxed);
        // A sample that another CPU's overwrites is no loss.
        let estimate = Estimate::unpack(self.estimate.load(Ordering::Relaxed));
        let patience = estimate.patience().max(self.floor);
        let is_overtaken = overtaken.saturating_sub(sent) > u64::from(patience / 4);
        if is_overtaken && sample.milliseconds > patience {
            return;
        }
        // The answer to a repetition says nothing of those that are queued: it comes when the
        // others were lost, too.
        if !estimate.is_of_last_copy(sample) {
            self.answered.store(now.get(), Ordering::Relaxed);
        }
        // One answer that took far too long may have been lost once. Several lead there as well.
        let estimate = estimate.learn(actions::RoundTrip {
            milliseconds: sample.milliseconds.min(patience),
            ..sample
        });
        self.estimate.store(estimate.pack(), Ordering::Relaxed);
    }

    /// Returns whether a request has been answered yet.
    pub(super) fn is_known(&self) -> bool {
        Estimate::unpack(self.estimate.load(Ordering::Relaxed)).mean8 != 0
    }

    /// Time until a request is repeated, in milliseconds after its first try.
    pub(super) fn patience(&self) -> u32 {
        Estimate::unpack(self.estimate.load(Ordering::Relaxed))
            .patience()
            .max(self.floor)
    }

    /// Time until a request is repeated that was sent first at `asked` and is unanswered `now`,
    /// in milliseconds after its last try: longer, as long as it may be queued at a peer that
    /// answers others.
    pub(super) fn patience_with(&self, asked: Time, now: Time) -> u32 {
        let patience = self.patience();
        let overtaken = Time::new(self.overtaken.load(Ordering::Relaxed));
        let answered = Time::new(self.answered.load(Ordering::Relaxed));
        let is_lost = overtaken.since(asked) > u64::from(patience / 4);
        let is_quiet = now.since(answered) >= patience.into();
        if is_lost || is_quiet {
            return patience;
        }
        let waited = u32::try_from(now.since(asked)).unwrap_or(u32::MAX);
        patience.saturating_add(waited)
    }

    /// Returns whether a request that was sent first at `asked` and is unanswered `now` would
    /// have been answered if it were as others.
    pub(super) fn is_overdue(&self, asked: Time, now: Time) -> bool {
        let patience = match self.patience_with(asked, now) {
            UNKNOWN => UNHEARD,
            known => known,
        };
        now.since(asked) >= patience.into()
    }
}

/// The estimate of a round trip that the samples give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Estimate {
    /// The mean × 8, in milliseconds; zero: not known yet.
    mean8: u32,
    /// The deviation × 4, in milliseconds.
    deviation4: u32,
    /// The part of the last [`MEMORY`] requests or so that had to be repeated, and were not
    /// answered for the last copy as it seems, of [`ALL`].
    repeated: u32,
}

/// Bits of the three parts in a word.
const MEAN_BITS: u32 = 20;
const DEVIATION_BITS: u32 = 20;
const REPEATED_BITS: u32 = 21;

/// The value of `repeated` if all requests were repeated.
const ALL: u32 = 1 << 20;

/// Number of requests for which it is remembered whether they were repeated. Of a thousand that
/// were sent at once those that were lost are answered last, one after the other: that is no sign
/// of slow peers.
const MEMORY: u32 = 512;

/// The share of repeated requests above which loss is no explanation: on a cable that loses a
/// tenth of the packets, a fifth of the requests or of their answers are lost.
const TOO_MANY: u32 = ALL / 2;

// The parts fit, whatever is learned.
const _: () = assert!(CEILING * 8 < 1 << MEAN_BITS && CEILING * 4 < 1 << DEVIATION_BITS);
const _: () = assert!(ALL < 1 << REPEATED_BITS && MEAN_BITS + DEVIATION_BITS + REPEATED_BITS <= 64);

impl Estimate {
    const NONE: Self = Self {
        mean8: 0,
        deviation4: 0,
        repeated: 0,
    };

    const fn pack(self) -> u64 {
        let (mean8, deviation4) = (self.mean8 as u64, self.deviation4 as u64);
        (mean8 << DEVIATION_BITS | deviation4) << REPEATED_BITS | self.repeated as u64
    }

    const fn unpack(word: u64) -> Self {
        const fn low(word: u64, bits: u32) -> u32 {
            (word & ((1 << bits) - 1)) as u32
        }
        Self {
            mean8: low(word >> (DEVIATION_BITS + REPEATED_BITS), MEAN_BITS),
            deviation4: low(word >> REPEATED_BITS, DEVIATION_BITS),
            repeated: low(word, REPEATED_BITS),
        }
    }

    /// Returns whether an answer comes as soon after the last copy of a repeated request as
    /// answers come.
    fn is_of_last_copy(self, sample: actions::RoundTrip) -> bool {
        let usual = self.mean8 / 8 + self.deviation4 / 4;
        sample.since_repeated.is_some_and(|since| since <= usual)
    }

    fn learn(self, sample: actions::RoundTrip) -> Self {
        let is_late = sample.since_repeated.is_some() && !self.is_of_last_copy(sample);
        let new = if is_late { ALL } else { 0 };
        let repeated = self.repeated - self.repeated / MEMORY + new / MEMORY;
        let known = Self { repeated, ..self };
        if sample.since_repeated.is_some() && !(is_late && repeated > TOO_MANY) {
            return known;
        }
        known.follow(sample.milliseconds.clamp(1, CEILING))
    }

    fn follow(self, sample: u32) -> Self {
        if self.mean8 == 0 {
            return Self {
                mean8: sample * 8,
                deviation4: sample * 2,
                ..self
            };
        }
        let error = sample.abs_diff(self.mean8 / 8);
        Self {
            mean8: self.mean8 - self.mean8 / 8 + sample,
            deviation4: self.deviation4 - self.deviation4 / 4 + error,
            ..self
        }
    }

    fn patience(self) -> u32 {
        match self.mean8 {
            0 => UNKNOWN,
            // The mean twice, as answers come from consumers and not from adapters alone.
            mean8 => mean8 / 4 + self.deviation4,
        }
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(oxib_cm_round_trip))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    fn answered(port: &RoundTrip, milliseconds: u32) {
        let sample = actions::RoundTrip {
            milliseconds,
            since_repeated: None,
        };
        port.sample(sample, Time::new(0));
    }

    fn answered_late(port: &RoundTrip, milliseconds: u32) {
        let sample = actions::RoundTrip {
            milliseconds,
            since_repeated: Some(milliseconds / 2),
        };
        port.sample(sample, Time::new(0));
    }

    #[test]
    fn it_starts_careful() {
        assert_eq!(RoundTrip::new(FLOOR).patience(), UNKNOWN);
    }

    #[test]
    fn fast_peers_are_asked_after_the_floor() {
        let port = RoundTrip::new(FLOOR);
        (0..50).for_each(|_| answered(&port, 0));
        assert_eq!(port.patience(), FLOOR);
    }

    #[test]
    fn slow_peers_get_time() {
        let port = RoundTrip::new(FLOOR);
        (0..100).for_each(|_| answered(&port, 500));
        assert!((1000..1100).contains(&port.patience()));
        // One that never answers in time does not stop the rest.
        (0..1000).for_each(|_| answered_late(&port, u32::MAX));
        assert!(port.patience() <= 3 * CEILING);
    }

    #[test]
    fn changes_are_followed() {
        let port = RoundTrip::new(FLOOR);
        (0..100).for_each(|_| answered(&port, 1000));
        (0..100).for_each(|_| answered(&port, 1));
        assert!(port.patience() < 100);
        // A peer that answers after a second now has been asked several times.
        (0..MEMORY).for_each(|_| answered_late(&port, 1000));
        assert!(port.patience() > 1500);
    }

    #[test]
    fn what_was_lost_says_nothing_about_peers() {
        let port = RoundTrip::new(FLOOR);
        for _ in 0..100 {
            (0..4).for_each(|_| answered(&port, 5));
            answered_late(&port, 4000);
        }
        assert!(port.patience() < 50);
        // All that were lost of a thousand come last.
        (0..190).for_each(|_| answered_late(&port, 4000));
        assert!(port.patience() < 50);
    }

    #[test]
    fn a_peer_that_stands_in_line_is_not_asked_again() {
        let port = RoundTrip::new(FLOOR);
        (0..50).for_each(|_| answered(&port, 1));
        let (asked, now) = (Time::new(1000), Time::new(1020));
        let answer_to = |sent: u64, at: u64| {
            let sample = actions::RoundTrip {
                milliseconds: (at - sent) as u32,
                since_repeated: None,
            };
            port.sample(sample, Time::new(at));
        };
        // Nobody has answered for long.
        assert_eq!(port.patience_with(asked, now), port.patience());
        // Others are answered that were sent before.
        answer_to(999, 1019);
        let patience = port.patience();
        assert_eq!(port.patience_with(asked, now), patience + 20);
        // One that was sent at the same time is no sign, one that was sent long afterwards is.
        answer_to(1001, 1019);
        assert!(port.patience_with(asked, now) > port.patience());
        answer_to(1000 + u64::from(patience), 1001 + u64::from(patience));
        let now = Time::new(1002 + u64::from(patience));
        assert_eq!(port.patience_with(asked, now), port.patience());
    }

    #[test]
    fn the_answer_to_a_repetition_is_no_sign_of_a_line() {
        let port = RoundTrip::new(FLOOR);
        (0..50).for_each(|_| answered(&port, 2));
        // Sent with the one that is looked at, and repeated.
        let (asked, now) = (Time::new(1000), Time::new(1100));
        let answer = |since_repeated| {
            let sample = actions::RoundTrip {
                milliseconds: 100,
                since_repeated,
            };
            port.sample(sample, now);
        };
        answer(Some(1));
        assert_eq!(port.patience_with(asked, now), port.patience());
        // The first copy was answered: it had been queued.
        answer(None);
        assert!(port.patience_with(asked, now) > port.patience());
    }

    #[test]
    fn the_first_keep_no_peer_waiting_for_long() {
        let port = RoundTrip::new(FLOOR);
        let asked = Time::new(1000);
        let at = |later: u32| asked.after(later.into());
        assert!(!port.is_overdue(asked, at(UNHEARD - 1)));
        assert!(port.is_overdue(asked, at(UNHEARD)));
        // Peers that answer late have more time, and so have those that are queued.
        let sample = actions::RoundTrip {
            milliseconds: 2 * UNHEARD,
            since_repeated: None,
        };
        port.sample(sample, at(2 * UNHEARD));
        assert!(!port.is_overdue(asked, at(2 * UNHEARD)));
        assert!(port.is_overdue(asked, at(2 * port.patience())));
    }

    #[test]
    fn a_word_holds_all() {
        for part in [0, 1, 1000] {
            let estimate = Estimate {
                mean8: CEILING * 8 - part,
                deviation4: CEILING * 4 - part,
                repeated: ALL - part,
            };
            assert_eq!(Estimate::unpack(estimate.pack()), estimate);
        }
    }
}
