// SPDX-License-Identifier: GPL-2.0-only

//! Inline data of programs' sends (IBTA 11.4.1.1): bytes that the send takes along when it is
//! posted.
//!
//! Requests of the kernel's consumers name the kernel's memory. Those of programs name addresses of
//! the program, so the bytes are copied first, where one may sleep.

use kernel::prelude::*;

use crate::{
    bindings,
    hca::{
        queue_pair::QueuePair,
        region::ALL_MEMORY, //
    }, //
};

/// Bytes that a request of a program takes along.
pub(super) struct InlineData(KVec<u8>);

impl InlineData {
    /// Copies the data of a request of a program, if it is inline, and lets the request name the
    /// copy instead. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is more than the queue pair takes; `EFAULT` if the program has no such
    /// memory; `ENOMEM`.
    ///
    /// # Safety
    ///
    /// The request is valid, its list is nobody else's, and it is not used after the value returned
    /// is dropped.
    pub(super) unsafe fn take(pair: &QueuePair, request: &bindings::ib_send_wr) -> Result<Self> {
        let mut data = Self(KVec::new());
        let count = usize::try_from(request.num_sge)?;
        if request.send_flags & bindings::ib_send_flags_IB_SEND_INLINE == 0 || count == 0 {
            return Ok(data);
        }
        // SAFETY: The caller gives a valid list, which nobody else uses.
        let list = unsafe { core::slice::from_raw_parts_mut(request.sg_list, count) };
        for segment in &mut *list {
            data.append(pair, segment)?;
            segment.length = 0;
            segment.lkey = ALL_MEMORY;
        }
        if let Some(first) = list.first_mut() {
            first.addr = data.0.as_ptr() as u64;
            first.length = u32::try_from(data.0.len())?;
        }
        Ok(data)
    }

    /// Copies a piece from the program.
    fn append(&mut self, pair: &QueuePair, segment: &bindings::ib_sge) -> Result {
        let (done, more) = (self.0.len(), segment.length as usize);
        if done + more > pair.inline as usize {
            return Err(EINVAL);
        }
        self.0.resize(done + more, 0, GFP_KERNEL)?;
        let room = self.0.get_mut(done..).ok_or(EINVAL)?;
        // SAFETY: The room has so many bytes; the address may be any.
        let copied = unsafe {
            bindings::softib_copy_from_program(room.as_mut_ptr().cast(), segment.addr, more)
        };
        match copied {
            true => Ok(()),
            false => Err(EFAULT),
        }
    }
}
