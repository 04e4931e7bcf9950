// SPDX-License-Identifier: GPL-2.0-only

//! A buffer that is filled header by header.

/// The rest of a buffer that is written from its beginning.
pub(super) struct Writer<'a> {
    rest: &'a mut [u8],
}

impl<'a> Writer<'a> {
    /// Creates a writer at the beginning of the buffer.
    pub(super) fn new(rest: &'a mut [u8]) -> Writer<'a> {
        Writer { rest }
    }

    /// Writes these bytes, if there are any. `None` if the buffer has no room for them.
    #[inline]
    pub(super) fn put<const LEN: usize>(&mut self, bytes: Option<[u8; LEN]>) -> Option<()> {
        if let Some(bytes) = bytes {
            let (room, rest) = core::mem::take(&mut self.rest).split_first_chunk_mut()?;
            *room = bytes;
            self.rest = rest;
        }
        Some(())
    }

    pub(super) fn put_slice(&mut self, bytes: &[u8]) -> Option<()> {
        let (room, rest) = core::mem::take(&mut self.rest).split_at_mut_checked(bytes.len())?;
        room.copy_from_slice(bytes);
        self.rest = rest;
        Some(())
    }
}
