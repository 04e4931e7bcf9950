// SPDX-License-Identifier: GPL-2.0-only

//! How long the peers of a port take to answer, and when to ask once more.
//!
//! The mean and the deviation are kept as TCP keeps those of its round trip (RFC 6298), shared by
//! all connections of the port.
//!
//! Which of its copies a repeated request was answered for, nobody can tell. If few requests have to
//! be repeated, those were lost, and the time until their answer says nothing about the peers: it is
//! left out, as TCP does (Karn). If many have to, the peers are slower than was thought: then the
//! time counts from the first copy, too long rather than too short, so that a slow peer is not asked
//! ever faster.

use core::sync::atomic::{
    AtomicU64,
    Ordering, //
};

use super::machine::actions;

/// The least time before a request is repeated, in milliseconds.
const FLOOR: u32 = 20;

/// The time before the first sample, in milliseconds: whatever the consumer says. A peer that takes
/// a repetition for a new request does more harm than one late start.
const UNKNOWN: u32 = u32::MAX;

/// The most that is remembered, in milliseconds: half a minute.
const CEILING: u32 = 30_000;

/// Round trips on one port.
pub(super) struct RoundTrip {
    /// An [`Estimate`], in one word, so that its parts are of the same moment.
    estimate: AtomicU64,
}

impl RoundTrip {
    /// Of a port that has not asked anybody yet.
    pub(super) const fn new() -> Self {
        Self {
            estimate: AtomicU64::new(Estimate::NONE.pack()),
        }
    }

    /// Takes in how long an answer took.
    pub(super) fn sample(&self, sample: actions::RoundTrip) {
        // A sample that another CPU's overwrites is no loss.
        let estimate = Estimate::unpack(self.estimate.load(Ordering::Relaxed));
        let estimate = estimate.learn(sample);
        self.estimate.store(estimate.pack(), Ordering::Relaxed);
    }

    /// When to ask once more, in milliseconds after the first time.
    pub(super) fn patience(&self) -> u32 {
        Estimate::unpack(self.estimate.load(Ordering::Relaxed)).patience()
    }
}

/// What was learned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Estimate {
    /// The mean × 8, in milliseconds; zero: not known yet.
    mean8: u32,
    /// The deviation × 4, in milliseconds.
    deviation4: u32,
    /// The part of requests that had to be repeated, × 4096.
    repeated: u32,
}

/// Bits of the three parts in a word.
const MEAN_BITS: u32 = 20;
const DEVIATION_BITS: u32 = 20;
const REPEATED_BITS: u32 = 13;

/// All of them.
const ALL: u32 = 4096;

/// More than this, and it is not for loss: on a cable that loses a tenth of the packets, a fifth of
/// the requests or of their answers are lost.
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

    fn learn(self, sample: actions::RoundTrip) -> Self {
        let new = if sample.repeated { ALL } else { 0 };
        let repeated = self.repeated - self.repeated / 16 + new / 16;
        let known = Self { repeated, ..self };
        if sample.repeated && repeated <= TOO_MANY {
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
            mean8 => (mean8 / 4 + self.deviation4).max(FLOOR),
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_cm_round_trip)]
mod tests {
    use super::*;

    fn answered(port: &RoundTrip, milliseconds: u32) {
        port.sample(actions::RoundTrip {
            milliseconds,
            repeated: false,
        });
    }

    fn answered_late(port: &RoundTrip, milliseconds: u32) {
        port.sample(actions::RoundTrip {
            milliseconds,
            repeated: true,
        });
    }

    #[test]
    fn it_starts_careful() {
        assert_eq!(RoundTrip::new().patience(), UNKNOWN);
    }

    #[test]
    fn fast_peers_are_asked_after_the_floor() {
        let port = RoundTrip::new();
        (0..50).for_each(|_| answered(&port, 0));
        assert_eq!(port.patience(), FLOOR);
    }

    #[test]
    fn slow_peers_get_time() {
        let port = RoundTrip::new();
        (0..100).for_each(|_| answered(&port, 500));
        assert!((1000..1100).contains(&port.patience()));
        // One that never answers in time does not stop the rest.
        (0..1000).for_each(|_| answered_late(&port, u32::MAX));
        assert!(port.patience() <= 3 * CEILING);
    }

    #[test]
    fn changes_are_followed() {
        let port = RoundTrip::new();
        (0..100).for_each(|_| answered(&port, 1000));
        (0..100).for_each(|_| answered(&port, 1));
        assert!(port.patience() < 100);
        // Whoever answers after a second now has been asked several times.
        (0..100).for_each(|_| answered_late(&port, 1000));
        assert!(port.patience() > 1500);
    }

    #[test]
    fn what_was_lost_says_nothing_about_peers() {
        let port = RoundTrip::new();
        for _ in 0..100 {
            (0..4).for_each(|_| answered(&port, 5));
            answered_late(&port, 4000);
        }
        assert!(port.patience() < 50);
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
