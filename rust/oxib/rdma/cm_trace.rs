// SPDX-License-Identifier: GPL-2.0-only

//! The connection manager's tracepoints (`/sys/kernel/tracing/events/oxib_cm`). One that is off
//! costs a jump that is not taken.

use kernel::prelude::*;

use super::{
    device::Name,
    port::PortNumber, //
};

/// Returns whether the tracepoint is on, by a static key.
#[cfg(CONFIG_TRACEPOINTS)]
macro_rules! enabled {
    ($tracepoint:ident) => {
        // SAFETY: The tracepoint is defined by C (bindings/cm_trace.c), with its key.
        unsafe {
            kernel::jump_label::static_branch_unlikely!(
                $crate::bindings::$tracepoint,
                kernel::bindings::tracepoint,
                key
            )
        }
    };
}

/// Traces a connection's change of state (`enum ib_cm_state`).
#[inline(always)]
pub(crate) fn state(local: u32, remote: u32, old: u32, new: u32) {
    #[cfg(CONFIG_TRACEPOINTS)]
    if enabled!(__tracepoint_oxib_cm_state) {
        // SAFETY: Takes plain numbers.
        unsafe { crate::bindings::rust_do_trace_oxib_cm_state(local, remote, old, new) };
    }
    #[cfg(not(CONFIG_TRACEPOINTS))]
    let _ = (local, remote, old, new);
}

/// A message, for the tracepoints.
pub(crate) struct Message {
    /// The name of the device where it comes or goes.
    pub(crate) device: Name,
    /// The device's port where the message comes or goes.
    pub(crate) port: PortNumber,
    /// Its attribute id (IBTA 16.7.1).
    pub(crate) attribute: u16,
    /// The sender's name for the connection.
    pub(crate) sender: u32,
    /// The receiver's name for the connection; what follows the sender's in a REQ and for SIDR.
    pub(crate) receiver: u32,
}

/// A message is sent.
#[inline(always)]
pub(crate) fn send(message: impl FnOnce() -> Message) {
    #[cfg(CONFIG_TRACEPOINTS)]
    if enabled!(__tracepoint_oxib_cm_send) {
        let message = message();
        // SAFETY: The name is NUL-terminated and copied; the rest are plain numbers.
        unsafe {
            crate::bindings::rust_do_trace_oxib_cm_send(
                message.device.text().as_char_ptr(),
                message.port.get(),
                message.attribute,
                message.sender,
                message.receiver,
            );
        }
    }
    #[cfg(not(CONFIG_TRACEPOINTS))]
    let _ = message;
}

/// A message was received.
#[inline(always)]
pub(crate) fn receive(message: impl FnOnce() -> Message) {
    #[cfg(CONFIG_TRACEPOINTS)]
    if enabled!(__tracepoint_oxib_cm_receive) {
        let message = message();
        // SAFETY: The name is NUL-terminated and copied; the rest are plain numbers.
        unsafe {
            crate::bindings::rust_do_trace_oxib_cm_receive(
                message.device.text().as_char_ptr(),
                message.port.get(),
                message.attribute,
                message.sender,
                message.receiver,
            );
        }
    }
    #[cfg(not(CONFIG_TRACEPOINTS))]
    let _ = message;
}

/// Traces a rejection, by us (`ours`) or by the peer.
#[inline(always)]
pub(crate) fn reject(local: u32, remote: u32, reason: u16, ours: bool) {
    #[cfg(CONFIG_TRACEPOINTS)]
    if enabled!(__tracepoint_oxib_cm_reject) {
        // SAFETY: Takes plain numbers.
        unsafe { crate::bindings::rust_do_trace_oxib_cm_reject(local, remote, reason, ours) };
    }
    #[cfg(not(CONFIG_TRACEPOINTS))]
    let _ = (local, remote, reason, ours);
}
