// SPDX-License-Identifier: GPL-2.0-only

//! Queue pairs, as `ib_core` creates, modifies and destroys them.

use core::ptr::NonNull;

use kernel::{
    error::from_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    address,
    completion,
    device,
    object::Object,
    pd::Domain,
    region,
    shared_receive,
    udata, //
};
use crate::{
    bindings,
    hca::{
        limits,
        queue_pair::{
            Attributes,
            Make,
            QueuePair,
            State,
            Type, //
        }, //
    },
    transport::work::Event,
    wire::{
        psn::Psn,
        qpn::Qpn, //
    }, //
};

/// A queue pair of the kernel with ours.
pub(super) type Pair = Object<bindings::ib_qp, Arc<QueuePair>>;

/// The kernel's queue pair: a name for it in completions, and the way to its consumer.
///
/// # Invariants
///
/// The queue pair is valid until a grace period after [`QueuePair::end`] and [`QueuePair::stop`];
/// events are raised only before that. That of a test is of no queue pair, and is only compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle(NonNull<bindings::ib_qp>);

// SAFETY: The consumer may be called from any thread.
unsafe impl Send for Handle {}
// SAFETY: The consumer may be called from several threads at once.
unsafe impl Sync for Handle {}

impl Handle {
    /// Tells the consumer of an asynchronous event. No lock of its is held.
    pub(crate) fn raise(self, event: Event) {
        let number = match event {
            Event::CommunicationEstablished => bindings::ib_event_type_IB_EVENT_COMM_EST,
            Event::SendQueueDrained => bindings::ib_event_type_IB_EVENT_SQ_DRAINED,
            Event::LastWqeReached => bindings::ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED,
            Event::RequestError => bindings::ib_event_type_IB_EVENT_QP_REQ_ERR,
            Event::AccessError => bindings::ib_event_type_IB_EVENT_QP_ACCESS_ERR,
        };
        // SAFETY: By the type invariant valid.
        unsafe { bindings::softib_notify_qp(self.0.as_ptr(), number) };
    }

    pub(super) fn as_raw(self) -> *mut bindings::ib_qp {
        self.0.as_ptr()
    }

    /// Returns a name that is no queue pair's, for tests that only compare it.
    ///
    /// # Errors
    ///
    /// `EINVAL` for the number 0.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(crate) fn numbered(number: usize) -> Result<Self> {
        // INVARIANT: A test only compares it.
        NonNull::new(number as *mut bindings::ib_qp)
            .map(Self)
            .ok_or(EINVAL)
    }
}

fn type_of(number: bindings::ib_qp_type) -> Result<Type> {
    Ok(match number {
        bindings::ib_qp_type_IB_QPT_SMI => Type::Smi,
        bindings::ib_qp_type_IB_QPT_GSI => Type::Gsi,
        bindings::ib_qp_type_IB_QPT_UD => Type::Datagram,
        bindings::ib_qp_type_IB_QPT_UC => Type::Unreliable,
        bindings::ib_qp_type_IB_QPT_RC => Type::Reliable,
        _ => return Err(super::unsupported()),
    })
}

fn state_of(number: bindings::ib_qp_state) -> Result<State> {
    Ok(match number {
        bindings::ib_qp_state_IB_QPS_RESET => State::Reset,
        bindings::ib_qp_state_IB_QPS_INIT => State::Init,
        bindings::ib_qp_state_IB_QPS_RTR => State::ReadyToReceive,
        bindings::ib_qp_state_IB_QPS_RTS => State::ReadyToSend,
        bindings::ib_qp_state_IB_QPS_SQD => State::SendQueueDrained,
        bindings::ib_qp_state_IB_QPS_SQE => State::SendQueueError,
        bindings::ib_qp_state_IB_QPS_ERR => State::Error,
        _ => return Err(EINVAL),
    })
}

/// Creates a queue pair (`create_qp`).
///
/// # Safety
///
/// Called by `ib_core` with a new queue pair of a registered device and valid attributes; their
/// completion queues live as long as the queue pair.
pub(super) unsafe extern "C" fn create(
    qp: *mut bindings::ib_qp,
    init: *mut bindings::ib_qp_init_attr,
    data: *mut bindings::ib_udata,
) -> i32 {
    from_result(|| {
        // SAFETY: `ib_core` gives the data of the command, or null.
        unsafe { udata::refuse(data) }?;
        // SAFETY: The attributes are valid and the caller's alone; `ib_core` has filled in the
        // queue pair's device, one of ours, and its live domain.
        let (init, hca, domain) =
            unsafe { (&mut *init, device::hca((*qp).device), Domain::of((*qp).pd)) };
        hca.begin_command()?;
        // One for extended reliable connections comes without completion queues.
        let kind = type_of(init.qp_type)?;
        // `ib_core` checks them for the kernel's consumers, and not for all ways of programs.
        if init.send_cq.is_null() || init.recv_cq.is_null() {
            return Err(EINVAL);
        }
        let options = &hca.options;
        let blocks_loopback =
            bindings::ib_qp_create_flags_IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK as u32;
        let mut known = blocks_loopback;
        if options.tso && kind == Type::Datagram {
            known |= bindings::ib_qp_create_flags_IB_QP_CREATE_IPOIB_UD_LSO as u32;
        }
        if init.create_flags & !known != 0 {
            return Err(super::unsupported());
        }
        let cap = &mut init.cap;
        if cap.max_send_wr > options.max_wr
            || cap.max_recv_wr > options.max_wr
            || cap.max_send_sge > options.max_sge
            || cap.max_recv_sge > options.max_sge
            || cap.max_inline_data > options.max_inline
        {
            return Err(EINVAL);
        }
        let srq = init.srq;
        // SAFETY: `ib_core` calls this with completion queues and a shared queue that are live
        // and of this device.
        let make = unsafe {
            Make {
                kind,
                domain,
                // INVARIANT: `destroy` below waits.
                handle: Handle(NonNull::new(qp).ok_or(EINVAL)?),
                send_queue: completion::Queue::part(init.send_cq).clone(),
                receive_queue: completion::Queue::part(init.recv_cq).clone(),
                shared: (!srq.is_null()).then(|| shared_receive::Queue::part(srq).clone()),
                sends: cap.max_send_wr,
                receives: if srq.is_null() { cap.max_recv_wr } else { 0 },
                send_segments: cap.max_send_sge,
                receive_segments: cap.max_recv_sge,
                inline: cap.max_inline_data,
                signal_all: init.sq_sig_type == bindings::ib_sig_type_IB_SIGNAL_ALL_WR,
                own_multicast: options.own_multicast && init.create_flags & blocks_loopback == 0,
                port: init.port_num as u8,
            }
        };
        let pair = QueuePair::new(hca, make)?;
        // SAFETY: `ib_core` allocated the queue pair with room for our part, and gives it here for
        // the first time.
        unsafe {
            (*qp).qp_num = pair.number.get();
            Pair::create(qp, pair);
        }
        Ok(0)
    })
}

/// Destroys a queue pair (`destroy_qp`).
///
/// # Safety
///
/// Called by `ib_core` with a live queue pair, for the last time.
pub(super) unsafe extern "C" fn destroy(
    qp: *mut bindings::ib_qp,
    _: *mut bindings::ib_udata,
) -> i32 {
    // SAFETY: The queue pair is live, so `create` has written our part; nothing uses it after this
    // call.
    let pair = unsafe { Pair::destroy(qp) };
    pair.hca.take_time();
    pair.end();
    pair.stop();
    // Packets that were on their way to the queue pair when it ended are done with it after this,
    // and with its completion queues.
    // SAFETY: Called where one may sleep.
    unsafe { bindings::synchronize_rcu_expedited() };
    // Nothing new; what came meanwhile goes.
    pair.end();
    pair.send_queue.settle();
    pair.receive_queue.settle();
    0
}

/// Changes the state and the attributes of a queue pair (`modify_qp`).
///
/// # Safety
///
/// Called by `ib_core` with a live queue pair and valid attributes.
pub(super) unsafe extern "C" fn modify(
    qp: *mut bindings::ib_qp,
    attributes: *mut bindings::ib_qp_attr,
    mask: i32,
    data: *mut bindings::ib_udata,
) -> i32 {
    from_result(|| {
        // SAFETY: `ib_core` gives the data of the command, or null.
        unsafe { udata::refuse(data) }?;
        // SAFETY: The queue pair is live, so `create` has written our part; the attributes are
        // valid.
        let (pair, given) = unsafe { (Pair::part(qp), &*attributes) };
        pair.hca.begin_command()?;
        let _one_at_a_time = pair.modifying.lock();
        let mask = mask as u32;
        let (current, _) = pair.query();
        let has = |bit: bindings::ib_qp_attr_mask| mask & bit != 0;
        let state = has(bindings::ib_qp_attr_mask_IB_QP_STATE)
            .then(|| state_of(given.qp_state))
            .transpose()?;
        // The state that the caller thinks it has is no reason to believe so.
        if has(bindings::ib_qp_attr_mask_IB_QP_CUR_STATE)
            && state_of(given.cur_qp_state)? != current
        {
            return Err(EINVAL);
        }
        let to = state.unwrap_or(current);
        let (from, to) = (current as u32, to as u32);
        // SAFETY: A function of its arguments.
        if !unsafe { bindings::ib_modify_qp_is_ok(from, to, (*qp).qp_type, mask) } {
            return Err(EINVAL);
        }
        check(pair, given, mask)?;
        pair.hca.may_change(pair.kind, current)?;
        pair.modify(state, |known| apply(known, given, mask))?;
        Ok(0)
    })
}

/// Checks whether the values are ones that there can be (IBTA 11.2.5.2).
fn check(pair: &QueuePair, given: &bindings::ib_qp_attr, mask: u32) -> Result {
    let has = |bit: bindings::ib_qp_attr_mask| mask & bit != 0;
    let ports = u32::from(pair.hca.ports());
    if has(bindings::ib_qp_attr_mask_IB_QP_PORT) && !(1..=ports).contains(&given.port_num) {
        return Err(EINVAL);
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX)
        && usize::from(given.pkey_index) >= crate::hca::port::PKEYS
    {
        return Err(EINVAL);
    }
    // The port carries no longer packets.
    let largest_mtu = u32::from(pair.hca.options.mtu);
    if has(bindings::ib_qp_attr_mask_IB_QP_PATH_MTU) && !(1..=largest_mtu).contains(&given.path_mtu)
    {
        return Err(EINVAL);
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_ALT_PATH) {
        return Err(EINVAL);
    }
    let numbers = [
        (
            bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC,
            given.max_rd_atomic,
            limits::READS,
        ),
        (
            bindings::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC,
            given.max_dest_rd_atomic,
            limits::READS,
        ),
        (
            bindings::ib_qp_attr_mask_IB_QP_TIMEOUT,
            given.timeout,
            limits::TIMER,
        ),
        (
            bindings::ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER,
            given.min_rnr_timer,
            limits::TIMER,
        ),
        (
            bindings::ib_qp_attr_mask_IB_QP_RETRY_CNT,
            given.retry_cnt,
            limits::RETRIES,
        ),
        (
            bindings::ib_qp_attr_mask_IB_QP_RNR_RETRY,
            given.rnr_retry,
            limits::RETRIES,
        ),
    ];
    let is_beyond = |&(bit, number, most): &(bindings::ib_qp_attr_mask, u8, u32)| {
        has(bit) && u32::from(number) > most
    };
    if numbers.iter().any(is_beyond) {
        return Err(EINVAL);
    }
    Ok(())
}

/// Takes over what was given.
fn apply(known: &mut Attributes, given: &bindings::ib_qp_attr, mask: u32) {
    let has = |bit: bindings::ib_qp_attr_mask| mask & bit != 0;
    if has(bindings::ib_qp_attr_mask_IB_QP_PORT) {
        known.port = given.port_num as u8;
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX) {
        known.pkey_index = given.pkey_index;
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_QKEY) {
        known.qkey = given.qkey;
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS) {
        known.access = region::rights(given.qp_access_flags as u32);
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_PATH_MTU) {
        known.path_mtu = given.path_mtu as u8;
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_DEST_QPN) {
        known.destination = Qpn::new(given.dest_qp_num & Qpn::MAX).unwrap_or(known.destination);
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_RQ_PSN) {
        known.receive_psn = Psn::wrapping(given.rq_psn);
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_SQ_PSN) {
        known.send_psn = Psn::wrapping(given.sq_psn);
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC) {
        known.max_reads = given.max_rd_atomic;
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC) {
        known.max_reads_of_peer = given.max_dest_rd_atomic;
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER) {
        known.min_rnr_timer = given.min_rnr_timer;
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_TIMEOUT) {
        known.timeout = given.timeout;
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_RETRY_CNT) {
        known.retry_count = given.retry_cnt;
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_RNR_RETRY) {
        known.rnr_retry = given.rnr_retry;
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_STATE)
        && given.qp_state == bindings::ib_qp_state_IB_QPS_SQD
    {
        known.notify_drained = has(bindings::ib_qp_attr_mask_IB_QP_EN_SQD_ASYNC_NOTIFY)
            && given.en_sqd_async_notify != 0;
    }
    if has(bindings::ib_qp_attr_mask_IB_QP_AV) {
        known.address = Some(address::vector(&given.ah_attr));
    }
}

/// Returns the attributes of a queue pair (`query_qp`).
///
/// # Safety
///
/// Called by `ib_core` with a live queue pair and room for the attributes.
pub(super) unsafe extern "C" fn query(
    qp: *mut bindings::ib_qp,
    out: *mut bindings::ib_qp_attr,
    _mask: i32,
    init: *mut bindings::ib_qp_init_attr,
) -> i32 {
    from_result(|| {
        // SAFETY: The queue pair is live, so `create` has written our part; both structures are the
        // caller's alone.
        let (pair, out, init) = unsafe { (Pair::part(qp), &mut *out, &mut *init) };
        pair.hca.begin_command()?;
        let (state, known) = pair.query();
        *out = bindings::ib_qp_attr {
            qp_state: state as u32,
            cur_qp_state: state as u32,
            path_mtu: known.path_mtu.into(),
            qkey: known.qkey,
            rq_psn: known.receive_psn.get(),
            sq_psn: known.send_psn.get(),
            dest_qp_num: known.destination.get(),
            qp_access_flags: region::flags_of(known.access) as i32,
            pkey_index: known.pkey_index,
            max_rd_atomic: known.max_reads,
            max_dest_rd_atomic: known.max_reads_of_peer,
            min_rnr_timer: known.min_rnr_timer,
            port_num: known.port.into(),
            timeout: known.timeout,
            retry_cnt: known.retry_count,
            rnr_retry: known.rnr_retry,
            sq_draining: pair.is_draining().into(),
            en_sqd_async_notify: known.notify_drained.into(),
            ..Default::default()
        };
        if let Some(vector) = &known.address {
            out.ah_attr = address::attributes(vector);
        }
        out.cap = bindings::ib_qp_cap {
            max_send_wr: pair.sends,
            max_recv_wr: pair.receives,
            max_send_sge: pair.send_segments,
            max_recv_sge: pair.receive_segments,
            max_inline_data: pair.inline,
            ..Default::default()
        };
        init.cap = out.cap;
        // SAFETY: `ib_core` filled in these fields of the live queue pair when it was made.
        unsafe {
            init.event_handler = (*qp).event_handler;
            init.qp_context = (*qp).qp_context;
            init.send_cq = (*qp).send_cq;
            init.recv_cq = (*qp).recv_cq;
            init.srq = (*qp).srq;
            init.qp_type = (*qp).qp_type;
        }
        init.sq_sig_type = if pair.signal_all {
            bindings::ib_sig_type_IB_SIGNAL_ALL_WR
        } else {
            bindings::ib_sig_type_IB_SIGNAL_REQ_WR
        };
        Ok(0)
    })
}
