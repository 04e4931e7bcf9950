// SPDX-License-Identifier: GPL-2.0-only

//! The RDMA extended transport header (IBTA 9.3.3).

use zerocopy::byteorder::big_endian::{
    U32,
    U64, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

/// Length in bytes of the header.
pub const LEN: usize = 16;

const _: () = assert!(size_of::<Reth>() == LEN);

/// The memory of the responder that an RDMA operation reads or writes.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Reth {
    address: U64,
    rkey: U32,
    length: U32,
}

impl Reth {
    /// Creates a header with these fields.
    pub const fn new(address: u64, rkey: u32, length: u32) -> Reth {
        Reth {
            address: U64::new(address),
            rkey: U32::new(rkey),
            length: U32::new(length),
        }
    }

    /// The bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// The first address, in the responder's address space.
    pub const fn address(&self) -> u64 {
        self.address.get()
    }

    /// The remote key (R_Key) of the memory.
    pub const fn rkey(&self) -> u32 {
        self.rkey.get()
    }

    /// The number of bytes that the whole operation moves.
    pub const fn length(&self) -> u32 {
        self.length.get()
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_reth))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_sample() {
        // The sample packet of IBTA 7.8.4.
        let bytes = [
            0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, //
            0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e,
        ];
        let reth = Reth::new(0x0171_0a1c_015d_4002, 0x38f2_7a05, 14);
        assert_eq!(reth.bytes(), bytes);
        assert_eq!(reth.address(), 0x0171_0a1c_015d_4002);
        assert_eq!((reth.rkey(), reth.length()), (0x38f2_7a05, 14));
    }
}
