// SPDX-License-Identifier: GPL-2.0-only

//! The module's parameters as `insmod` left them. What they mean is `ipoib/options.rs`'s.

use kernel::prelude::*;

use crate::{
    bindings,
    ipoib::options::{
        Devices,
        Given, //
    }, //
};

/// Reads the parameters for interfaces.
pub(crate) fn given() -> Given<'static> {
    // SAFETY: The parameters are set before the module's init runs and are read-only afterwards
    // (mode 0444). The string is NUL-terminated and lives as long as the module.
    unsafe {
        Given {
            send_queue_size: bindings::oxib_send_queue_size,
            recv_queue_size: bindings::oxib_recv_queue_size,
            tx_queues: bindings::oxib_tx_queues,
            max_connections: bindings::oxib_max_connections,
            connection_idle: bindings::oxib_connection_idle,
            ipoib: bindings::oxib_ipoib,
            devices: CStr::from_char_ptr(bindings::oxib_devices.cast_const().cast()).to_bytes(),
        }
    }
}

/// Returns the RDMA devices to use.
pub(crate) fn devices() -> Devices<'static> {
    Devices::new(given().devices)
}

/// Returns the largest number of unfinished connections of a listener.
///
/// # Errors
///
/// `EINVAL` for none at all, which the log names.
pub(crate) fn half_open() -> Result<u32> {
    // SAFETY: The parameter is set before the module's init runs and is read-only afterwards
    // (mode 0444).
    match unsafe { bindings::oxib_half_open } {
        0 => {
            pr_err!(
                "half_open=0: the connection manager does not start, as no listener could accept \
                 anything; give at least 1\n"
            );
            Err(EINVAL)
        }
        number => Ok(number),
    }
}

/// Parameters of the address cache.
pub(crate) struct Acm {
    /// Mode in which interfaces use it: a word.
    pub(crate) mode: &'static [u8],
    /// Whether peers' requests teach it.
    pub(crate) learn: bool,
    /// Whether, and how, programs get paths: a word.
    pub(crate) programs: &'static [u8],
    /// Most entries of a namespace.
    pub(crate) entries: u32,
}

/// Reads the address cache's parameters.
pub(crate) fn acm() -> Acm {
    // SAFETY: The parameters are set before the module's init runs and are read-only afterwards
    // (mode 0444). The strings are NUL-terminated and live as long as the module.
    unsafe {
        Acm {
            mode: CStr::from_char_ptr(bindings::oxib_acm.cast_const().cast()).to_bytes(),
            learn: bindings::oxib_acm_learn,
            programs: CStr::from_char_ptr(bindings::oxib_acm_programs.cast_const().cast())
                .to_bytes(),
            entries: bindings::oxib_acm_entries,
        }
    }
}
