// SPDX-License-Identifier: GPL-2.0-only

//! The partitions of a port, 32 at a time: P_KeyTable (IBTA 14.2.5.7).

use zerocopy::byteorder::big_endian::U16;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::super::pkey::Pkey;
use super::{
    attribute,
    Attribute,
    DATA_LEN, //
};

/// The number of keys in a block.
pub const BLOCK: usize = 32;

const _: () = assert!(size_of::<PKeyTable>() == DATA_LEN);

/// A block of the P_Key table; the low half of the attribute modifier says which, the high half of
/// which port of a switch.
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
pub struct PKeyTable([U16; BLOCK]);

impl Attribute for PKeyTable {
    const ID: u16 = attribute::P_KEY_TABLE;
}

impl PKeyTable {
    /// A block of these keys, invalid ones where there are none.
    pub fn new(keys: [Pkey; BLOCK]) -> PKeyTable {
        PKeyTable(keys.map(|key| U16::new(key.get())))
    }

    /// The keys in the order of the block.
    pub fn keys(&self) -> [Pkey; BLOCK] {
        self.0.map(|key| Pkey::new(key.get()))
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_smp_partition))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn keys_on_the_wire() {
        let mut keys = [Pkey::new(0); BLOCK];
        if let Some(first) = keys.first_mut() {
            *first = Pkey::new(0x8001);
        }
        if let Some(last) = keys.last_mut() {
            *last = Pkey::new(0x7fff);
        }
        let bytes: [u8; DATA_LEN] = zerocopy::transmute!(PKeyTable::new(keys));
        assert!(bytes.starts_with(&[0x80, 0x01, 0]));
        assert!(bytes.ends_with(&[0, 0x7f, 0xff]));
        assert_eq!(PKeyTable::new(keys).keys(), keys);
    }
}
