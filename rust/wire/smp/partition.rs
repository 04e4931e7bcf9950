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

use super::{
    attribute,
    Attribute,
    DATA_LEN, //
};

/// How many keys there are in a block.
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
pub struct PKeyTable(pub [U16; BLOCK]);

impl Attribute for PKeyTable {
    const ID: u16 = attribute::P_KEY_TABLE;
}
