// SPDX-License-Identifier: GPL-2.0-only

//! The extended acknowledgement of a netlink request: the text that goes with an error's number.

use core::fmt::Write;
use core::marker::PhantomData;

use kernel::{
    fmt,
    prelude::*, //
};

use crate::bindings;

/// Longest text: what the kernel keeps for one that is not a constant, less its NUL.
pub(crate) const LONGEST: usize = 79;

/// The place for the text of an extended acknowledgement.
///
/// # Invariants
///
/// Null (the request did not come by netlink), or valid for `'a` and used by this thread alone.
pub(crate) struct ExtendedAck<'a>(*mut bindings::netlink_ext_ack, PhantomData<&'a mut ()>);

impl ExtendedAck<'_> {
    /// Wraps the kernel's structure of a request.
    ///
    /// # Safety
    ///
    /// Null, or valid and this thread's for as long as the value lives.
    pub(super) unsafe fn from_raw(raw: *mut bindings::netlink_ext_ack) -> Self {
        // INVARIANT: The caller gives null, or a structure that is valid and this thread's while
        // the value lives.
        Self(raw, PhantomData)
    }

    /// Creates the value for a request that did not come by netlink: its text is discarded.
    pub(crate) fn none() -> Self {
        // INVARIANT: Null.
        Self(core::ptr::null_mut(), PhantomData)
    }

    /// Says why the request is refused with `error`, which is returned. Text beyond 79 bytes is
    /// cut.
    pub(crate) fn refuse(&mut self, error: Error, text: fmt::Arguments<'_>) -> Error {
        self.note(text);
        error
    }

    /// Says something of a request: of one that succeeds, a warning. Text beyond 79 bytes is cut.
    pub(crate) fn note(&mut self, text: fmt::Arguments<'_>) {
        let mut line = Line {
            bytes: [0; LONGEST],
            used: 0,
        };
        // Only a text that is too long fails, and that is cut.
        let _ = line.write_fmt(text);
        // SAFETY: By the type invariant null, which the macro behind it checks, or valid and
        // ours; the text is `used` bytes, copied.
        unsafe {
            bindings::oxib_extended_ack(self.0, line.bytes.as_ptr().cast(), line.used as i32)
        };
    }
}

/// Text of limited length.
struct Line {
    bytes: [u8; LONGEST],
    used: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = self.bytes.get_mut(self.used..).unwrap_or_default();
        let fitting = core::cmp::min(room.len(), text.len());
        for (slot, byte) in room.iter_mut().zip(text.bytes()) {
            *slot = byte;
        }
        self.used += fitting;
        if fitting == text.len() {
            Ok(())
        } else {
            Err(core::fmt::Error)
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_extack)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut() {
        let mut line = Line {
            bytes: [b'.'; LONGEST],
            used: 0,
        };
        for _ in 0..7 {
            assert!(line.write_str("0123456789").is_ok());
        }
        assert!(line.write_str("0123456789").is_err());
        assert_eq!(line.used, LONGEST);
        assert_eq!(line.bytes.last(), Some(&b'8'));
        assert!(line.write_str("more").is_err());
        assert_eq!(line.used, LONGEST);
    }
}
