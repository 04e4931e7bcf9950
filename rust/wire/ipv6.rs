// SPDX-License-Identifier: GPL-2.0-only

//! The fixed IPv6 header (RFC 8200 §3).

use zerocopy::byteorder::big_endian::U16;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

/// The next header of ICMPv6 (RFC 4443 §1).
pub(super) const ICMPV6: u8 = 58;

/// The IPv6 header (RFC 8200 §3), 40 bytes.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Ipv6 {
    /// Version, traffic class and flow label.
    pub(super) version: [u8; 4],
    /// Bytes after the header.
    pub(super) length: U16,
    pub(super) next: u8,
    pub(super) hops: u8,
    pub(super) source: [u8; 16],
    pub(super) destination: [u8; 16],
}
