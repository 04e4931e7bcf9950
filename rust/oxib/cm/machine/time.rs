// SPDX-License-Identifier: GPL-2.0-only

//! Time as the machine sees it, and the durations of the protocol.

/// An instant: milliseconds since some fixed one, the same for all of a machine's inputs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Time(u64);

impl Time {
    /// The last instant, after all others.
    pub const END: Time = Time(u64::MAX);

    /// The instant that many milliseconds after the fixed one.
    pub const fn new(milliseconds: u64) -> Time {
        Time(milliseconds)
    }

    /// Milliseconds since the fixed instant.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The instant that many milliseconds later, or the end of time.
    pub const fn after(self, milliseconds: u64) -> Time {
        Time(self.0.saturating_add(milliseconds))
    }

    /// Milliseconds since an earlier instant; none since a later one.
    pub const fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The largest exponent that a five-bit duration field holds.
const MAX_EXPONENT: u8 = 31;

/// Milliseconds of a duration field: 4.096 µs × 2^exponent (IBTA 12.7), taken as
/// 2^(exponent − 8) ms, and never less than one.
///
/// The C implementation rounds the same way. Both ends of a connection and its consumers count on
/// these durations, so they are not made more exact here.
pub const fn milliseconds(exponent: u8) -> u32 {
    let exponent = if exponent < MAX_EXPONENT {
        exponent
    } else {
        MAX_EXPONENT
    };
    1 << exponent.saturating_sub(8)
}

/// The local ACK timeout of a queue pair, as an exponent: long enough for the packet's way there,
/// the answer's way back, and what the other end takes in between (IBTA 12.7).
///
/// The sum `2^ack_delay + 2 × 2^life_time` is an exponent only roughly: it is the larger one of
/// the two, and one more if the other is at least half of it.
pub const fn ack_timeout(ack_delay: u8, packet_life_time: u8) -> u8 {
    let round_trip = packet_life_time.saturating_add(1);
    let (larger, smaller) = if round_trip >= ack_delay {
        (round_trip, ack_delay)
    } else {
        (ack_delay, round_trip)
    };
    let sum = if smaller.saturating_add(1) >= larger {
        larger.saturating_add(1)
    } else {
        larger
    };
    if sum < MAX_EXPONENT {
        sum
    } else {
        MAX_EXPONENT
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(oxib_cm_time))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let table = [
            (0, 1),
            (8, 1),
            (9, 2),
            (18, 1024),
            (20, 4096),
            (24, 65536),
            (31, 1 << 23),
            (32, 1 << 23),
            (255, 1 << 23),
        ];
        for (exponent, ms) in table {
            assert_eq!(milliseconds(exponent), ms);
        }
    }

    #[test]
    fn ack_timeouts() {
        // Delay of the channel adapter, packet life time, their sum.
        let table = [
            (0, 0, 2),
            (0, 5, 6),
            (4, 5, 6),
            (5, 5, 7),
            (6, 5, 7),
            (7, 5, 8),
            (8, 5, 8),
            (15, 18, 19),
            (18, 18, 20),
            (31, 31, 31),
            (0, 255, 31),
            (255, 0, 31),
        ];
        for (delay, life_time, sum) in table {
            assert_eq!(ack_timeout(delay, life_time), sum);
        }
    }

    #[test]
    fn ends_of_time() {
        let end = Time::END;
        assert_eq!(end.after(1), end);
        assert_eq!(Time::new(1).since(Time::new(2)), 0);
        assert_eq!(Time::new(5).since(Time::new(2)), 3);
        assert_eq!(Time::new(5).after(2).get(), 7);
    }
}
