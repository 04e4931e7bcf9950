// SPDX-License-Identifier: GPL-2.0-only

//! What better or worse hardware a device stands for.

use kernel::{
    prelude::*,
    str::CString, //
};

/// The most that can be chosen of [`Options::max_inline`].
pub(crate) const MAX_INLINE: u32 = 1024;

/// The options of a device.
pub(crate) struct Options {
    /// Bytes of a send that may stand in the request itself.
    pub(crate) max_inline: u32,
    /// The number of the largest payload: 1 for 256 bytes to 5 for 4096.
    pub(crate) mtu: u8,
    /// The net device of a second port.
    pub(crate) port2: Option<CString>,
}

impl Options {
    /// Of a device of which nothing is said.
    pub(crate) const DEFAULT: Self = Self {
        max_inline: 256,
        mtu: 5,
        port2: None,
    };

    /// A copy.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        let port2 = self.port2.as_deref().map(CString::try_from).transpose()?;
        Ok(Self { port2, ..*self })
    }
}
