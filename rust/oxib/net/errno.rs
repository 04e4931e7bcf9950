// SPDX-License-Identifier: GPL-2.0-only

//! Error numbers that the `kernel` crate has no name for.

use kernel::error::Error;

use crate::bindings;

/// `EOPNOTSUPP`: this device cannot do that.
pub(crate) fn not_supported() -> Error {
    Error::from_errno(-(bindings::EOPNOTSUPP as i32))
}

/// `ENOBUFS`: what came was more than there was room for.
pub(crate) fn no_buffers() -> Error {
    Error::from_errno(-(bindings::ENOBUFS as i32))
}

/// `ENOTUNIQ`: there is one of that name.
pub(crate) fn not_unique() -> Error {
    Error::from_errno(-(bindings::ENOTUNIQ as i32))
}
