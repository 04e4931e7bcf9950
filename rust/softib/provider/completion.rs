// SPDX-License-Identifier: GPL-2.0-only

//! Completion queues.

use core::ptr::NonNull;

use kernel::{
    error::from_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    device,
    object::Object,
    vector::Vector, //
};
use crate::{
    bindings,
    hca::completion::{
        Completion,
        CompletionQueue,
        Extra,
        Kind, //
    },
    hca::limits, //
};

/// A completion queue of the kernel with ours.
pub(super) type Queue = Object<bindings::ib_cq, Arc<CompletionQueue>>;

/// The kernel's completion queue, to call its consumer.
///
/// # Invariants
///
/// The queue is valid until [`CompletionQueue::stop`] has returned and what ran in soft interrupts then is over;
/// nobody raises an event later: no queue pair is left that could.
pub(crate) struct Handle(NonNull<bindings::ib_cq>);

// SAFETY: The consumer may be called from any thread.
unsafe impl Send for Handle {}
// SAFETY: As above.
unsafe impl Sync for Handle {}

impl Handle {
    /// Calls the consumer. In soft interrupt context.
    pub(crate) fn notify(&self) {
        // SAFETY: By the type invariant valid.
        unsafe { bindings::softib_notify_cq(self.0.as_ptr()) };
    }

    /// The same where soft interrupts are on.
    pub(crate) fn notify_from_process(&self) {
        // SAFETY: The calls are a pair.
        unsafe { bindings::softib_bh_disable() };
        self.notify();
        // SAFETY: As above.
        unsafe { bindings::softib_bh_enable() };
    }
}

/// `create_cq`.
///
/// # Safety
///
/// Called by `ib_core` with a new queue and valid attributes.
pub(super) unsafe extern "C" fn create(
    cq: *mut bindings::ib_cq,
    attributes: *const bindings::ib_cq_init_attr,
    _: *mut bindings::uverbs_attr_bundle,
) -> i32 {
    from_result(|| {
        // SAFETY: By the contract.
        let (wanted, number, hca) = unsafe {
            let attributes = &*attributes;
            let hca = device::hca((*cq).device);
            (attributes.cqe, attributes.comp_vector, hca)
        };
        hca.begin_command()?;
        if wanted == 0 || wanted > limits::COMPLETIONS {
            return Err(EINVAL);
        }
        let vector = Vector::new(number, hca.options.affinity)?;
        // INVARIANT: The part of the object that is destroyed below, which stops it first.
        let handle = Handle(NonNull::new(cq).ok_or(EINVAL)?);
        let queue = CompletionQueue::new(handle, vector, wanted as usize)?;
        // SAFETY: By the contract.
        unsafe {
            (*cq).cqe = wanted as i32;
            Queue::create(cq, queue);
        }
        Ok(0)
    })
}

/// `destroy_cq`.
///
/// # Safety
///
/// Called by `ib_core` with a live queue, for the last time, after the queue pairs that used it.
pub(super) unsafe extern "C" fn destroy(
    cq: *mut bindings::ib_cq,
    _: *mut bindings::ib_udata,
) -> i32 {
    // SAFETY: By the contract.
    let queue = unsafe { Queue::destroy(cq) };
    queue.stop();
    0
}

/// `poll_cq`.
///
/// # Safety
///
/// Called with a live queue and room for `count` completions.
pub(super) unsafe extern "C" fn poll(
    cq: *mut bindings::ib_cq,
    count: i32,
    out: *mut bindings::ib_wc,
) -> i32 {
    // SAFETY: By the contract.
    let queue = unsafe { Queue::part(cq) };
    let mut next = out;
    let taken = queue.poll(usize::try_from(count).unwrap_or(0), |completion| {
        // SAFETY: By the contract there is room for each that is polled.
        unsafe {
            write(completion, &mut *next);
            next = next.add(1);
        }
    });
    taken as i32
}

/// `req_notify_cq`.
///
/// # Safety
///
/// Called with a live queue.
pub(super) unsafe extern "C" fn arm(
    cq: *mut bindings::ib_cq,
    flags: bindings::ib_cq_notify_flags,
) -> i32 {
    // SAFETY: By the contract.
    let queue = unsafe { Queue::part(cq) };
    let kind = flags & bindings::ib_cq_notify_flags_IB_CQ_SOLICITED_MASK;
    let waiting = queue.arm(kind == bindings::ib_cq_notify_flags_IB_CQ_SOLICITED);
    let asked = flags & bindings::ib_cq_notify_flags_IB_CQ_REPORT_MISSED_EVENTS != 0;
    i32::from(asked && waiting)
}

/// Writes a completion in the kernel's form.
fn write(completion: &Completion, out: &mut bindings::ib_wc) {
    let (extra, flag) = match completion.extra {
        Extra::Nothing => (0, 0),
        // Its bytes are the consumer's, in their order.
        Extra::Immediate(data) => (
            u32::from_ne_bytes(data.bytes()),
            bindings::ib_wc_flags_IB_WC_WITH_IMM,
        ),
        Extra::Invalidated(key) => (key, bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE),
    };
    let origin = &completion.origin;
    let global = if origin.global {
        bindings::ib_wc_flags_IB_WC_GRH
    } else {
        0
    };
    let checksum = if origin.checksum {
        bindings::ib_wc_flags_IB_WC_IP_CSUM_OK
    } else {
        0
    };
    *out = bindings::ib_wc {
        status: completion.status.number().into(),
        opcode: match completion.kind {
            Kind::Send => bindings::ib_wc_opcode_IB_WC_SEND,
            Kind::Cut => bindings::ib_wc_opcode_IB_WC_LSO,
            Kind::Write => bindings::ib_wc_opcode_IB_WC_RDMA_WRITE,
            Kind::Read => bindings::ib_wc_opcode_IB_WC_RDMA_READ,
            Kind::CompareSwap => bindings::ib_wc_opcode_IB_WC_COMP_SWAP,
            Kind::FetchAdd => bindings::ib_wc_opcode_IB_WC_FETCH_ADD,
            Kind::Register => bindings::ib_wc_opcode_IB_WC_REG_MR,
            Kind::Invalidate => bindings::ib_wc_opcode_IB_WC_LOCAL_INV,
            Kind::Receive => bindings::ib_wc_opcode_IB_WC_RECV,
            Kind::ReceiveWrite => bindings::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM,
        },
        byte_len: completion.length,
        qp: completion.queue_pair.as_raw(),
        src_qp: completion.source.get(),
        slid: origin.lid.into(),
        wc_flags: (flag | global | checksum) as i32,
        pkey_index: origin.pkey_index,
        sl: origin.service_level,
        dlid_path_bits: origin.path_bits,
        port_num: origin.port.into(),
        ..Default::default()
    };
    out.__bindgen_anon_1.wr_id = completion.request;
    out.ex.invalidate_rkey = extra;
}
