// SPDX-License-Identifier: GPL-2.0-only

//! The kernel's CRC-32, which uses what the processor has for it.

use crate::bindings;

/// Continues the CRC of the bytes before with these.
#[inline]
pub(crate) fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    // SAFETY: The bytes are valid for that length.
    unsafe { bindings::softib_crc32(crc, bytes.as_ptr(), bytes.len()) }
}
