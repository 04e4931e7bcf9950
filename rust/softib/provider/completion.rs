// SPDX-License-Identifier: GPL-2.0-only

//! Completion queues, as `ib_core` creates, polls and arms them.

use core::ptr::NonNull;

use kernel::{
    error::from_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    device,
    object::Object,
    udata,
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
/// The queue is valid until [`CompletionQueue::stop`] has returned and the soft interrupts that
/// ran then are over. No event is raised later: no queue pair is left that could.
pub(crate) struct Handle {
    cq: NonNull<bindings::ib_cq>,
    /// Whether events come with interrupts off.
    by_interrupt: bool,
}

// SAFETY: The consumer may be called from any thread.
unsafe impl Send for Handle {}
// SAFETY: The consumer may be called from several threads at once.
unsafe impl Sync for Handle {}

impl Handle {
    /// Calls the consumer. In soft interrupt context.
    pub(crate) fn notify(&self) {
        let cq = self.cq.as_ptr();
        // SAFETY: By the type invariant valid.
        unsafe {
            match self.by_interrupt {
                true => bindings::softib_notify_cq_by_interrupt(cq),
                false => bindings::softib_notify_cq(cq),
            }
        }
    }

    /// Calls the consumer from process context, where soft interrupts are on.
    pub(crate) fn notify_from_process(&self) {
        // SAFETY: The calls are a pair.
        unsafe { bindings::softib_bh_disable() };
        self.notify();
        // SAFETY: It ends the section that `softib_bh_disable` began above.
        unsafe { bindings::softib_bh_enable() };
    }

    /// Tells the program that has the queue that completions were lost; `false` if none has it. Any
    /// context.
    pub(crate) fn tell_program_of_overrun(&self) -> bool {
        // SAFETY: By the type invariant the queue is live.
        unsafe { bindings::softib_tell_program_of_overrun(self.cq.as_ptr()) }
    }
}

/// Creates a completion queue (`create_cq`).
///
/// # Safety
///
/// Called by `ib_core` with a new queue and valid attributes.
pub(super) unsafe extern "C" fn create(
    cq: *mut bindings::ib_cq,
    attributes: *const bindings::ib_cq_init_attr,
    command: *mut bindings::uverbs_attr_bundle,
) -> i32 {
    from_result(|| {
        // SAFETY: `ib_core` gives the attributes of the command, or null.
        unsafe { udata::refuse_in(command) }?;
        // SAFETY: The attributes are valid, and `ib_core` has filled in the queue's device, one of
        // ours.
        let (attributes, hca) = unsafe { (&*attributes, device::hca((*cq).device)) };
        let (wanted, number) = (attributes.cqe, attributes.comp_vector);
        hca.begin_command()?;
        // Neither time stamps, nor queues that overrun on purpose.
        if attributes.flags != 0 {
            return Err(super::unsupported());
        }
        if wanted == 0 || wanted > limits::COMPLETIONS {
            return Err(EINVAL);
        }
        let share = hca.completion_queues.take()?;
        let vector = Vector::new(number, hca.options.affinity)?;
        // INVARIANT: The part of the object that is destroyed below, which stops it first.
        let handle = Handle {
            cq: NonNull::new(cq).ok_or(EINVAL)?,
            by_interrupt: hca.options.interrupts,
        };
        let overtaking = hca.options.overtaking;
        let queue = CompletionQueue::new(handle, vector, wanted as usize, overtaking)?;
        // SAFETY: `ib_core` allocated the queue with room for our part, and gives it here for the
        // first time.
        unsafe {
            (*cq).cqe = wanted as i32;
            Queue::create(cq, queue);
        }
        share.keep();
        hca.vectors.add(number);
        Ok(0)
    })
}

/// Destroys a completion queue (`destroy_cq`).
///
/// # Safety
///
/// Called by `ib_core` with a live queue, for the last time, after the queue pairs that used it.
pub(super) unsafe extern "C" fn destroy(
    cq: *mut bindings::ib_cq,
    _: *mut bindings::ib_udata,
) -> i32 {
    // SAFETY: The queue is live, so `create` has written our part; nothing uses it after this call.
    let (hca, queue) = unsafe { (device::hca((*cq).device), Queue::destroy(cq)) };
    hca.take_time();
    queue.stop();
    hca.vectors.remove(queue.vector.number);
    hca.completion_queues.give_back();
    0
}

/// Takes completions for the kernel's consumers (`poll_cq`). The device does not offer the
/// kernel's command for programs, which poll by [`softib_poll_for_program`].
///
/// # Safety
///
/// Called with a live queue and room for `count` completions.
pub(super) unsafe extern "C" fn poll(
    cq: *mut bindings::ib_cq,
    count: i32,
    out: *mut bindings::ib_wc,
) -> i32 {
    // SAFETY: The queue is live, so `create` has written our part.
    let queue = unsafe { Queue::part(cq) };
    let mut next = out;
    let taken = queue.poll(usize::try_from(count).unwrap_or(0), |completion| {
        // SAFETY: There is room for `count` completions, and no more than that are taken.
        unsafe {
            write(completion, &mut *next);
            next = next.add(1);
        }
    });
    taken as i32
}

/// Takes the oldest completions out of a program's queue, and returns how many.
///
/// # Safety
///
/// Called by the command for that (`bindings/programs.c`), with a live queue and room for `count`
/// completions.
#[no_mangle]
pub(crate) unsafe extern "C" fn softib_poll_for_program(
    cq: *mut bindings::ib_cq,
    count: u32,
    out: *mut bindings::ib_uverbs_wc,
) -> u32 {
    // SAFETY: The caller keeps the queue.
    let queue = unsafe { Queue::part(cq) };
    let mut next = out;
    let taken = queue.poll(count as usize, |completion| {
        let mut known = bindings::ib_wc::default();
        write(completion, &mut known);
        // SAFETY: The queue is locked, and a queue pair takes its completions out of it before it
        // goes (`QueuePair::end`): this one is still there. The caller has room for each
        // completion.
        unsafe {
            next.write(in_user_form(
                &known,
                (*completion.queue_pair.as_raw()).qp_num,
            ));
            next = next.add(1);
        }
    });
    taken as u32
}

/// Returns a completion in the form in which the kernel gives it to programs.
fn in_user_form(known: &bindings::ib_wc, number: u32) -> bindings::ib_uverbs_wc {
    let mut out = bindings::ib_uverbs_wc {
        status: known.status,
        opcode: known.opcode,
        vendor_err: known.vendor_err,
        byte_len: known.byte_len,
        qp_num: number,
        src_qp: known.src_qp,
        wc_flags: known.wc_flags as u32,
        pkey_index: known.pkey_index,
        slid: known.slid as u16,
        sl: known.sl,
        dlid_path_bits: known.dlid_path_bits,
        port_num: known.port_num as u8,
        ..Default::default()
    };
    // SAFETY: Each member of both unions is a number of the same size, and all are written.
    unsafe {
        out.wr_id = known.__bindgen_anon_1.wr_id;
        out.ex.invalidate_rkey = known.ex.invalidate_rkey;
    }
    out
}

/// Asks for the next completion event of a queue (`req_notify_cq`).
///
/// # Safety
///
/// Called with a live queue.
pub(super) unsafe extern "C" fn arm(
    cq: *mut bindings::ib_cq,
    flags: bindings::ib_cq_notify_flags,
) -> i32 {
    // SAFETY: The queue is live, so `create` has written our part.
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

#[kernel::prelude::kunit_tests(softib_completion_events)]
mod tests {
    use core::{
        ffi::c_void,
        sync::atomic::{
            AtomicBool,
            AtomicU32,
            Ordering, //
        }, //
    };

    use kernel::{
        sync::SetOnce,
        time::{
            delay::{
                fsleep,
                udelay, //
            },
            Delta, //
        }, //
    };

    use super::*;

    /// The longest time for which the kernel lets anybody wait without sleeping.
    const MOMENT: Delta = Delta::from_millis(1);

    /// A consumer whose first call lasts until its queue is settled, and raises an event meanwhile.
    struct Consumer {
        queue: SetOnce<Arc<CompletionQueue>>,
        calls: AtomicU32,
        settles: AtomicBool,
    }

    /// # Safety
    ///
    /// `context` is a [`Consumer`].
    unsafe extern "C" fn handle(_: *mut bindings::ib_cq, context: *mut c_void) {
        // SAFETY: The caller's promise.
        let consumer = unsafe { &*context.cast::<Consumer>() };
        if consumer.calls.fetch_add(1, Ordering::SeqCst) > 0 {
            return;
        }
        // Not for ever: the test stands still if this interrupts it.
        for _ in 0..20 {
            if consumer.settles.load(Ordering::SeqCst) {
                break;
            }
            udelay(MOMENT);
        }
        // Until `settle` waits.
        udelay(MOMENT);
        if let Some(queue) = consumer.queue.as_ref() {
            queue.notify_later();
        }
    }

    /// Has a queue with events on `vector` settled while its consumer runs and another event
    /// comes. Returns how often the consumer was called.
    fn calls_beside_settle(vector: Vector) -> Result<u32> {
        let consumer = KBox::new(
            Consumer {
                queue: SetOnce::new(),
                calls: AtomicU32::new(0),
                settles: AtomicBool::new(false),
            },
            GFP_KERNEL,
        )?;
        let cq = KBox::new(
            bindings::ib_cq {
                comp_handler: Some(handle),
                cq_context: core::ptr::from_ref(&*consumer).cast_mut().cast(),
                ..Default::default()
            },
            GFP_KERNEL,
        )?;
        // INVARIANT: `cq` and its context outlive `stop` below.
        let handle = Handle {
            cq: NonNull::from(&*cq),
            by_interrupt: false,
        };
        let queue = CompletionQueue::new(handle, vector, 1, false)?;
        consumer.queue.populate(queue.clone());
        queue.notify_later();
        while consumer.calls.load(Ordering::SeqCst) == 0 {
            fsleep(MOMENT);
        }
        consumer.settles.store(true, Ordering::SeqCst);
        queue.settle();
        let calls = consumer.calls.load(Ordering::SeqCst);
        queue.stop();
        Ok(calls)
    }

    #[test]
    fn an_event_that_comes_while_the_queue_is_settled_is_kept() -> Result {
        // One of these is another processor's than the test's, where there are two.
        for number in 0..2 {
            if let Ok(vector) = Vector::new(number, true) {
                assert_eq!(calls_beside_settle(vector)?, 2);
            }
        }
        Ok(())
    }
}
