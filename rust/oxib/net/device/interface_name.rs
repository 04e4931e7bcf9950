// SPDX-License-Identifier: GPL-2.0-only

//! Names of interfaces.

use kernel::{
    fmt,
    str::BStr, //
};

use crate::bindings;

/// An interface's name (`ib0`), with zeros behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name(pub(super) [u8; Name::LEN]);

impl Name {
    /// Longest name in bytes, with the NUL at its end.
    pub(super) const LEN: usize = bindings::IFNAMSIZ as usize;

    fn bytes(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// Copies the name, cut to the room there is; returns how long it is then.
    pub(crate) fn copy_to(&self, out: &mut [u8]) -> usize {
        let length = core::cmp::min(out.len(), self.bytes().len());
        for (slot, byte) in out.iter_mut().zip(self.bytes()) {
            *slot = *byte;
        }
        length
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(BStr::from_bytes(self.bytes()), f)
    }
}
