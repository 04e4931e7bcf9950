// SPDX-License-Identifier: GPL-2.0-only

//! Reading and writing the text of the files.

use core::fmt::{
    self,
    Write as _, //
};

use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// A file's page, as far as it is written.
pub(super) struct Page<'a> {
    page: &'a mut [u8; PAGE_SIZE],
    length: usize,
}

impl<'a> Page<'a> {
    pub(super) fn new(page: &'a mut [u8; PAGE_SIZE]) -> Self {
        Self { page, length: 0 }
    }

    /// Returns the number of bytes written so far.
    pub(super) fn len(&self) -> usize {
        self.length
    }
}

impl fmt::Write for Page<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let room = self.page.get_mut(self.length..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// Writes a file's text; how long it is.
///
/// # Errors
///
/// `EOVERFLOW` if it does not fit.
pub(super) fn write(page: &mut [u8; PAGE_SIZE], text: fmt::Arguments<'_>) -> Result<usize> {
    let mut page = Page::new(page);
    page.write_fmt(text).map_err(|_| EOVERFLOW)?;
    Ok(page.len())
}

/// The most bytes that a write passes on at a time: the rest of a longer text would come as
/// another write (`fs/configfs/file.c`).
const LONGEST: usize = PAGE_SIZE - 1;

/// The reason for which what was written is no text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoText {
    Long,
    Bytes,
}

impl fmt::Display for NoText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Long => write!(f, "takes less than {LONGEST} bytes"),
            Self::Bytes => f.write_str("takes text, and that is none"),
        }
    }
}

/// Returns the text that was written to a file, without the white space around it.
///
/// # Errors
///
/// If it is no text, or may be only the first part of it.
pub(super) fn read(page: &[u8]) -> Result<&str, NoText> {
    if page.len() >= LONGEST {
        return Err(NoText::Long);
    }
    core::str::from_utf8(page)
        .map(str::trim)
        .map_err(|_| NoText::Bytes)
}

/// A number, with `0x` before it in hexadecimal.
///
/// # Errors
///
/// `EINVAL` if it is none.
pub(super) fn number(text: &str) -> Result<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    }
    .map_err(|_| EINVAL)
}
