// SPDX-License-Identifier: GPL-2.0-only

//! Posting work requests.

use kernel::prelude::*;

use super::{
    address,
    memory::Segment,
    queue_pair::Pair,
    shared_receive, //
};
use crate::{
    bindings,
    hca::queue_pair::{
        Datagram,
        Destination,
        QueuePair, //
    },
    wire::{
        immdt::ImmDt,
        qpn::Qpn, //
    }, //
};

/// `post_send`.
///
/// # Safety
///
/// Called with a live queue pair and a chain of valid requests of its kind.
pub(super) unsafe extern "C" fn send(
    qp: *mut bindings::ib_qp,
    mut next: *const bindings::ib_send_wr,
    bad: *mut *const bindings::ib_send_wr,
) -> i32 {
    // SAFETY: By the contract.
    let pair = unsafe { Pair::part(qp) };
    while !next.is_null() {
        // SAFETY: By the contract.
        let posted = unsafe { post_one(pair, next) };
        if let Err(error) = posted {
            // SAFETY: By the contract.
            unsafe { *bad = next };
            return error.to_errno();
        }
        // SAFETY: By the contract.
        next = unsafe { (*next).next };
    }
    0
}

/// Posts one request.
///
/// # Safety
///
/// As [`send`], for one request.
#[inline]
unsafe fn post_one(
    pair: &kernel::sync::Arc<QueuePair>,
    request: *const bindings::ib_send_wr,
) -> Result {
    if pair.kind.is_connected() {
        return Err(super::unsupported());
    }
    // SAFETY: The caller's promise.
    let datagram = unsafe { datagram(request) }?;
    pair.post_datagram(&datagram)
}

/// Reads a request of a datagram queue pair.
///
/// # Safety
///
/// As [`send`]; such a request is the first part of a `struct ib_ud_wr`.
unsafe fn datagram<'a>(request: *const bindings::ib_send_wr) -> Result<Datagram<'a>> {
    // SAFETY: The caller's promise.
    let (common, more) = unsafe { (&*request, &*request.cast::<bindings::ib_ud_wr>()) };
    let immediate = match common.opcode {
        bindings::ib_wr_opcode_IB_WR_SEND => None,
        // SAFETY: With this operation the union holds immediate data.
        bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM => Some(ImmDt::from_bytes(unsafe {
            common.ex.imm_data.to_ne_bytes()
        })),
        _ => return Err(EINVAL),
    };
    if more.ah.is_null() {
        return Err(EINVAL);
    }
    let flags = common.send_flags;
    Ok(Datagram {
        // SAFETY: Both members are as large as a number.
        request: unsafe { common.__bindgen_anon_1.wr_id },
        signalled: flags & bindings::ib_send_flags_IB_SEND_SIGNALED != 0,
        solicited: flags & bindings::ib_send_flags_IB_SEND_SOLICITED != 0,
        immediate,
        // SAFETY: The caller's promise.
        segments: unsafe { Segment::list(common.sg_list, common.num_sge) },
        to: Destination {
            // SAFETY: The caller's promise: the handle lives until the request is complete.
            address: unsafe { address::Handle::part(more.ah) },
            queue_pair: Qpn::new(more.remote_qpn).ok_or(EINVAL)?,
            qkey: more.remote_qkey,
            pkey_index: more.pkey_index,
        },
    })
}

/// Reads the parts of a chain of receives.
///
/// # Safety
///
/// The chain is valid.
unsafe fn receives(
    mut next: *const bindings::ib_recv_wr,
    bad: *mut *const bindings::ib_recv_wr,
    mut post: impl FnMut(u64, &[Segment]) -> Result,
) -> i32 {
    while !next.is_null() {
        // SAFETY: The caller's promise.
        let request = unsafe { &*next };
        // SAFETY: As above; both members of the union are as large as a number.
        let (id, segments) = unsafe {
            (
                request.__bindgen_anon_1.wr_id,
                Segment::list(request.sg_list, request.num_sge),
            )
        };
        if let Err(error) = post(id, segments) {
            // SAFETY: As above.
            unsafe { *bad = next };
            return error.to_errno();
        }
        next = request.next;
    }
    0
}

/// `post_recv`.
///
/// # Safety
///
/// Called with a live queue pair and a chain of valid requests.
pub(super) unsafe extern "C" fn receive(
    qp: *mut bindings::ib_qp,
    first: *const bindings::ib_recv_wr,
    bad: *mut *const bindings::ib_recv_wr,
) -> i32 {
    // SAFETY: By the contract.
    unsafe {
        let pair = Pair::part(qp);
        receives(first, bad, |id, segments| pair.post_receive(id, segments))
    }
}

/// `post_srq_recv`.
///
/// # Safety
///
/// Called with a live shared queue and a chain of valid requests.
pub(super) unsafe extern "C" fn receive_shared(
    srq: *mut bindings::ib_srq,
    first: *const bindings::ib_recv_wr,
    bad: *mut *const bindings::ib_recv_wr,
) -> i32 {
    // SAFETY: By the contract.
    unsafe {
        let queue = shared_receive::Queue::part(srq);
        receives(first, bad, |id, segments| queue.post(id, segments))
    }
}
