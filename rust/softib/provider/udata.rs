// SPDX-License-Identifier: GPL-2.0-only

//! Data of the driver that a program gives with a command, beside what all devices take
//! (`struct ib_udata`).
//!
//! softib has none. Bytes that are not zero may ask for what it does not know, so the command is
//! refused; zeros ask for nothing, however many there are. Room for a response is cleared.
//!
//! An operation that ends an object does not look at it, and never fails: `ib_core` calls it with
//! the data of the command that makes one, too, if that fails in the end. A program could have
//! changed them by then, and the object would stay.

use kernel::{
    error::to_result,
    prelude::*, //
};

use crate::bindings;

/// Refuses a command with data, and clears the response.
///
/// # Errors
///
/// `EOPNOTSUPP` for a byte that is not zero; `EFAULT` if the program does not have the memory.
///
/// # Safety
///
/// `udata` is null, or that of the command which calls the device.
pub(super) unsafe fn refuse(udata: *mut bindings::ib_udata) -> Result {
    // SAFETY: The caller's command has the data, if there is any.
    to_result(unsafe { bindings::softib_no_udata(udata) })
}

/// Refuses data as [`refuse`] does, for an operation that is given all attributes of its command.
///
/// # Errors
///
/// Those of [`refuse`].
///
/// # Safety
///
/// `attributes` is null, or those of the command which calls the device.
pub(super) unsafe fn refuse_in(attributes: *mut bindings::uverbs_attr_bundle) -> Result {
    // SAFETY: The caller's command has the attributes, if there are any.
    to_result(unsafe { bindings::softib_no_udata_in(attributes) })
}
