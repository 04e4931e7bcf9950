// SPDX-License-Identifier: GPL-2.0-only

//! Arithmetic of packet sequence numbers (IBTA 9.7.2).

use super::wire::psn::Psn;

/// The span of numbers that may be under way at once: of any two of them it is known which one is
/// older.
pub(super) const REACH: u32 = 1 << 23;

/// The number that many packets later.
pub(super) const fn after(psn: Psn, packets: u32) -> Psn {
    Psn::wrapping(psn.get().wrapping_add(packets))
}

/// The number before this one.
pub(super) const fn before(psn: Psn) -> Psn {
    after(psn, Psn::MAX)
}

/// Returns how many packets later `to` is than `from`; negative if it is earlier.
pub(super) const fn distance(from: Psn, to: Psn) -> i32 {
    // The shift up and down spreads the sign of 24 bits.
    (to.get().wrapping_sub(from.get()) << 8) as i32 >> 8
}

/// Returns how many packets later `to` is than `from`, which is known not to be later.
pub(super) const fn ahead(from: Psn, to: Psn) -> u32 {
    Psn::wrapping(to.get().wrapping_sub(from.get())).get()
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(softib_transport_sequence))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn around_the_end() {
        let table = [
            (0, 0, 0),
            (0, 1, 1),
            (1, 0, -1),
            (0x00ff_ffff, 0, 1),
            (0, 0x00ff_ffff, -1),
            (0, 0x007f_ffff, 0x007f_ffff),
            (0, 0x0080_0000, -0x0080_0000),
            (0x00ff_fff0, 0x10, 0x20),
        ];
        for (from, to, apart) in table {
            let (from, to) = (Psn::wrapping(from), Psn::wrapping(to));
            assert_eq!(distance(from, to), apart);
            if apart >= 0 {
                assert_eq!(after(from, apart as u32), to);
                assert_eq!(ahead(from, to), apart as u32);
            }
        }
        assert_eq!(before(Psn::wrapping(0)).get(), Psn::MAX);
    }
}
