// SPDX-License-Identifier: GPL-2.0-only

//! Time as a queue pair sees it, and the durations of the protocol.

/// An instant: nanoseconds since some fixed one, the same for all calls of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Time(u64);

impl Time {
    /// The instant that many nanoseconds after the fixed one.
    pub const fn new(nanoseconds: u64) -> Time {
        Time(nanoseconds)
    }

    /// Nanoseconds since the fixed instant.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The instant that many nanoseconds later, or the end of time.
    pub const fn after(self, nanoseconds: u64) -> Time {
        Time(self.0.saturating_add(nanoseconds))
    }
}

/// The unit of the local ACK timeout, in nanoseconds.
const ACK_UNIT: u64 = 4096;

/// Nanoseconds of a local ACK timeout, 4.096 µs × 2^exponent; `None` for 0, which is to wait
/// without end (IBTA 9.7.6.1.3).
pub const fn ack_timeout(exponent: u8) -> Option<u64> {
    match exponent & 0x1f {
        0 => None,
        exponent => Some(ACK_UNIT << exponent),
    }
}

/// Hundredths of a millisecond, by the five bits of an RNR NAK (IBTA 9.7.5.2.8, table of RNR NAK
/// timer values).
const RNR_TIMERS: [u32; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

/// Nanoseconds that a requester waits at least after an RNR NAK with this timer field.
pub fn rnr_timer(field: u8) -> u64 {
    let hundredths = RNR_TIMERS.get(usize::from(field & 0x1f)).unwrap_or(&65536);
    u64::from(*hundredths) * 10_000
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(softib_transport_time))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn ack_timeouts() {
        let table = [
            (0, None),
            (1, Some(8_192)),
            (14, Some(67_108_864)),
            (31, Some(8_796_093_022_208)),
            (32, None),
        ];
        for (exponent, nanoseconds) in table {
            assert_eq!(ack_timeout(exponent), nanoseconds);
        }
    }

    #[test]
    fn rnr_timers() {
        let table = [
            (0, 655_360_000),
            (1, 10_000),
            (12, 640_000),
            (31, 491_520_000),
            (32, 655_360_000),
        ];
        for (field, nanoseconds) in table {
            assert_eq!(rnr_timer(field), nanoseconds);
        }
    }

    #[test]
    fn end_of_time() {
        assert_eq!(Time::new(u64::MAX).after(1), Time::new(u64::MAX));
    }
}
