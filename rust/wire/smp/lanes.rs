// SPDX-License-Identifier: GPL-2.0-only

//! Which lane a packet takes and when it is a lane's turn: SLtoVLMappingTable and VLArbitration
//! (IBTA 14.2.5.8, 14.2.5.9).

use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::super::bits::Field;
use super::{
    attribute,
    Attribute,
    DATA_LEN, //
};

/// Length in bytes of a mapping.
pub const MAPPING_LEN: usize = 8;

/// The number of service levels.
pub const LEVELS: u8 = 16;

/// The number of entries in a block of an arbitration table.
pub const BLOCK: usize = 32;

const _: () = assert!(size_of::<SlToVl>() == MAPPING_LEN);
const _: () = assert!(size_of::<VlArbitration>() == DATA_LEN);

/// The lane of each service level, four bits each.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    Debug,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(transparent)]
pub struct SlToVl(pub [u8; MAPPING_LEN]);

impl Attribute for SlToVl {
    const ID: u16 = attribute::SL_TO_VL;
}

/// The high half of a byte: an even level.
type Even = Field<u8, 0, 4>;
/// The low half: the odd level after it.
type Odd = Field<u8, 4, 4>;

impl SlToVl {
    /// The lane of a service level, of which the low four bits count.
    pub fn lane(&self, level: u8) -> u8 {
        let level = level % LEVELS;
        // Half of the level is below 8.
        let byte = self.0.get(usize::from(level / 2)).copied().unwrap_or(0);
        if level % 2 == 0 {
            Even::get(byte)
        } else {
            Odd::get(byte)
        }
    }

    /// Writes what [`SlToVl::lane`] reads.
    pub fn set_lane(&mut self, level: u8, lane: u8) {
        let level = level % LEVELS;
        if let Some(byte) = self.0.get_mut(usize::from(level / 2)) {
            if level % 2 == 0 {
                Even::set(byte, lane);
            } else {
                Odd::set(byte, lane);
            }
        }
    }
}

/// One turn of a lane.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    Debug,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct Turn {
    /// The lane, in the low four bits.
    pub lane: u8,
    /// The amount that the lane may send, in units of 64 bytes; 0 to skip the entry.
    pub weight: u8,
}

/// A half of an arbitration table: the attribute modifier says which, and of which port.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    Debug,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(transparent)]
pub struct VlArbitration(pub [Turn; BLOCK]);

impl Attribute for VlArbitration {
    const ID: u16 = attribute::VL_ARBITRATION;
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_smp_lanes))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn levels_are_halves_of_bytes() {
        let golden = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
        let mut map = SlToVl::default();
        for level in 0..LEVELS {
            assert_eq!(SlToVl(golden).lane(level), level);
            map.set_lane(level, level | 0xf0);
        }
        assert_eq!(map, SlToVl(golden));
        assert_eq!(map.lane(16), 0);
    }
}
