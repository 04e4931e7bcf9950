// SPDX-License-Identifier: GPL-2.0-only

//! How long the peers of a port take to answer, and when to ask once more.
//!
//! The mean and the deviation are kept as TCP keeps those of its round trip (RFC 6298), shared by
//! all connections of the port. A sample counts from a request's first sending also if it had to be
//! repeated: too long rather than too short, so that a slow peer is not asked ever faster.

use core::sync::atomic::{
    AtomicU64,
    Ordering, //
};

/// The least time before a request is repeated, in milliseconds.
const FLOOR: u32 = 20;

/// The time before the first sample, in milliseconds: whatever the consumer says. A peer that takes
/// a repetition for a new request does more harm than one late start.
const UNKNOWN: u32 = u32::MAX;

/// The most that is remembered, in milliseconds: a minute.
const CEILING: u32 = 60_000;

/// Round trips on one port.
pub(super) struct RoundTrip {
    /// The mean × 8 and the deviation × 4, in milliseconds, in the upper and the lower half; zero:
    /// none yet. One word, so that the two are of the same moment.
    estimate: AtomicU64,
}

impl RoundTrip {
    /// Of a port that has not asked anybody yet.
    pub(super) const fn new() -> Self {
        Self {
            estimate: AtomicU64::new(0),
        }
    }

    /// Takes in that an answer came after `milliseconds`.
    pub(super) fn sample(&self, milliseconds: u32) {
        let sample = milliseconds.clamp(1, CEILING);
        // A sample that another CPU's overwrites is no loss.
        let old = self.estimate.load(Ordering::Relaxed);
        self.estimate.store(learn(old, sample), Ordering::Relaxed);
    }

    /// When to ask once more, in milliseconds after the first time.
    pub(super) fn patience(&self) -> u32 {
        match parts(self.estimate.load(Ordering::Relaxed)) {
            (0, _) => UNKNOWN,
            // The mean twice, as answers come from consumers and not from adapters alone.
            (mean8, deviation4) => (mean8 / 4 + deviation4).max(FLOOR),
        }
    }
}

fn parts(estimate: u64) -> (u32, u32) {
    ((estimate >> 32) as u32, estimate as u32)
}

fn learn(estimate: u64, sample: u32) -> u64 {
    let (mean8, deviation4) = match parts(estimate) {
        (0, _) => (sample * 8, sample * 2),
        (mean8, deviation4) => {
            let error = sample.abs_diff(mean8 / 8);
            (
                mean8 - mean8 / 8 + sample,
                deviation4 - deviation4 / 4 + error,
            )
        }
    };
    u64::from(mean8) << 32 | u64::from(deviation4)
}

#[kernel::prelude::kunit_tests(oxib_cm_round_trip)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_careful() {
        assert_eq!(RoundTrip::new().patience(), UNKNOWN);
    }

    #[test]
    fn fast_peers_are_asked_after_the_floor() {
        let port = RoundTrip::new();
        (0..50).for_each(|_| port.sample(0));
        assert_eq!(port.patience(), FLOOR);
    }

    #[test]
    fn slow_peers_get_time() {
        let port = RoundTrip::new();
        (0..100).for_each(|_| port.sample(500));
        assert!((1000..1100).contains(&port.patience()));
        // One that never answers in time does not stop the rest.
        (0..1000).for_each(|_| port.sample(u32::MAX));
        assert!(port.patience() <= 3 * CEILING);
    }

    #[test]
    fn changes_are_followed() {
        let port = RoundTrip::new();
        (0..100).for_each(|_| port.sample(1000));
        (0..100).for_each(|_| port.sample(1));
        assert!(port.patience() < 100);
    }
}
