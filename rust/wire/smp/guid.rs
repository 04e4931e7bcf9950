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

/// How many GUIDs there are in a block.
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
pub struct GuidInfo(pub [U64; BLOCK]);

impl Attribute for GuidInfo {
    const ID: u16 = attribute::GUID_INFO;
}
