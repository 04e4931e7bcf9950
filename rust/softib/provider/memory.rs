// SPDX-License-Identifier: GPL-2.0-only

//! The memory that work requests name.
//!
//! A device usually does "virtual DMA": an address in a work request is one of the kernel's own.
//! With the option `dma` consumers map their memory for the device, as for hardware. Memory is
//! mapped one to one then, so each of its addresses is at the same distance from the kernel's: the
//! base of the direct map.

use core::sync::atomic::{
    AtomicU64,
    Ordering, //
};

use kernel::prelude::*;

use super::pd::Domain;
use crate::{
    bindings,
    hca::region::ALL_MEMORY, //
};

/// Returns the distance from the addresses of a device with consumers that map their memory to
/// those of the kernel.
pub(crate) fn direct_map() -> u64 {
    // SAFETY: Returns a constant.
    unsafe { bindings::softib_direct_map() }
}

/// Returns a random number.
pub(crate) fn random() -> u32 {
    // SAFETY: The function has no preconditions.
    unsafe { bindings::softib_random() }
}

/// A piece of memory in a work request, under a key that says how its address is meant.
///
/// # Invariants
///
/// A consumer gave it with a request that is not completed. If the consumer is in the kernel and
/// the key is that of all memory, or the send is inline, its bytes are the device's to read and
/// write until then (the contract of `ib_post_send` and `ib_post_recv`). What a program gives may
/// be anything, but the data of its inline sends has been copied ([`InlineData`]).
///
/// [`InlineData`]: super::inline_data::InlineData
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Segment(bindings::ib_sge);

impl Segment {
    /// A segment without bytes, under key 0.
    pub(crate) const NONE: Self = Self(bindings::ib_sge {
        addr: 0,
        length: 0,
        lkey: 0,
    });

    /// Returns the segments of a work request on a queue that was made for requests of `most`
    /// segments, or of one.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are more: then none is looked at.
    ///
    /// # Safety
    ///
    /// `list` has `count` valid entries during `'a`, of a request that is being posted, unless
    /// these are too many.
    #[inline]
    pub(super) unsafe fn list<'a>(
        list: *const bindings::ib_sge,
        count: i32,
        most: u32,
    ) -> Result<&'a [Self]> {
        let count = usize::try_from(count).unwrap_or(0);
        if count == 0 {
            return Ok(&[]);
        }
        if count > most.max(1) as usize {
            return Err(EINVAL);
        }
        // INVARIANT: The caller's promise.
        // SAFETY: The caller has `count` valid entries at `list` during `'a`; `Segment` has the
        // layout of the C type.
        Ok(unsafe { core::slice::from_raw_parts(list.cast(), count) })
    }

    /// Returns the address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.0.addr
    }

    /// Returns the length in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.length as usize
    }

    /// Returns the local key of the memory.
    #[inline]
    pub(crate) fn key(&self) -> u32 {
        self.0.lkey
    }

    /// Returns the kernel's memory of a segment under the key of all memory, for a device with
    /// addresses `base` below the kernel's. `None` for one under another key, or of a program,
    /// as the domain of its queue says.
    #[inline]
    pub(crate) fn memory(&self, domain: Domain, base: u64) -> Option<Memory> {
        if self.key() != ALL_MEMORY || domain.is_of_program() {
            return None;
        }
        // INVARIANT: That of the segment.
        Some(Memory {
            address: self.0.addr.wrapping_add(base),
            length: self.len(),
        })
    }

    /// Returns the kernel's memory of a segment of an inline send, which names the kernel's own
    /// addresses in any case.
    #[inline]
    pub(crate) fn inline_memory(&self) -> Memory {
        // INVARIANT: That of the segment.
        Memory {
            address: self.0.addr,
            length: self.len(),
        }
    }
}

/// Words that are copied in one go.
const WORDS: usize = 8;

/// Copies bytes in ascending order, the last one last: programs wait for the last byte of a buffer
/// that a peer writes, and then read all of it. `memcpy` does not promise an order, and user-mode
/// Linux's copies backwards. It copies in words: where this runs most, in an emulator, a string
/// instruction takes a step for each byte. Where both pieces overlap, which of the bytes arrive is
/// as uncertain as with a device that writes into what it reads.
///
/// # Safety
///
/// `length` bytes may be read at `from` and written at `to`.
#[inline]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, length: usize) {
    // Executes nothing. The compiler neither moves a write across it, nor makes `memcpy` or a
    // string instruction of a loop with this in it; the processor (x86) keeps the order of writes.
    // SAFETY: It is empty.
    let apart = || unsafe { core::arch::asm!("", options(nostack, preserves_flags)) };
    let mut done = 0;
    while length - done >= size_of::<[u64; WORDS]>() {
        // SAFETY: So many bytes may be read there, by the caller's promise.
        let words = unsafe { from.add(done).cast::<[u64; WORDS]>().read_unaligned() };
        for word in words {
            // SAFETY: So many bytes may be written here, by the caller's promise.
            unsafe { to.add(done).cast::<u64>().write_unaligned(word) };
            done += size_of::<u64>();
            apart();
        }
    }
    while length - done >= size_of::<u64>() {
        // SAFETY: These bytes may be read there and written here, by the caller's promise.
        unsafe {
            let word = from.add(done).cast::<u64>().read_unaligned();
            to.add(done).cast::<u64>().write_unaligned(word);
        }
        done += size_of::<u64>();
        apart();
    }
    while done < length {
        // SAFETY: This byte may be read there and written here, by the caller's promise.
        unsafe { to.add(done).write(from.add(done).read()) };
        done += 1;
        apart();
    }
}

/// Bytes of the kernel's memory that the device may read and write.
///
/// # Invariants
///
/// The bytes are mapped, and the owner gave them to the device for as long as the value is used:
/// with a work request that is not completed, or by a registration that was not taken back.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    address: u64,
    length: usize,
}

impl Memory {
    /// Creates the value for `length` bytes at an address.
    ///
    /// # Safety
    ///
    /// The type's invariant.
    pub(super) unsafe fn new(address: u64, length: usize) -> Self {
        // INVARIANT: The caller's promise.
        Self { address, length }
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// A part; `None` if it is not inside.
    #[inline]
    pub(crate) fn part(&self, offset: usize, length: usize) -> Option<Self> {
        let end = offset.checked_add(length)?;
        if end > self.length {
            return None;
        }
        // INVARIANT: A part of what the invariant speaks of.
        Some(Self {
            address: self.address.checked_add(offset as u64)?,
            length,
        })
    }

    /// Copies the bytes from the beginning into `out`, as many as both have.
    #[inline]
    pub(crate) fn read(&self, out: &mut [u8]) {
        let length = out.len().min(self.length);
        // SAFETY: By the type invariant the bytes may be read. Writes of their owner at the same
        // time are a matter between it and the receiver of the packet, as with any device:
        // nothing here depends on the values.
        unsafe {
            copy_bytes(self.address as usize as *const u8, out.as_mut_ptr(), length);
        }
    }

    /// Copies the bytes from the beginning to the beginning of `to`, as many as both have.
    #[inline]
    pub(crate) fn copy(&self, to: &Self) {
        let length = self.length.min(to.length);
        let (from, to) = (self.address as usize, to.address as usize);
        // SAFETY: By the type invariant these bytes may be read and those of `to` written, also
        // if they are the same; no Rust reference to them exists.
        unsafe { copy_bytes(from as *const u8, to as *mut u8, length) };
    }

    /// Replaces the eight bytes at the beginning by what `change` makes of them, atomically, and
    /// returns the old ones. `None` if there are fewer bytes, or their address is not that of an
    /// aligned word.
    pub(crate) fn update(&self, change: impl Fn(u64) -> u64) -> Option<u64> {
        let word = self.address as usize as *mut u64;
        if self.length < size_of::<u64>() || !word.is_aligned() {
            return None;
        }
        // SAFETY: By the type invariant the bytes may be read and written, and they are an
        // aligned word.
        let word = unsafe { AtomicU64::from_ptr(word) };
        let changed =
            word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some(change(old)));
        changed.ok()
    }

    /// Copies `data` to the beginning, as much as there is room for.
    #[inline]
    pub(crate) fn write(&self, data: &[u8]) {
        let length = data.len().min(self.length);
        // SAFETY: By the type invariant the bytes may be written; no Rust reference to them exists.
        unsafe {
            copy_bytes(data.as_ptr(), self.address as usize as *mut u8, length);
        }
    }
}
