// SPDX-License-Identifier: GPL-2.0-only

//! The GUIDs of a port, eight at a time: GUIDInfo (IBTA 14.2.5.5).

use zerocopy::byteorder::big_endian::U64;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::{
    attribute,
    Attribute,
    DATA_LEN, //
};

/// The number of GUIDs in a block.
pub const BLOCK: usize = 8;

const _: () = assert!(size_of::<GuidInfo>() == DATA_LEN);

/// A block of the GUID table; the attribute modifier says which. The first entry of the first
/// block is the port's own and cannot be set.
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
pub struct GuidInfo([U64; BLOCK]);

impl Attribute for GuidInfo {
    const ID: u16 = attribute::GUID_INFO;
}

impl GuidInfo {
    /// A block of these GUIDs, zeros where there are none.
    pub fn new(guids: [u64; BLOCK]) -> GuidInfo {
        GuidInfo(guids.map(U64::new))
    }

    /// The GUIDs in the order of the block.
    pub fn guids(&self) -> [u64; BLOCK] {
        self.0.map(U64::get)
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_smp_guid))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn guids_on_the_wire() {
        let info = GuidInfo::new([0x0102_0304_0506_0708, 0, 0, 0, 0, 0, 0, 9]);
        let bytes: [u8; DATA_LEN] = zerocopy::transmute!(info);
        assert!(bytes.starts_with(&[1, 2, 3, 4, 5, 6, 7, 8, 0]));
        assert!(bytes.ends_with(&[0, 0, 0, 0, 0, 0, 0, 0, 9]));
        assert_eq!(GuidInfo::new(info.guids()), info);
    }
}
