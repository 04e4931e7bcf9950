// SPDX-License-Identifier: GPL-2.0-only

//! The traps 129, 130 and 131: a link that does not work well.

use zerocopy::byteorder::big_endian::U16;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::super::super::lid::Lid;

/// The port that the traps 129, 130 and 131 report.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct PortFault {
    reserved: U16,
    lid: U16,
    port: u8,
}

impl PortFault {
    /// Creates the details for that port.
    pub const fn new(lid: Lid, port: u8) -> PortFault {
        PortFault {
            reserved: U16::ZERO,
            lid: U16::new(lid.get()),
            port,
        }
    }
}

const _: () = assert!(size_of::<PortFault>() == 5);
