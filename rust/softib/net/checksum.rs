// SPDX-License-Identifier: GPL-2.0-only

//! The kernel's checksum of the Internet's protocols, which uses what the processor has for it.

use crate::bindings;

/// The ones' complement sum of bytes, as 16-bit numbers in network order.
#[inline]
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    // SAFETY: The bytes are valid for that length, which is that of a packet at most.
    unsafe { bindings::softib_sum(bytes.as_ptr(), bytes.len() as u32) }
}
