// SPDX-License-Identifier: GPL-2.0-only

//! The address cache's C interface (bindings/acm_export.h).

use kernel::{
    error::from_result,
    prelude::*, //
};

use crate::{
    acm::Cache,
    bindings,
    hash_table::Key,
    net::namespace::Handle,
    wire::qpn::Qpn, //
};

/// Looks an address up.
///
/// # Safety
///
/// `net` is valid, `address` leads to 16 bytes, `known` to room for the answer.
#[no_mangle]
pub(crate) unsafe extern "C" fn oxib_acm_find(
    net: *mut bindings::net,
    address: *const u8,
    known: *mut bindings::oxib_acm_known,
) -> i32 {
    from_result(|| {
        // SAFETY: `address` leads to 16 bytes.
        let key = Key(unsafe { *address.cast() });
        // SAFETY: `net` is valid, and stays so during the call.
        let found = unsafe { Handle::<Cache>::find(net, |cache, rcu| cache.find_key(&key, rcu)) };
        let found = found.ok_or(ENODEV)?.ok_or(ENOENT)?;
        // SAFETY: `known` leads to room for the answer.
        unsafe {
            known.write(bindings::oxib_acm_known {
                gid: found.gid.bytes(),
                qpn: found.qpn.map_or(0, Qpn::get),
            })
        };
        Ok(0)
    })
}
