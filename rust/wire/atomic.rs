// SPDX-License-Identifier: GPL-2.0-only

//! The headers of atomic operations and of their answers (IBTA 9.3.4, 9.5.3).

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

/// Length in bytes of the request's header.
pub const LEN: usize = 28;

/// Length in bytes of the answer's header.
pub const ACK_LEN: usize = 8;

const _: () = assert!(size_of::<AtomicEth>() == LEN);
const _: () = assert!(size_of::<AtomicAckEth>() == ACK_LEN);

/// The word of the responder's memory, and what to do with it.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct AtomicEth {
    address: U64,
    rkey: U32,
    swap_add: U64,
    compare: U64,
}

impl AtomicEth {
    /// Creates a header with these fields.
    pub const fn new(address: u64, rkey: u32, swap_add: u64, compare: u64) -> AtomicEth {
        AtomicEth {
            address: U64::new(address),
            rkey: U32::new(rkey),
            swap_add: U64::new(swap_add),
            compare: U64::new(compare),
        }
    }

    /// The bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// The address, in the responder's address space.
    pub const fn address(&self) -> u64 {
        self.address.get()
    }

    /// The remote key (R_Key) of the memory.
    pub const fn rkey(&self) -> u32 {
        self.rkey.get()
    }

    /// The operand that is added, or that replaces a word equal to [`AtomicEth::compare`].
    pub const fn swap_add(&self) -> u64 {
        self.swap_add.get()
    }

    /// The value that the word must have for the swap.
    pub const fn compare(&self) -> u64 {
        self.compare.get()
    }
}

/// The header of an atomic response: the word before the operation.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct AtomicAckEth {
    original: U64,
}

impl AtomicAckEth {
    /// Creates a header with this value.
    pub const fn new(original: u64) -> AtomicAckEth {
        AtomicAckEth {
            original: U64::new(original),
        }
    }

    /// The bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; ACK_LEN] {
        zerocopy::transmute!(self)
    }

    /// The value of the word before the operation.
    pub const fn original(&self) -> u64 {
        self.original.get()
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_atomic))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        let bytes = [
            0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, // address
            0x11, 0x12, 0x13, 0x14, // key
            0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, // swap
            0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, // compare
        ];
        let atomic = AtomicEth::new(
            0x0102_0304_0506_0708,
            0x1112_1314,
            0x2122_2324_2526_2728,
            0x3132_3334_3536_3738,
        );
        assert_eq!(atomic.bytes(), bytes);
        assert_eq!(atomic.address(), 0x0102_0304_0506_0708);
        assert_eq!(atomic.rkey(), 0x1112_1314);
        assert_eq!(atomic.swap_add(), 0x2122_2324_2526_2728);
        assert_eq!(atomic.compare(), 0x3132_3334_3536_3738);
        let ack = AtomicAckEth::new(0x0102_0304_0506_0708);
        assert_eq!(ack.bytes(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(ack.original(), 0x0102_0304_0506_0708);
    }
}
