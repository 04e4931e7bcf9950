// SPDX-License-Identifier: GPL-2.0-only

//! Reliable connected queue pairs.
//!
//! The attributes of the transitions come from the connection manager ([`Initial`],
//! [`Reception`], [`Transmission`]).

use core::{
    ptr::NonNull,
    sync::atomic::{
        AtomicBool,
        Ordering, //
    }, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    cq::{
        CompletionQueue,
        Notify, //
    },
    device::Device,
    pd::ProtectionDomain,
    port::PortNumber,
    route::{
        AddressKind,
        AddressVector, //
    },
    srq::SharedReceiveQueue, //
};
use crate::{
    bindings,
    linux::device_limit,
    wire::{
        psn::Psn,
        qpn::Qpn, //
    }, //
};

/// Capacity that a queue pair is created with, on its send side.
#[derive(Clone, Copy)]
pub(crate) struct Capacity {
    /// Send work requests that may be outstanding.
    pub(crate) send: u32,
    /// Pieces of memory in each of them.
    pub(crate) pieces: u32,
    /// Bytes that a send may carry in its work request. The device may give more.
    pub(crate) inline: u32,
}

/// Attributes for the transition from Reset to Init. The peer gets no access to our memory.
pub(crate) struct Initial {
    /// The port that the queue pair sends and receives by.
    pub(crate) port: PortNumber,
    /// Index of the P_Key in the port's table.
    pub(crate) pkey_index: u16,
}

/// Attributes for the transition from Init to Ready to Receive.
pub(crate) struct Reception {
    /// The way to the peer.
    pub(crate) address: AddressVector,
    /// The LID that packets go to, if not that of `address`.
    pub(crate) data_lid: Option<u16>,
    /// Path MTU, encoded: 1 for 256 bytes to 5 for 4096.
    pub(crate) mtu: u8,
    /// The peer's queue pair.
    pub(crate) peer: Qpn,
    /// The peer's first packet sequence number.
    pub(crate) psn: Psn,
    /// RDMA reads and atomics that the peer may have outstanding.
    pub(crate) depth: u8,
}

/// Attributes for the transition from Ready to Receive to Ready to Send.
pub(crate) struct Transmission {
    /// Our first packet sequence number.
    pub(crate) psn: Psn,
    /// Retries of the transport.
    pub(crate) retry_count: u8,
    /// Retries of the transport when the receiver is not ready.
    pub(crate) rnr_retry_count: u8,
    /// RDMA reads and atomics that we may have outstanding.
    pub(crate) depth: u8,
    /// Local ACK timeout, as an exponent.
    pub(crate) timeout: u8,
}

/// Time that a sender waits for a receiver that is not ready, encoded (IBTA 9.7.5.2.8): 0.64 ms.
const NOT_READY: u8 = 12;

/// Record of the queue pair's asynchronous events, at one place for the C side.
struct Events {
    /// The last receive of the shared queue that the queue pair had taken is done.
    last: AtomicBool,
}

/// A reliable connected queue pair with its completion queues.
///
/// # Invariants
///
/// The pointer is a valid queue pair in `pd`; its completion queues are `_send` and `_receive`,
/// its shared receive queue, if it has one, is `shared`, and its context is `events`. Unless
/// `in_service`, it is in Reset.
pub(crate) struct QueuePair<S: Notify, R: Notify> {
    qp: NonNull<bindings::ib_qp>,
    pd: Arc<ProtectionDomain>,
    inline_limit: u32,
    pieces: u32,
    /// There until the queue pair is destroyed.
    events: Option<Pin<KBox<Events>>>,
    _send: Arc<CompletionQueue<S>>,
    _receive: Arc<CompletionQueue<R>>,
    shared: Option<Arc<SharedReceiveQueue>>,
    /// Whether the queue pair has left Reset, and is noted as a user of `shared`.
    in_service: AtomicBool,
}

// SAFETY: Queue pairs are used from all threads.
unsafe impl<S: Notify, R: Notify> Send for QueuePair<S, R> {}
// SAFETY: Verbs are reentrant: threads may use one queue pair at the same time.
unsafe impl<S: Notify, R: Notify> Sync for QueuePair<S, R> {}

impl<S: Notify, R: Notify> QueuePair<S, R> {
    /// Makes a queue pair that sends and has nothing to receive with, in the Reset state.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn sender(
        pd: &Arc<ProtectionDomain>,
        send: &Arc<CompletionQueue<S>>,
        receive: &Arc<CompletionQueue<R>>,
        capacity: Capacity,
    ) -> Result<Arc<Self>> {
        // A device without inline sends may refuse the wish; it is no need.
        let without = Capacity {
            inline: 0,
            ..capacity
        };
        let this = Self::new(pd, send, receive, None, capacity)
            .or_else(|_| Self::new(pd, send, receive, None, without))?;
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Makes a queue pair that receives with what is in `shared`, in the Reset state.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn receiver(
        pd: &Arc<ProtectionDomain>,
        send: &Arc<CompletionQueue<S>>,
        receive: &Arc<CompletionQueue<R>>,
        shared: &Arc<SharedReceiveQueue>,
    ) -> Result<Arc<Self>> {
        // It sends nothing, but not all devices make a queue pair that could not.
        let capacity = Capacity {
            send: 1,
            pieces: 1,
            inline: 0,
        };
        let this = Self::new(pd, send, receive, Some(shared), capacity)?;
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    fn new(
        pd: &Arc<ProtectionDomain>,
        send: &Arc<CompletionQueue<S>>,
        receive: &Arc<CompletionQueue<R>>,
        shared: Option<&Arc<SharedReceiveQueue>>,
        capacity: Capacity,
    ) -> Result<Self> {
        let last = AtomicBool::new(false);
        let events = KBox::pin(Events { last }, GFP_KERNEL)?;
        let mut attributes: bindings::ib_qp_init_attr = pin_init::zeroed();
        attributes.send_cq = send.as_raw();
        attributes.recv_cq = receive.as_raw();
        attributes.srq = shared.map_or(core::ptr::null_mut(), |shared| shared.as_raw());
        attributes.event_handler = Some(event);
        attributes.qp_context = core::ptr::from_ref(&*events).cast_mut().cast();
        attributes.cap.max_send_wr = capacity.send;
        attributes.cap.max_send_sge = capacity.pieces;
        attributes.cap.max_inline_data = capacity.inline;
        attributes.sq_sig_type = bindings::ib_sig_type_IB_SIGNAL_REQ_WR;
        attributes.qp_type = bindings::ib_qp_type_IB_QPT_RC;
        // SAFETY: All that the attributes name is valid and outlives the queue pair.
        let qp = unsafe {
            bindings::ib_create_qp_kernel(pd.as_raw(), &mut attributes, c"oxib".as_char_ptr())
        };
        let qp = kernel::error::from_err_ptr(qp)?;
        // INVARIANT: Just created with these.
        Ok(Self {
            qp: NonNull::new(qp).ok_or(ENOMEM)?,
            pd: pd.clone(),
            inline_limit: attributes.cap.max_inline_data,
            pieces: capacity.pieces,
            events: Some(events),
            _send: send.clone(),
            _receive: receive.clone(),
            shared: shared.cloned(),
            in_service: AtomicBool::new(false),
        })
    }

    #[inline(always)]
    pub(super) fn as_raw(&self) -> *mut bindings::ib_qp {
        self.qp.as_ptr()
    }

    pub(super) fn pd(&self) -> &ProtectionDomain {
        &self.pd
    }

    pub(crate) fn device(&self) -> &Device {
        self.pd.device()
    }

    /// Most bytes that a send may carry in its work request.
    pub(crate) fn inline_limit(&self) -> u32 {
        self.inline_limit
    }

    /// Most pieces of memory of a send.
    pub(crate) fn pieces(&self) -> u32 {
        self.pieces
    }

    /// The queue pair's number.
    pub(crate) fn number(&self) -> Qpn {
        // SAFETY: A constant of a valid queue pair.
        Qpn::new(unsafe { (*self.as_raw()).qp_num }).unwrap_or(Qpn::MULTICAST)
    }

    /// Address of the queue pair, as completions give it ([`Completion::queue_pair`]).
    ///
    /// [`Completion::queue_pair`]: super::cq::Completion::queue_pair
    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        self.as_raw().addr()
    }

    fn modify(&self, attributes: &mut bindings::ib_qp_attr, mask: u32) -> Result {
        let mask = mask | bindings::ib_qp_attr_mask_IB_QP_STATE;
        // SAFETY: The queue pair is valid, the structure ours.
        to_result(unsafe { bindings::ib_modify_qp(self.as_raw(), attributes, mask as i32) })
    }

    fn attributes(state: bindings::ib_qp_state) -> bindings::ib_qp_attr {
        let mut attributes: bindings::ib_qp_attr = pin_init::zeroed();
        attributes.qp_state = state;
        attributes
    }

    /// Takes the queue pair from Reset to Init.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn initialise(&self, with: &Initial) -> Result {
        self.enter_service()?;
        let mut attributes = Self::attributes(bindings::ib_qp_state_IB_QPS_INIT);
        attributes.port_num = with.port.get();
        attributes.pkey_index = with.pkey_index;
        attributes.qp_access_flags = bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE as i32;
        self.modify(
            &mut attributes,
            bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS
                | bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX
                | bindings::ib_qp_attr_mask_IB_QP_PORT,
        )
    }

    /// Takes the queue pair from Init to Ready to Receive.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn receive(&self, with: &Reception) -> Result {
        let mut attributes = Self::attributes(bindings::ib_qp_state_IB_QPS_RTR);
        attributes.ah_attr = *with.address.as_attributes();
        if let (Some(lid), AddressKind::Infiniband) = (with.data_lid, with.address.kind()) {
            attributes.ah_attr.__bindgen_anon_1.ib.dlid = lid;
        }
        attributes.path_mtu = with.mtu.into();
        attributes.dest_qp_num = with.peer.get();
        attributes.rq_psn = with.psn.get();
        attributes.max_dest_rd_atomic = with.depth;
        attributes.min_rnr_timer = NOT_READY;
        self.modify(
            &mut attributes,
            bindings::ib_qp_attr_mask_IB_QP_AV
                | bindings::ib_qp_attr_mask_IB_QP_PATH_MTU
                | bindings::ib_qp_attr_mask_IB_QP_DEST_QPN
                | bindings::ib_qp_attr_mask_IB_QP_RQ_PSN
                | bindings::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC
                | bindings::ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER,
        )
    }

    /// Takes the queue pair from Ready to Receive to Ready to Send.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn send(&self, with: &Transmission) -> Result {
        let mut attributes = Self::attributes(bindings::ib_qp_state_IB_QPS_RTS);
        attributes.sq_psn = with.psn.get();
        attributes.retry_cnt = with.retry_count;
        attributes.rnr_retry = with.rnr_retry_count;
        attributes.max_rd_atomic = with.depth;
        attributes.timeout = with.timeout;
        self.modify(
            &mut attributes,
            bindings::ib_qp_attr_mask_IB_QP_SQ_PSN
                | bindings::ib_qp_attr_mask_IB_QP_RETRY_CNT
                | bindings::ib_qp_attr_mask_IB_QP_RNR_RETRY
                | bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC
                | bindings::ib_qp_attr_mask_IB_QP_TIMEOUT,
        )
    }

    /// Takes the queue pair out of service: what it has is flushed to its completion queues.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn fail(&self) -> Result {
        self.modify(&mut Self::attributes(bindings::ib_qp_state_IB_QPS_ERR), 0)
    }

    /// Takes the queue pair back to Reset: the device forgets all work requests, and touches no
    /// memory of theirs any more.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn reset(&self) -> Result {
        self.modify(&mut Self::attributes(bindings::ib_qp_state_IB_QPS_RESET), 0)?;
        self.leave_service();
        Ok(())
    }

    /// Returns whether it is in Reset, where the device touches no memory for it.
    pub(crate) fn is_in_reset(&self) -> bool {
        !self.in_service.load(Ordering::Acquire)
    }

    fn enter_service(&self) -> Result {
        if !self.in_service.swap(true, Ordering::AcqRel) {
            let entered = self.shared.as_ref().map_or(Ok(()), |shared| shared.enter());
            entered.inspect_err(|_| self.in_service.store(false, Ordering::Release))?;
        }
        Ok(())
    }

    fn leave_service(&self) {
        if self.in_service.swap(false, Ordering::AcqRel) {
            if let Some(shared) = &self.shared {
                shared.leave();
            }
        }
    }

    /// Returns whether, after [`Self::fail`], it holds no receive of the shared queue any more:
    /// all are in the completion queue (IBTA 11.6.3.1).
    pub(crate) fn is_drained(&self) -> bool {
        let events = self.events.as_ref();
        events.is_some_and(|events| events.last.load(Ordering::Acquire))
    }
}

impl<S: Notify, R: Notify> Drop for QueuePair<S, R> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant valid; the rings on it hold it and are gone. No event
        // comes after this returns.
        let result = unsafe { bindings::ib_destroy_qp_user(self.as_raw(), core::ptr::null_mut()) };
        if result == 0 {
            return self.leave_service();
        }
        // It is there still, and so is all that it uses.
        let used = (self.pd.clone(), self._send.clone(), self._receive.clone());
        core::mem::forget((used, self.shared.clone(), self.events.take()));
        self.device().report_undead("queue pair", result);
    }
}

impl Device {
    /// Most pieces of memory of a send.
    pub(crate) fn max_send_pieces(&self) -> u32 {
        // SAFETY: A constant of a valid device.
        device_limit(unsafe { (*self.as_raw()).attrs.max_send_sge }).max(1)
    }
}

/// Notes an event of a queue pair.
///
/// # Safety
///
/// `context` is the `Events` of the queue pair, `event` valid.
unsafe extern "C" fn event(event: *mut bindings::ib_event, context: *mut c_void) {
    // SAFETY: `new` gave the queue pair these `Events`, which live until it is destroyed; the
    // device gives a valid event.
    let (event, events) = unsafe { (&*event, &*context.cast::<Events>()) };
    if event.event == bindings::ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED {
        events.last.store(true, Ordering::Release);
    }
}
