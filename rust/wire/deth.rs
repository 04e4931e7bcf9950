// SPDX-License-Identifier: GPL-2.0-only

//! The datagram extended transport header (IBTA 9.3.2).

use zerocopy::byteorder::big_endian::U32;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::qpn::Qpn;

/// Length in bytes of the header.
pub const LEN: usize = 8;

const _: () = assert!(size_of::<Deth>() == LEN);

/// The sender of a datagram, and the key that the receiver requires.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Deth {
    qkey: U32,
    reserved: u8,
    source: [u8; 3],
}

impl Deth {
    /// Creates a header with these fields.
    pub const fn new(qkey: u32, source: Qpn) -> Deth {
        Deth {
            qkey: U32::new(qkey),
            reserved: 0,
            source: source.bytes(),
        }
    }

    /// The bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// The queue key (Q_Key) of the receiver.
    pub const fn qkey(&self) -> u32 {
        self.qkey.get()
    }

    /// The queue pair that sent the packet.
    pub const fn source(&self) -> Qpn {
        Qpn::from_bytes(self.source)
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_deth))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        // From the general service queue pair, with its well-known key.
        let bytes = [0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01];
        let source = Qpn::from_bytes([0, 0, 1]);
        let deth = Deth::new(0x8001_0000, source);
        assert_eq!(deth.bytes(), bytes);
        assert_eq!((deth.qkey(), deth.source()), (0x8001_0000, source));
        // The reserved byte is no part of the number.
        let deth: Deth = zerocopy::transmute!([0, 0, 0, 0, 0xff, 0x12, 0x34, 0x56_u8]);
        assert_eq!(deth.source().get(), 0x0012_3456);
    }
}
