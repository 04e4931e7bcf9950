// SPDX-License-Identifier: GPL-2.0-only

//! Memory that a device reads or writes.

use core::ptr::NonNull;

use kernel::prelude::*;

use super::device::Device;
use crate::bindings;

/// The owner of a packet to be sent, in several pieces of memory.
///
/// # Safety
///
/// The memory that [`Self::piece`] names stays where it is, readable and unchanged, while the
/// value lives, wherever the value itself is moved to.
pub(crate) unsafe trait Pieces {
    /// Number of pieces of memory.
    fn pieces(&self) -> usize;

    /// Address and length in bytes of piece `index`; if there is no such piece, the first one's
    /// address and a length of 0.
    fn piece(&self, index: usize) -> (NonNull<u8>, usize);

    /// Length of all of them.
    fn length(&self) -> usize;

    /// Ends the value after it was sent. `budget` is that of the poll this happens in, 0 outside.
    fn done(self, budget: i32);

    /// Leaves the memory to a device that may still read it: it is never freed. What else the
    /// value holds is let go.
    fn leave(self);
}

/// Memory that a device may write, mapped for it, with one owner.
///
/// # Safety
///
/// `length` bytes from `dma_address` on are mapped for the device and owned by the value while it
/// lives; after [`Self::leave`] for ever. The mapping does not change.
pub(crate) unsafe trait ReceiveMemory {
    /// The device's address of the memory.
    fn dma_address(&self) -> u64;

    /// Length of the memory in bytes.
    fn length(&self) -> usize;

    /// Bytes of the memory and of what surrounds it, at most `len` from `offset` on, to be
    /// written.
    fn bytes_mut(&mut self, offset: usize, len: usize) -> &mut [u8];

    /// Leaves the memory to a device that may still write into it: it is never freed, nor
    /// unmapped.
    fn leave(self);
}

/// Maps `length` bytes from `address` on for reading by `device`.
///
/// # Errors
///
/// `ENOMEM`.
///
/// # Safety
///
/// The memory stays as long as it is mapped: until [`unmap`] with the same values.
#[inline]
pub(super) unsafe fn map(device: &Device, address: NonNull<u8>, length: usize) -> Result<u64> {
    // SAFETY: The device is valid, the memory the caller's to lend.
    let mapped =
        unsafe { bindings::oxib_dma_map(device.as_raw(), address.as_ptr().cast(), length) };
    // SAFETY: Compares a number.
    if unsafe { bindings::oxib_dma_mapping_error(device.as_raw(), mapped) } {
        return Err(ENOMEM);
    }
    Ok(mapped)
}

/// Unmaps memory, so that the device must not touch it any more.
///
/// # Safety
///
/// `mapped` came from [`map`] on the same device with the same `length`.
#[inline]
pub(super) unsafe fn unmap(device: &Device, mapped: u64, length: usize) {
    // SAFETY: `mapped` came from `map` on this device with this length, as the caller guarantees.
    unsafe { bindings::oxib_dma_unmap(device.as_raw(), mapped, length) }
}
