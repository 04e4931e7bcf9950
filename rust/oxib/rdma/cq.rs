// SPDX-License-Identifier: GPL-2.0-only

//! Completion queues: polling, arming, and the fields of a work completion.

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

use super::device::Device;
use crate::{
    bindings,
    net::ethtool::Moderation,
    wire::grh::NetworkType, //
};

/// A user of a completion queue that is notified when the queue has completions. Called in any
/// context, interrupts off.
pub(crate) trait Notify: Send + Sync + 'static {
    /// The queue, armed before, has a completion.
    fn completed(&self);
}

/// The outcome of a work request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    /// The request was carried out.
    Success,
    /// The queue pair was taken out of service before the request was carried out.
    Flushed,
    /// The request failed with an error, `enum ib_wc_status`.
    Failed(u32),
}

/// A completion of a work request.
#[repr(transparent)]
pub(crate) struct Completion(bindings::ib_wc);

impl Completion {
    /// The number that the work request was given.
    #[inline(always)]
    pub(crate) fn id(&self) -> u64 {
        // SAFETY: The union holds a number or a pointer; both are 64 plain bits, and our work
        // requests carry numbers.
        unsafe { self.0.__bindgen_anon_1.wr_id }
    }

    /// The outcome of the work request.
    #[inline(always)]
    pub(crate) fn status(&self) -> Status {
        match self.0.status {
            bindings::ib_wc_status_IB_WC_SUCCESS => Status::Success,
            bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => Status::Flushed,
            other => Status::Failed(other),
        }
    }

    /// Bytes received, the 40 of the global route header's place included.
    #[inline(always)]
    pub(crate) fn length(&self) -> usize {
        self.0.byte_len as usize
    }

    /// Queue pair number of the sender.
    #[inline(always)]
    pub(crate) fn source_qpn(&self) -> u32 {
        self.0.src_qp
    }

    /// LID of the sender, or of the last router (16 bits on InfiniBand); 0 on RoCE.
    #[inline(always)]
    pub(crate) fn source_lid(&self) -> u16 {
        self.0.slid as u16
    }

    /// Address of our queue pair that it is of, for comparing: the queue pair may be gone by now.
    #[inline(always)]
    pub(crate) fn queue_pair(&self) -> usize {
        self.0.qp.addr()
    }

    /// Returns whether the device has checked the checksums of the datagram, and found them
    /// right.
    #[inline(always)]
    pub(crate) fn is_checked(&self) -> bool {
        self.0.wc_flags as u32 & bindings::ib_wc_flags_IB_WC_IP_CSUM_OK != 0
    }

    /// The type of the network header in the first 40 bytes of the buffer, if there is one. Where
    /// the device does not report the type, `find` finds it.
    #[inline(always)]
    pub(crate) fn network(&self, find: impl FnOnce() -> NetworkType) -> Option<NetworkType> {
        let flags = self.0.wc_flags as u32;
        if flags & bindings::ib_wc_flags_IB_WC_GRH == 0 {
            return None;
        }
        if flags & bindings::ib_wc_flags_IB_WC_WITH_NETWORK_HDR_TYPE == 0 {
            return Some(find());
        }
        Some(match u32::from(self.0.network_hdr_type) {
            bindings::rdma_network_type_RDMA_NETWORK_IPV4 => NetworkType::Ipv4,
            bindings::rdma_network_type_RDMA_NETWORK_IPV6 => NetworkType::Ipv6,
            bindings::rdma_network_type_RDMA_NETWORK_ROCE_V1 => NetworkType::RoceV1,
            _ => NetworkType::Infiniband,
        })
    }
}

/// Completions taken at once.
pub(crate) const BATCH: usize = 16;

/// Room for a batch of completions.
pub(crate) struct Batch([bindings::ib_wc; BATCH]);

// SAFETY: The structures are numbers; the queue pair pointer in them is never followed here.
unsafe impl Send for Batch {}

impl Batch {
    /// Creates a batch without completions.
    pub(crate) fn new() -> Self {
        Self(pin_init::zeroed())
    }
}

/// Memory of the handler, kept at one place for the C side.
struct Context<N: Notify>(N);

/// A completion queue that tells `N` of completions.
///
/// # Invariants
///
/// The pointer is a valid completion queue of `device`. Its context is `handler`.
pub(crate) struct CompletionQueue<N: Notify> {
    cq: NonNull<bindings::ib_cq>,
    poll: unsafe extern "C" fn(*mut bindings::ib_cq, i32, *mut bindings::ib_wc) -> i32,
    arm: unsafe extern "C" fn(*mut bindings::ib_cq, bindings::ib_cq_notify_flags) -> i32,
    /// There until the queue is destroyed.
    handler: Option<Pin<KBox<Context<N>>>>,
    device: ARef<Device>,
}

// SAFETY: Completion queues are used from all threads; devices serialise their polls.
unsafe impl<N: Notify> Send for CompletionQueue<N> {}
// SAFETY: Devices serialise the polls of a queue that threads share.
unsafe impl<N: Notify> Sync for CompletionQueue<N> {}

impl<N: Notify> CompletionQueue<N> {
    /// Makes a queue of `entries`, notified on completion vector `vector`.
    ///
    /// # Errors
    ///
    /// The device's error, which may be `ENOMEM` or `EINVAL`.
    pub(crate) fn new(device: &Device, entries: u32, vector: u32, handler: N) -> Result<Arc<Self>> {
        let handler = KBox::pin(Context(handler), GFP_KERNEL)?;
        let attributes = bindings::ib_cq_init_attr {
            cqe: entries,
            comp_vector: vector,
            flags: 0,
        };
        // SAFETY: The device is valid; the handler's memory is kept until the queue is destroyed.
        let cq = unsafe {
            bindings::__ib_create_cq(
                device.as_raw(),
                Some(completed::<N>),
                None,
                core::ptr::from_ref(&*handler).cast_mut().cast(),
                &attributes,
                c"oxib".as_char_ptr(),
            )
        };
        let cq = NonNull::new(kernel::error::from_err_ptr(cq)?).ok_or(ENOMEM)?;
        // SAFETY: The operations of a valid device do not change.
        let (poll, arm) = unsafe {
            let ops = &(*device.as_raw()).ops;
            (ops.poll_cq, ops.req_notify_cq)
        };
        let (Some(poll), Some(arm)) = (poll, arm) else {
            // SAFETY: Just created, used by nobody.
            unsafe { bindings::ib_destroy_cq_user(cq.as_ptr(), core::ptr::null_mut()) };
            return Err(ENOTSUPP);
        };
        // INVARIANT: Just created on `device`, with the handler for its context.
        let this = Self {
            cq,
            poll,
            arm,
            handler: Some(handler),
            device: ARef::from(device),
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    pub(super) fn as_raw(&self) -> *mut bindings::ib_cq {
        self.cq.as_ptr()
    }

    /// Takes at most `limit` completions, or a batch.
    #[inline]
    pub(crate) fn poll<'b>(&self, batch: &'b mut Batch, limit: usize) -> &'b [Completion] {
        let limit = core::cmp::min(limit, BATCH);
        // SAFETY: The queue is valid, and the batch has room for `limit`.
        let count = unsafe { (self.poll)(self.as_raw(), limit as i32, batch.0.as_mut_ptr()) };
        let count = usize::try_from(count).unwrap_or(0);
        let taken = batch.0.get(..count).unwrap_or(&[]);
        // SAFETY: `Completion` is transparent over `ib_wc`.
        unsafe { core::slice::from_raw_parts(taken.as_ptr().cast(), taken.len()) }
    }

    /// Asks for a notification of the next completion. Returns whether completions are there
    /// already that may not be notified: poll again.
    #[inline]
    pub(crate) fn arm(&self) -> bool {
        let flags = bindings::ib_cq_notify_flags_IB_CQ_NEXT_COMP
            | bindings::ib_cq_notify_flags_IB_CQ_REPORT_MISSED_EVENTS;
        // SAFETY: The queue is valid.
        unsafe { (self.arm)(self.as_raw(), flags) > 0 }
    }

    /// Tells of completions only when so many packets, or microseconds, have come together.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the device cannot, and its other errors.
    pub(crate) fn moderate(&self, moderation: Moderation) -> Result {
        // SAFETY: The queue is valid.
        kernel::error::to_result(unsafe {
            bindings::rdma_set_cq_moderation(
                self.as_raw(),
                moderation.packets,
                moderation.microseconds,
            )
        })
    }

    /// Throws away what is in the queue.
    pub(crate) fn discard(&self) {
        let mut batch = Batch::new();
        while !self.poll(&mut batch, BATCH).is_empty() {}
    }
}

impl<N: Notify> Drop for CompletionQueue<N> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant valid; the queue pairs on it hold it and are gone. No
        // handler runs after this succeeds.
        let result = unsafe { bindings::ib_destroy_cq_user(self.as_raw(), core::ptr::null_mut()) };
        if result != 0 {
            // It is there still, and the device, which stays for it, may notify it.
            core::mem::forget((self.handler.take(), self.device.clone()));
            self.device.report_undead("completion queue", result);
        }
    }
}

/// The C face of [`Notify::completed`].
///
/// # Safety
///
/// `context` is the `Context<N>` of the queue.
unsafe extern "C" fn completed<N: Notify>(_cq: *mut bindings::ib_cq, context: *mut c_void) {
    // SAFETY: `new` gave the queue this `Context<N>`, which lives until the queue is destroyed.
    let context = unsafe { &*context.cast::<Context<N>>() };
    context.0.completed();
}
