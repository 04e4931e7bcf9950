// SPDX-License-Identifier: GPL-2.0-only

//! Trap 144: a node tells what has changed of itself.

use zerocopy::byteorder::big_endian::{
    U16,
    U32, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::super::super::lid::Lid;

/// The changes that trap 144 reports.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct LocalChanges {
    reserved: U16,
    lid: U16,
    reserved2: u8,
    other: u8,
    capability_mask: U32,
    flags: U16,
}

impl LocalChanges {
    /// The description of the node has changed.
    pub const DESCRIPTION: u16 = 1 << 0;

    /// The capability mask of that port is this, or, if `flags` are not 0, that is as it was and
    /// these other things have changed.
    pub const fn new(lid: Lid, capability_mask: u32, flags: u16) -> LocalChanges {
        LocalChanges {
            reserved: U16::ZERO,
            lid: U16::new(lid.get()),
            reserved2: 0,
            other: (flags != 0) as u8,
            capability_mask: U32::new(capability_mask),
            flags: U16::new(flags),
        }
    }

    /// The capability mask of the port.
    pub const fn capability_mask(&self) -> u32 {
        self.capability_mask.get()
    }

    /// Bits for the other things that have changed.
    pub const fn flags(&self) -> u16 {
        self.flags.get()
    }
}

const _: () = assert!(size_of::<LocalChanges>() == 12);
