// SPDX-License-Identifier: GPL-2.0-only

//! The kernel's CRC-32, which uses what the processor has for it, and for short pieces the table.

use crate::{
    bindings,
    wire::icrc, //
};

/// The number of bytes from which on it pays to save the vector registers, which the processor's
/// way takes.
const VECTOR: usize = 48;

/// Continues the CRC of the bytes before with these.
#[inline]
pub(crate) fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    if bytes.len() < VECTOR {
        return icrc::crc32(crc, bytes);
    }
    // SAFETY: The bytes are valid for that length.
    unsafe { bindings::softib_crc32(crc, bytes.as_ptr(), bytes.len()) }
}
