// SPDX-License-Identifier: GPL-2.0-only

//! Shared receive queues, as `ib_core` creates and destroys them.

use core::ptr::NonNull;

use kernel::{
    error::from_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    device,
    object::Object,
    pd::Domain,
    udata, //
};
use crate::{
    bindings,
    hca::receive::SharedReceiveQueue, //
};

/// A shared receive queue of the kernel with ours.
pub(super) type Queue = Object<bindings::ib_srq, Arc<SharedReceiveQueue>>;

/// The kernel's queue, to call its consumer.
///
/// # Invariants
///
/// The queue is valid while a queue pair uses it, and only they raise events.
pub(crate) struct Handle(NonNull<bindings::ib_srq>);

// SAFETY: The consumer may be called from any thread.
unsafe impl Send for Handle {}
// SAFETY: The consumer may be called from several threads at once.
unsafe impl Sync for Handle {}

impl Handle {
    /// Tells the consumer that fewer receives are left than its limit. Soft interrupt context.
    pub(crate) fn limit_reached(&self) {
        // SAFETY: By the type invariant valid.
        unsafe {
            bindings::softib_notify_srq(
                self.0.as_ptr(),
                bindings::ib_event_type_IB_EVENT_SRQ_LIMIT_REACHED,
            );
        }
    }
}

/// Creates a shared receive queue (`create_srq`).
///
/// # Safety
///
/// Called by `ib_core` with a new queue and valid attributes.
pub(super) unsafe extern "C" fn create(
    srq: *mut bindings::ib_srq,
    init: *mut bindings::ib_srq_init_attr,
    data: *mut bindings::ib_udata,
) -> i32 {
    from_result(|| {
        // SAFETY: `ib_core` gives the data of the command, or null.
        unsafe { udata::refuse(data) }?;
        // SAFETY: The attributes are valid and the caller's alone; `ib_core` has filled in the
        // queue's device, one of ours, and its live domain.
        let (init, domain, hca) = unsafe {
            (
                &mut *init,
                Domain::of((*srq).pd),
                device::hca((*srq).device),
            )
        };
        hca.begin_command()?;
        let is_basic = init.srq_type == bindings::ib_srq_type_IB_SRQT_BASIC;
        if !hca.options.srq || !is_basic {
            return Err(super::unsupported());
        }
        let attributes = &mut init.attr;
        if attributes.max_wr == 0
            || attributes.max_wr > hca.options.max_wr
            || attributes.max_sge > hca.options.max_sge
        {
            return Err(EINVAL);
        }
        let share = hca.shared_queues.take()?;
        attributes.max_sge = attributes.max_sge.max(1);
        // INVARIANT: The queue outlives its queue pairs: `ib_core` counts them.
        let handle = Handle(NonNull::new(srq).ok_or(EINVAL)?);
        let queue = SharedReceiveQueue::new(domain, handle, attributes.max_wr, attributes.max_sge)?;
        // SAFETY: `ib_core` allocated the queue with room for our part, and gives it here for the
        // first time.
        unsafe { Queue::create(srq, queue) };
        share.keep();
        Ok(0)
    })
}

/// Changes the limit of a shared receive queue (`modify_srq`); the size stays.
///
/// # Safety
///
/// Called by `ib_core` with a live queue and valid attributes.
pub(super) unsafe extern "C" fn modify(
    srq: *mut bindings::ib_srq,
    attributes: *mut bindings::ib_srq_attr,
    mask: bindings::ib_srq_attr_mask,
    data: *mut bindings::ib_udata,
) -> i32 {
    from_result(|| {
        // SAFETY: `ib_core` gives the data of the command, or null.
        unsafe { udata::refuse(data) }?;
        // SAFETY: The queue is live, so `create` has written our part; the attributes are valid.
        let (queue, attributes) = unsafe { (Queue::part(srq), &*attributes) };
        // SAFETY: A live queue names its device, which is one of ours.
        unsafe { device::hca((*srq).device) }.begin_command()?;
        if mask & bindings::ib_srq_attr_mask_IB_SRQ_MAX_WR != 0 {
            return Err(super::unsupported());
        }
        if mask & bindings::ib_srq_attr_mask_IB_SRQ_LIMIT != 0 {
            queue.set_limit(attributes.srq_limit)?;
        }
        Ok(0)
    })
}

/// Returns the attributes of a shared receive queue (`query_srq`).
///
/// # Safety
///
/// Called by `ib_core` with a live queue and room for the attributes.
pub(super) unsafe extern "C" fn query(
    srq: *mut bindings::ib_srq,
    out: *mut bindings::ib_srq_attr,
) -> i32 {
    from_result(|| {
        // SAFETY: The queue is live, so `create` has written our part; the attributes are the
        // caller's alone.
        let (queue, out) = unsafe { (Queue::part(srq), &mut *out) };
        // SAFETY: A live queue names its device, which is one of ours.
        unsafe { device::hca((*srq).device) }.begin_command()?;
        out.max_wr = queue.capacity;
        out.max_sge = queue.segments_each;
        out.srq_limit = queue.limit();
        Ok(0)
    })
}

/// Destroys a shared receive queue (`destroy_srq`).
///
/// # Safety
///
/// Called by `ib_core` with a live queue, for the last time, after the queue pairs that used it.
pub(super) unsafe extern "C" fn destroy(
    srq: *mut bindings::ib_srq,
    _: *mut bindings::ib_udata,
) -> i32 {
    // SAFETY: The queue is live, so `create` has written our part; nothing uses it after this call.
    let (hca, queue) = unsafe { (device::hca((*srq).device), Queue::destroy(srq)) };
    hca.take_time();
    drop(queue);
    hca.shared_queues.give_back();
    0
}
