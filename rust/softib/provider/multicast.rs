// SPDX-License-Identifier: GPL-2.0-only

//! Attaching queue pairs to multicast groups, and detaching them.

use kernel::error::from_result;

use super::queue_pair::Pair;
use crate::{
    bindings,
    wire::{
        gid::Gid,
        lid::Lid, //
    }, //
};

/// Attaches a queue pair to a group (`attach_mcast`).
///
/// # Safety
///
/// Called by `ib_core` with a live queue pair and a valid GID.
pub(super) unsafe extern "C" fn attach(
    qp: *mut bindings::ib_qp,
    gid: *mut bindings::ib_gid,
    lid: u16,
) -> i32 {
    from_result(|| {
        // SAFETY: The queue pair is live, so it has our part; the GID is valid.
        let (pair, gid) = unsafe { (Pair::part(qp), Gid::from_bytes((*gid).raw)) };
        pair.hca.begin_command()?;
        pair.hca.faults.take_attachment()?;
        pair.hca.groups.attach(pair, gid, Lid::new(lid))?;
        Ok(0)
    })
}

/// Detaches a queue pair from a group (`detach_mcast`).
///
/// # Safety
///
/// Called by `ib_core` with a live queue pair and a valid GID.
pub(super) unsafe extern "C" fn detach(
    qp: *mut bindings::ib_qp,
    gid: *mut bindings::ib_gid,
    _lid: u16,
) -> i32 {
    from_result(|| {
        // SAFETY: The queue pair is live, so it has our part; the GID is valid.
        let (pair, gid) = unsafe { (Pair::part(qp), Gid::from_bytes((*gid).raw)) };
        // When a program's file is closed, the kernel ignores this error, but keeps the queue pair
        // and all that it uses for good.
        if !pair.domain.is_of_program() {
            pair.hca.check()?;
            pair.hca.faults.take_detachment()?;
        }
        pair.hca.groups.detach(pair.number, gid)?;
        Ok(0)
    })
}
