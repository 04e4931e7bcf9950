// SPDX-License-Identifier: GPL-2.0-only

//! Senders of packets, as far as headers tell, and a budget for each of them.
//!
//! On InfiniBand a port cannot send from another's LID. On RoCE the source is an IP address, which
//! can be forged: there the budgets bound a sender with its true address, and all senders together
//! are bounded by what they share.

use kernel::prelude::*;

use super::budget::{
    Left,
    Rate, //
};
use crate::wire::gid::Gid;

/// Number of budgets; a power of two. Sources share one where their hashes do.
const BUDGETS: usize = 1024;

/// The port that a packet came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Source(u64);

impl Source {
    /// A source that is not known.
    pub(crate) const UNKNOWN: Self = Self(0);

    /// The port of this subnet, or the router, with LID `lid`, of which `lmc` low bits are the
    /// port's own to choose.
    pub(crate) fn port(lid: u16, lmc: u8) -> Self {
        Self(1 + (u64::from(lid) >> lmc))
    }

    /// The port with this GID.
    pub(crate) fn gid(gid: &Gid) -> Self {
        let bits = u128::from_be_bytes(gid.bytes());
        Self((bits >> 64) as u64 ^ bits as u64 | 1 << 63)
    }

    /// Returns the number of the source.
    pub(crate) fn get(self) -> u64 {
        self.0
    }

    /// Returns the source with that number.
    pub(crate) fn from_number(number: u64) -> Self {
        Self(number)
    }
}

/// A budget for each source.
pub(crate) struct Sources {
    rate: Rate,
    /// Makes it hard to find a source that shares another's budget.
    seed: u64,
    left: KVec<Left>,
}

impl Sources {
    /// Creates full budgets of that rate.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(rate: Rate, seed: u64) -> Result<Self> {
        Ok(Self {
            rate,
            seed: seed | 1,
            left: KVec::from_elem(Left::new(rate), BUDGETS, GFP_KERNEL)?,
        })
    }

    /// Takes one of what is left to `source` at time `now` (milliseconds), if there is one.
    pub(crate) fn take(&mut self, source: Source, now: u64) -> bool {
        let mixed = (source.0 ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(self.seed);
        let index = (mixed >> (64 - BUDGETS.trailing_zeros())) as usize;
        let rate = self.rate;
        self.left
            .get_mut(index)
            .is_some_and(|left| left.take(rate, now))
    }
}

#[kernel::prelude::kunit_tests(oxib_acm_sources)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { most: 4, every: 50 };

    #[test]
    fn one_source_takes_nothing_from_others() -> Result {
        let mut sources = Sources::new(RATE, 0x1234_5678_9abc_def1)?;
        let now = 1_000_000;
        let greedy = Source::port(7, 0);
        let taken = (0..100_000).filter(|_| sources.take(greedy, now)).count();
        assert_eq!(taken, RATE.most as usize);
        assert!(sources.take(greedy, now + RATE.every));
        let others = (8..2008)
            .filter(|lid| sources.take(Source::port(*lid, 0), now))
            .count();
        // Few share its budget; and about two share each.
        assert!(others > 1900);
        Ok(())
    }

    #[test]
    fn a_port_is_one_source() {
        assert_eq!(Source::port(8, 3), Source::port(15, 3));
        assert_ne!(Source::port(8, 3), Source::port(16, 3));
        let (one, other) = (Gid::from_ipv4([10, 0, 0, 1]), Gid::from_ipv4([10, 0, 0, 2]));
        assert_ne!(Source::gid(&one), Source::gid(&other));
        assert_ne!(Source::port(1, 0), Source::UNKNOWN);
        assert_eq!(
            Source::from_number(Source::gid(&one).get()),
            Source::gid(&one)
        );
    }
}
