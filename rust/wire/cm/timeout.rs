// SPDX-License-Identifier: GPL-2.0-only

//! Times as InfiniBand writes them: powers of two of 4.096 µs.

use core::fmt;

use super::super::bits::Value;

/// A time of 4.096 µs × 2^n, where n has five bits: from 4.096 µs to 2 h 27 min.
///
/// # Invariants
///
/// The exponent is at most [`Timeout::MAX_EXPONENT`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timeout(u8);

impl Timeout {
    /// The largest exponent that five bits hold.
    pub const MAX_EXPONENT: u8 = 31;

    /// The unit of all such times.
    const UNIT_NANOSECONDS: u64 = 4096;

    /// The time of this exponent; `None` if it needs more than five bits.
    pub const fn new(exponent: u8) -> Option<Timeout> {
        if exponent > Self::MAX_EXPONENT {
            return None;
        }
        // INVARIANT: Checked just above.
        Some(Timeout(exponent))
    }

    /// The time of this exponent, or the longest that there is.
    pub const fn saturating(exponent: u8) -> Timeout {
        match Timeout::new(exponent) {
            Some(timeout) => timeout,
            // INVARIANT: The largest there is.
            None => Timeout(Self::MAX_EXPONENT),
        }
    }

    /// The power of two.
    pub const fn exponent(self) -> u8 {
        self.0
    }

    /// The exact time in nanoseconds.
    pub const fn to_nanoseconds(self) -> u64 {
        // By the invariant this is less than 2^44.
        Self::UNIT_NANOSECONDS << self.0
    }

    /// The time, or the next whole millisecond after it: a wait of this length is not shorter
    /// than was asked for.
    pub const fn to_milliseconds(self) -> u32 {
        // The longest time has 8,796,094 of them.
        self.to_nanoseconds().div_ceil(1_000_000) as u32
    }
}

impl Value for Timeout {
    const BITS: u32 = 5;

    fn from_bits(bits: u32) -> Timeout {
        // INVARIANT: What is above five bits is masked out.
        Timeout((bits & u32::from(Self::MAX_EXPONENT)) as u8)
    }

    fn bits(self) -> u32 {
        u32::from(self.0)
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.to_milliseconds())
    }
}

impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "4.096 µs × 2^{}", self.0)
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_cm_timeout))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn never_less_than_asked() {
        // The exponent, the nanoseconds, the milliseconds.
        let table = [
            (0, 4_096, 1),
            (7, 524_288, 1),
            (8, 1_048_576, 2),
            (9, 2_097_152, 3),
            (16, 268_435_456, 269),
            (20, 4_294_967_296, 4_295),
            (24, 68_719_476_736, 68_720),
            (31, 8_796_093_022_208, 8_796_094),
        ];
        for (exponent, nanoseconds, milliseconds) in table {
            let timeout = Timeout::new(exponent);
            assert_eq!(timeout.map(Timeout::exponent), Some(exponent));
            assert_eq!(timeout.map(Timeout::to_nanoseconds), Some(nanoseconds));
            assert_eq!(timeout.map(Timeout::to_milliseconds), Some(milliseconds));
        }
    }

    #[test]
    fn five_bits() {
        for exponent in [32, 33, 64, 255] {
            assert_eq!(Timeout::new(exponent), None);
            assert_eq!(Timeout::saturating(exponent).exponent(), 31);
        }
        assert_eq!(Timeout::saturating(14).exponent(), 14);
        assert_eq!(Timeout::from_bits(31).bits(), 31);
    }
}
