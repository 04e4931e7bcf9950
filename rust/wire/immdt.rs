// SPDX-License-Identifier: GPL-2.0-only

//! Immediate data, and the key that a SEND invalidates: four bytes each (IBTA 9.3.6, 9.3.7).

use zerocopy::byteorder::big_endian::U32;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

/// Length in bytes of either header.
pub const LEN: usize = 4;

const _: () = assert!(size_of::<ImmDt>() == LEN);
const _: () = assert!(size_of::<Ieth>() == LEN);

/// Immediate data: four bytes that mean something to the consumers alone, and that keep their
/// order.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct ImmDt([u8; LEN]);

impl ImmDt {
    /// Takes the four bytes.
    pub const fn from_bytes(bytes: [u8; LEN]) -> ImmDt {
        ImmDt(bytes)
    }

    /// The four bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        self.0
    }
}

/// The remote key that a SEND with invalidate takes away.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct Ieth(U32);

impl Ieth {
    /// Creates a header with this key.
    pub const fn new(rkey: u32) -> Ieth {
        Ieth(U32::new(rkey))
    }

    /// The bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// The remote key (R_Key) to invalidate.
    pub const fn rkey(self) -> u32 {
        self.0.get()
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_immdt))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn four_bytes() {
        assert_eq!(ImmDt::from_bytes([1, 2, 3, 4]).bytes(), [1, 2, 3, 4]);
        assert_eq!(Ieth::new(0x0102_0304).bytes(), [1, 2, 3, 4]);
        assert_eq!(Ieth::new(0x0102_0304).rkey(), 0x0102_0304);
    }
}
