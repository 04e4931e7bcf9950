// SPDX-License-Identifier: GPL-2.0-only

//! Unreliable datagram queue pairs.

use core::{
    ptr::NonNull,
    sync::atomic::{
        AtomicBool,
        AtomicU8,
        Ordering, //
    }, //
};

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use super::{
    cq::{
        CompletionQueue,
        Notify, //
    },
    device::Device,
    pd::ProtectionDomain,
    port::PortNumber,
    receive::{
        PostReceive,
        ReceiveTarget, //
    },
    send::FEW, //
};
use crate::{
    bindings,
    wire::{
        gid::Gid,
        qpn::Qpn, //
    }, //
};

/// Capacity that a queue pair is created with.
#[derive(Clone, Copy)]
pub(crate) struct Capacity {
    /// Send work requests that may be outstanding.
    pub(crate) send: u32,
    /// Receive work requests; 0 for a queue pair that only sends.
    pub(crate) receive: u32,
    /// Bytes that a send may carry in its work request. The device may give more.
    pub(crate) inline: u32,
    /// Pieces of memory of a send. The device may give less.
    pub(crate) pieces: u32,
}

/// The states of a queue pair (IBTA volume 1, 10.3.1) that a user of datagrams sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Sends and receives packets.
    ReadyToSend,
    /// A send failed: it receives, sends are flushed.
    SendQueueError,
    /// All work is flushed.
    Error,
    /// Any of the states before Ready to Send, or Send Queue Drained.
    Other,
}

/// An attachment of a queue pair to a group, which has the LID `lid` (0 on RoCE).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Attachment {
    group: Gid,
    lid: u16,
}

/// State of an attachment that `ib_core` counts still, with the device's error.
#[derive(Clone, Copy)]
enum Counted {
    /// The device took the attachment again, and did not detach the queue pair.
    Attached(Error),
    /// The device neither detached the queue pair nor took the attachment.
    NotAttached(Error),
}

impl Counted {
    fn error(self) -> Error {
        match self {
            Self::Attached(error) | Self::NotAttached(error) => error,
        }
    }
}

/// An unreliable datagram queue pair with its completion queues.
///
/// # Invariants
///
/// The pointer is a valid queue pair in `pd`; its completion queues are `_send` and `_receive`.
/// While `service` is [`IN_RESET`], the queue pair is in Reset: [`Self::start`] and
/// [`Self::reset`] of one queue pair are not called at the same time, as their callers hold
/// the RTNL.
pub(crate) struct QueuePair<S: Notify, R: Notify> {
    qp: NonNull<bindings::ib_qp>,
    pd: Arc<ProtectionDomain>,
    port: PortNumber,
    inline_limit: u32,
    pieces: u32,
    /// Whether the device uses memory for it.
    service: AtomicU8,
    /// Whether [`Self::start`] has succeeded before.
    was_started: AtomicBool,
    /// Attachments that were to end and that `ib_core` still counts, as the device did not detach
    /// the queue pair. `ib_core` destroys a queue pair only once it counts none.
    left: Pin<KBox<Mutex<KVec<Attachment>>>>,
    _send: Arc<CompletionQueue<S>>,
    _receive: Arc<CompletionQueue<R>>,
}

/// The device has forgotten all work requests.
const IN_RESET: u8 = 0;
/// The device may use the memory of each request that was posted.
const IN_SERVICE: u8 = 1;
/// The device may still use that memory: the reset failed.
const LOST: u8 = 2;

// SAFETY: Queue pairs are used from all threads.
unsafe impl<S: Notify, R: Notify> Send for QueuePair<S, R> {}
// SAFETY: Verbs are reentrant: threads may use one queue pair at the same time.
unsafe impl<S: Notify, R: Notify> Sync for QueuePair<S, R> {}

impl<S: Notify, R: Notify> QueuePair<S, R> {
    /// Makes a queue pair for `port`, in the Reset state.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn new(
        pd: &Arc<ProtectionDomain>,
        port: PortNumber,
        send: &Arc<CompletionQueue<S>>,
        receive: &Arc<CompletionQueue<R>>,
        capacity: Capacity,
    ) -> Result<Arc<Self>> {
        let most = capacity.pieces.min(pd.device().max_send_pieces()).max(1);
        let left = KBox::pin_init(new_mutex!(KVec::new(), "oxib_attachments"), GFP_KERNEL)?;
        let attempt = |inline, pieces| {
            let mut attributes: bindings::ib_qp_init_attr = pin_init::zeroed();
            attributes.send_cq = send.as_raw();
            attributes.recv_cq = receive.as_raw();
            attributes.cap.max_send_wr = capacity.send;
            attributes.cap.max_recv_wr = capacity.receive;
            attributes.cap.max_send_sge = pieces;
            attributes.cap.max_recv_sge = u32::from(capacity.receive != 0);
            attributes.cap.max_inline_data = inline;
            attributes.create_flags = create_flags(pd.device(), port);
            attributes.sq_sig_type = bindings::ib_sig_type_IB_SIGNAL_REQ_WR;
            attributes.qp_type = bindings::ib_qp_type_IB_QPT_UD;
            // SAFETY: All that the attributes name is valid and outlives the queue pair.
            let qp = unsafe {
                bindings::ib_create_qp_kernel(pd.as_raw(), &mut attributes, c"oxib".as_char_ptr())
            };
            kernel::error::from_err_ptr(qp).map(|qp| (qp, attributes.cap.max_inline_data, pieces))
        };
        // A device without inline sends may refuse the wish, as one that lacks room for so long
        // requests; it is no need.
        let few = most.min(FEW as u32);
        let inline = capacity.inline;
        let mut made = attempt(inline, most);
        for (inline, pieces) in [(0, most), (inline, few), (0, few)] {
            made = made.or_else(|_| attempt(inline, pieces));
        }
        let (qp, inline_limit, pieces) = made?;
        // INVARIANT: Just created with these.
        let this = Self {
            qp: NonNull::new(qp).ok_or(ENOMEM)?,
            pd: pd.clone(),
            port,
            inline_limit,
            pieces,
            service: AtomicU8::new(IN_RESET),
            was_started: AtomicBool::new(false),
            left,
            _send: send.clone(),
            _receive: receive.clone(),
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
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

    /// Address of the queue pair, as completions give it ([`Completion::queue_pair`]).
    ///
    /// [`Completion::queue_pair`]: super::cq::Completion::queue_pair
    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        self.as_raw().addr()
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

    /// Takes the queue pair from Reset through Init and Ready to Receive to Ready to Send. It is
    /// for the partition with the P_Key at `pkey_index` of the port's table.
    ///
    /// # Errors
    ///
    /// The device's error; the queue pair is in Reset or wants [`Self::reset`].
    pub(crate) fn start(&self, qkey: u32, pkey_index: u16) -> Result {
        self.service.store(IN_SERVICE, Ordering::Release);
        let mut attributes = self.attributes(bindings::ib_qp_state_IB_QPS_INIT);
        attributes.qkey = qkey;
        attributes.pkey_index = pkey_index;
        self.modify(
            attributes,
            bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX
                | bindings::ib_qp_attr_mask_IB_QP_PORT
                | bindings::ib_qp_attr_mask_IB_QP_QKEY,
        )?;
        self.modify(self.attributes(bindings::ib_qp_state_IB_QPS_RTR), 0)?;
        self.modify(
            self.attributes(bindings::ib_qp_state_IB_QPS_RTS),
            bindings::ib_qp_attr_mask_IB_QP_SQ_PSN,
        )?;
        // Relaxed: this is called for a holder of the RTNL, and readers hold it, too.
        self.was_started.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns whether it was Ready to Send before. Some devices take no queue pair there a second
    /// time, and say `EINVAL` (irdma).
    pub(crate) fn was_started(&self) -> bool {
        self.was_started.load(Ordering::Relaxed)
    }

    /// Changes the key that received packets must carry, of a queue pair that is Ready to Send.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn set_qkey(&self, qkey: u32) -> Result {
        let mut attributes = self.attributes(bindings::ib_qp_state_IB_QPS_RTS);
        attributes.qkey = qkey;
        self.modify(attributes, bindings::ib_qp_attr_mask_IB_QP_QKEY)
    }

    /// Takes the queue pair back to Reset: the device forgets all work requests, and touches no
    /// memory of theirs any more.
    ///
    /// # Errors
    ///
    /// The device's error; see [`Self::recover`].
    pub(crate) fn reset(&self) -> Result {
        let done = self.modify(self.attributes(bindings::ib_qp_state_IB_QPS_RESET), 0);
        let service = if done.is_ok() { IN_RESET } else { LOST };
        self.service.store(service, Ordering::Release);
        done
    }

    /// Returns whether it is in Reset, where the device touches no memory for it.
    pub(crate) fn is_in_reset(&self) -> bool {
        self.service.load(Ordering::Acquire) == IN_RESET
    }

    /// Resets the queue pair if an earlier [`Self::reset`] failed. Returns whether it did so:
    /// requests posted before may have completed meanwhile.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn recover(&self) -> Result<bool> {
        let is_lost = self.service.load(Ordering::Acquire) == LOST;
        if is_lost {
            self.reset()?;
        }
        Ok(is_lost)
    }

    /// Takes the queue pair from Send Queue Error back to Ready to Send.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn resume(&self) -> Result {
        self.modify(self.attributes(bindings::ib_qp_state_IB_QPS_RTS), 0)
    }

    fn attributes(&self, state: bindings::ib_qp_state) -> bindings::ib_qp_attr {
        let mut attributes: bindings::ib_qp_attr = pin_init::zeroed();
        attributes.qp_state = state;
        attributes.port_num = self.port.get();
        attributes
    }

    fn modify(&self, mut attributes: bindings::ib_qp_attr, mask: u32) -> Result {
        // SAFETY: The queue pair is valid, the structure ours.
        kernel::error::to_result(unsafe {
            bindings::ib_modify_qp(
                self.as_raw(),
                &mut attributes,
                (mask | bindings::ib_qp_attr_mask_IB_QP_STATE) as i32,
            )
        })
    }

    /// The state, asked from the device.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn state(&self) -> Result<State> {
        let (mut attributes, mut init): (bindings::ib_qp_attr, bindings::ib_qp_init_attr) =
            pin_init::zeroed();
        // SAFETY: The queue pair is valid, the structures ours.
        kernel::error::to_result(unsafe {
            bindings::ib_query_qp(
                self.as_raw(),
                &mut attributes,
                bindings::ib_qp_attr_mask_IB_QP_STATE as i32,
                &mut init,
            )
        })?;
        Ok(match attributes.qp_state {
            bindings::ib_qp_state_IB_QPS_RTS => State::ReadyToSend,
            bindings::ib_qp_state_IB_QPS_SQE => State::SendQueueError,
            bindings::ib_qp_state_IB_QPS_ERR => State::Error,
            _ => State::Other,
        })
    }

    /// Lets the queue pair receive what is sent to `group`, which has the LID `lid` (0 on RoCE).
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn attach(&self, group: Gid, lid: u16) -> Result {
        let attachment = Attachment { group, lid };
        // A device may know attachments by their groups alone: those with other LIDs end first.
        let _ = self.release(|left| left.group == group && *left != attachment);
        // A device may take an attachment that it has, and `ib_core` would count it twice.
        if let Some(kept) = self.keep(&attachment) {
            return kept;
        }
        let mut gid = bindings::ib_gid { raw: group.bytes() };
        // SAFETY: The queue pair is valid, the GID ours.
        kernel::error::to_result(unsafe { bindings::ib_attach_mcast(self.as_raw(), &mut gid, lid) })
    }

    /// Detaches the queue pair from a group that [`Self::attach`] attached it to. If the device
    /// fails, that is tried again when the queue pair is attached to the group and when it is
    /// destroyed. Sleeps.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub(crate) fn detach(&self, group: Gid, lid: u16) -> Result {
        let attachment = Attachment { group, lid };
        let detached = self.try_to_detach(&attachment);
        detached.inspect_err(|_| self.leave_attached(attachment))
    }

    /// Does as [`Self::detach`] with a device that fails, without a command to it.
    pub(crate) fn detach_later(&self, group: Gid, lid: u16) {
        self.leave_attached(Attachment { group, lid });
    }

    fn leave_attached(&self, attachment: Attachment) {
        // Without memory, the queue pair stays for good: `ib_core` goes on to count this one.
        let _ = self.left.lock().push(attachment, GFP_KERNEL);
    }

    /// Has `ib_core` no longer count those attachments that were to end and are chosen.
    ///
    /// # Errors
    ///
    /// The device's first error. After one other than `EINVAL`, which is about that attachment
    /// alone, it is asked for no more of them.
    fn release(&self, is_chosen: impl Fn(&Attachment) -> bool) -> Result {
        let (mut released, mut has_failed) = (Ok(()), false);
        self.left.lock().retain(|attachment| {
            if has_failed || !is_chosen(attachment) {
                return true;
            }
            let uncounted = self.uncount(attachment).map_err(Counted::error);
            has_failed = uncounted.is_err_and(|error| error != EINVAL);
            released = released.and(uncounted);
            uncounted.is_err()
        });
        released
    }

    /// Has `ib_core` no longer count an attachment. It does so when the device detaches the queue
    /// pair, so a device that has lost the attachment is given it again.
    fn uncount(&self, attachment: &Attachment) -> core::result::Result<(), Counted> {
        self.try_to_detach(attachment).or_else(|_| {
            self.attach_uncounted(attachment)
                .map_err(Counted::NotAttached)?;
            self.try_to_detach(attachment).map_err(Counted::Attached)
        })
    }

    /// Has an attachment that was to end, and that `ib_core` still counts, end or go on. Returns
    /// `None` if there is none any more, or else whether the queue pair is attached.
    fn keep(&self, attachment: &Attachment) -> Option<Result> {
        let mut left = self.left.lock();
        let index = left.iter().position(|other| other == attachment)?;
        let kept = match self.uncount(attachment) {
            Ok(()) => None,
            Err(Counted::Attached(_)) => Some(Ok(())),
            Err(Counted::NotAttached(error)) => return Some(Err(error)),
        };
        let _ = left.remove(index);
        kept
    }

    fn try_to_detach(&self, attachment: &Attachment) -> Result {
        let mut gid = bindings::ib_gid {
            raw: attachment.group.bytes(),
        };
        // SAFETY: The queue pair is valid, the GID ours.
        kernel::error::to_result(unsafe {
            bindings::ib_detach_mcast(self.as_raw(), &mut gid, attachment.lid)
        })
    }

    /// Attaches the queue pair by the device's own operation: `ib_core` counts the attachment
    /// already.
    fn attach_uncounted(&self, attachment: &Attachment) -> Result {
        // SAFETY: The operations of a valid device do not change.
        let attach = unsafe { (*self.device().as_raw()).ops.attach_mcast }.ok_or(ENOTSUPP)?;
        let mut gid = bindings::ib_gid {
            raw: attachment.group.bytes(),
        };
        // SAFETY: By the type invariant the queue pair is valid, and it is a UD queue pair of the
        // device with that operation; `ib_attach_mcast` took this GID and LID for it before.
        kernel::error::to_result(unsafe { attach(self.as_raw(), &mut gid, attachment.lid) })
    }
}

// SAFETY: The queue pair is valid as long as the value lives. `service` is `IN_RESET` only while
// the queue pair is in Reset (type invariant); there the device has forgotten what was posted, and
// `takes_receives` refuses more.
unsafe impl<S: Notify, R: Notify> ReceiveTarget for QueuePair<S, R> {
    type Raw = bindings::ib_qp;

    fn as_raw(&self) -> *mut bindings::ib_qp {
        self.as_raw()
    }

    fn post_receive(&self) -> Option<PostReceive<bindings::ib_qp>> {
        // SAFETY: The operations of a valid device do not change.
        unsafe { (*self.device().as_raw()).ops.post_recv }
    }

    fn local_key(&self) -> u32 {
        self.pd.local_key()
    }

    fn takes_receives(&self) -> bool {
        !self.is_in_reset()
    }

    fn quiesce(&self) -> bool {
        self.is_in_reset()
    }

    fn report_left(&self, requests: usize) {
        self.device().report_left("receives", requests);
    }
}

/// Returns the creation flags for those abilities of the device that a queue pair is to use.
fn create_flags(device: &Device, port: PortNumber) -> u32 {
    let mut flags = 0;
    if device.cuts_segments(port) {
        flags |= bindings::ib_qp_create_flags_IB_QP_CREATE_IPOIB_UD_LSO as u32;
    }
    if device.can_block_loopback() {
        flags |= bindings::ib_qp_create_flags_IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK as u32;
    }
    flags
}

impl<S: Notify, R: Notify> Drop for QueuePair<S, R> {
    fn drop(&mut self) {
        // If it fails, so does the end of the queue pair, which is reported.
        let _ = self.release(|_| true);
        // SAFETY: By the type invariant valid; the rings on it hold it and are gone.
        let result = unsafe { bindings::ib_destroy_qp_user(self.as_raw(), core::ptr::null_mut()) };
        if result != 0 {
            // It is there still, and so is all that it uses.
            let used = (self.pd.clone(), self._send.clone(), self._receive.clone());
            core::mem::forget(used);
            self.device().report_undead("queue pair", result);
        }
    }
}
