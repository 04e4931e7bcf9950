// SPDX-License-Identifier: GPL-2.0-only

//! Posting work requests to queue pairs and to shared receive queues.

use kernel::{
    prelude::*,
    sync::{
        rcu,
        Arc, //
    }, //
};

use super::{
    address,
    device,
    inline_data::InlineData,
    memory::Segment,
    pd::Domain,
    queue_pair::Pair,
    region,
    shared_receive, //
};
use crate::{
    bindings,
    hca::{
        completion::Kind,
        queue_pair::{
            Chain,
            Datagram,
            Destination,
            QueuePair,
            Type, //
        },
        region::Registration,
        send::{
            Local,
            Request, //
        }, //
    },
    net::burst::Burst,
    transport::{
        packet::{
            Atomic,
            Tail, //
        },
        work::{
            self,
            Operation,
            Target,
            Work, //
        }, //
    },
    wire::{
        immdt::ImmDt,
        offload::{
            Cut,
            MAX_HEADER, //
        },
        qpn::Qpn, //
    }, //
};

/// Posts a chain of sends to a queue pair (`post_send`).
///
/// # Safety
///
/// Called with a live queue pair and a chain of valid requests of its kind.
pub(super) unsafe extern "C" fn send(
    qp: *mut bindings::ib_qp,
    mut next: *const bindings::ib_send_wr,
    bad: *mut *const bindings::ib_send_wr,
) -> i32 {
    // SAFETY: `qp` is live, and each queue pair of the device was made by `Pair::create`.
    let pair = unsafe { Pair::part(qp) };
    if pair.domain.is_of_program() {
        // SAFETY: `ib_uverbs` posts for programs; it has put the requests and their lists into
        // memory of its own.
        return unsafe { send_of_program(pair, next, bad) };
    }
    let mut result = 0;
    let mut burst = Burst::begin();
    // The chain lets go of a peer's queue pair before that can end: the end of a queue pair waits
    // for this RCU section.
    let _guard = rcu::read_lock();
    let mut chain = pair.begin_chain();
    while !next.is_null() {
        // SAFETY: `next` is a request of the chain that `qp` was called with, of its kind.
        if let Err(error) = unsafe { post_one(pair, &mut chain, next) } {
            // SAFETY: The caller gives room for the request that failed.
            unsafe { *bad = next };
            result = error.to_errno();
            break;
        }
        // SAFETY: `next` is a valid request of the chain, whose link is the next one or null.
        next = unsafe { (*next).next };
        burst.sent_one();
    }
    pair.end_chain(chain);
    if pair.kind.is_connected() {
        pair.send_posted();
    }
    result
}

/// Posts the requests of a program. Sleeps.
///
/// # Safety
///
/// The caller keeps to the contract of [`send`], and nobody else has the lists of the requests
/// during the call.
unsafe fn send_of_program(
    pair: &Arc<QueuePair>,
    mut next: *const bindings::ib_send_wr,
    bad: *mut *const bindings::ib_send_wr,
) -> i32 {
    while !next.is_null() {
        // SAFETY: The caller gives a chain of valid requests, whose lists are nobody else's.
        if let Err(error) = unsafe { send_one_of_program(pair, next) } {
            // SAFETY: The caller has room for it, as it keeps to the contract of `send`.
            unsafe { *bad = next };
            return error.to_errno();
        }
        // SAFETY: The caller's request is valid, as it keeps to the contract of `send`.
        next = unsafe { (*next).next };
    }
    0
}

/// Posts one request of a program. Sleeps.
///
/// # Safety
///
/// The caller keeps to the contract of [`send_of_program`], for one request.
unsafe fn send_one_of_program(
    pair: &Arc<QueuePair>,
    request: *const bindings::ib_send_wr,
) -> Result {
    // SAFETY: The caller gives a valid request, whose list is nobody else's. The call below uses
    // the data before it is dropped.
    let _data = unsafe { InlineData::take(pair, &*request) }?;
    // SAFETY: The caller gives a request of the queue pair's kind: one for datagrams is the first
    // part of a `struct ib_ud_wr`.
    if !pair.kind.is_connected() && unsafe { !has_own_address(pair, request) } {
        return Err(EINVAL);
    }
    let guard = rcu::read_lock();
    let mut chain = pair.begin_chain();
    // SAFETY: The caller gives a valid request.
    let posted = unsafe { post_one(pair, &mut chain, request) };
    pair.end_chain(chain);
    drop(guard);
    if pair.kind.is_connected() {
        pair.send_posted();
    }
    posted
}

/// Returns whether the address handle of a request is of the queue pair's protection domain (IBTA
/// 10.2.2.1).
///
/// # Safety
///
/// The caller keeps to the contract of [`datagram`].
unsafe fn has_own_address(pair: &QueuePair, request: *const bindings::ib_send_wr) -> bool {
    // SAFETY: The caller gives a `struct ib_ud_wr`, and keeps its handle, with the handle's domain.
    unsafe {
        let ah = (*request.cast::<bindings::ib_ud_wr>()).ah;
        !ah.is_null() && Domain::of((*ah).pd) == pair.domain
    }
}

/// Posts one send of a chain.
///
/// # Safety
///
/// The caller keeps to the contract of [`send`], for one request.
#[inline]
unsafe fn post_one(
    pair: &Arc<QueuePair>,
    chain: &mut Chain,
    request: *const bindings::ib_send_wr,
) -> Result {
    pair.hca.take_request_of(pair.kind)?;
    if pair.kind.is_connected() {
        // SAFETY: The request is valid, and of a connected queue pair as `pair` is.
        return pair.post_send(unsafe { connected(pair, request) }?);
    }
    // SAFETY: The request is valid, and of a queue pair without connections as `pair` is.
    pair.post_datagram(chain, &unsafe { datagram(pair, request) }?)
}

/// The name that a request's consumer gave it.
fn id_of(request: &bindings::ib_send_wr) -> u64 {
    // SAFETY: Both members are as large as a number.
    unsafe { request.__bindgen_anon_1.wr_id }
}

/// A request's immediate data, as it stands in packets.
fn immediate(request: &bindings::ib_send_wr) -> ImmDt {
    // SAFETY: Both members of the union are 32-bit numbers.
    ImmDt::from_bytes(unsafe { request.ex.imm_data }.to_ne_bytes())
}

/// The key that a request invalidates.
fn key_of(request: &bindings::ib_send_wr) -> u32 {
    // SAFETY: Both members of the union are 32-bit numbers.
    unsafe { request.ex.invalidate_rkey }
}

/// Reads a request of a connected queue pair.
///
/// # Safety
///
/// The caller keeps to the contract of [`send`]. Such a request is the first part of a larger
/// structure, which its operation determines.
unsafe fn connected<'a>(
    pair: &QueuePair,
    request: *const bindings::ib_send_wr,
) -> Result<Request<'a>> {
    // SAFETY: The request is valid while it is posted.
    let common = unsafe { &*request };
    let flags = common.send_flags;
    // SAFETY: The list of a valid request has as many entries as its count.
    let segments = unsafe { Segment::list(common.sg_list, common.num_sge, pair.send_segments) }?;
    // SAFETY: The request is valid, and begins the structure that its operation says.
    let (kind, operation, local) = unsafe { operation(request) }?;
    let length: u64 = match kind {
        Kind::Register | Kind::Invalidate => 0,
        _ => segments.iter().map(|segment| segment.len() as u64).sum(),
    };
    Ok(Request {
        id: id_of(common),
        kind,
        work: Work {
            operation,
            length: u32::try_from(length)?,
            signalled: flags & bindings::ib_send_flags_IB_SEND_SIGNALED != 0,
            solicited: flags & bindings::ib_send_flags_IB_SEND_SOLICITED != 0,
            fence: flags & bindings::ib_send_flags_IB_SEND_FENCE != 0,
        },
        local,
        inline: flags & bindings::ib_send_flags_IB_SEND_INLINE != 0,
        segments: if length == 0 { &[] } else { segments },
    })
}

/// Returns the operation of a request: as its completion names it, as the protocol does it, and
/// as the device does it without a packet.
///
/// # Safety
///
/// The caller keeps to the contract of [`connected`].
unsafe fn operation(request: *const bindings::ib_send_wr) -> Result<(Kind, Operation, Local)> {
    // SAFETY: The request is valid while it is posted.
    let common = unsafe { &*request };
    // SAFETY: This is called for operations whose request begins a `struct ib_rdma_wr`.
    let target = || unsafe {
        let request = &*request.cast::<bindings::ib_rdma_wr>();
        Target {
            address: request.remote_addr,
            rkey: request.rkey,
        }
    };
    Ok(match common.opcode {
        bindings::ib_wr_opcode_IB_WR_SEND => remote(Kind::Send, Operation::Send(Tail::Plain)),
        bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM => remote(
            Kind::Send,
            Operation::Send(Tail::Immediate(immediate(common))),
        ),
        bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV => remote(
            Kind::Send,
            Operation::Send(Tail::Invalidate(key_of(common))),
        ),
        bindings::ib_wr_opcode_IB_WR_RDMA_WRITE => {
            remote(Kind::Write, Operation::Write(target(), None))
        }
        bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM => remote(
            Kind::Write,
            Operation::Write(target(), Some(immediate(common))),
        ),
        bindings::ib_wr_opcode_IB_WR_RDMA_READ => remote(Kind::Read, Operation::Read(target())),
        bindings::ib_wr_opcode_IB_WR_ATOMIC_CMP_AND_SWP
        | bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD => {
            // SAFETY: A request with this operation begins a `struct ib_atomic_wr`.
            atomic(unsafe { &*request.cast::<bindings::ib_atomic_wr>() })
        }
        bindings::ib_wr_opcode_IB_WR_LOCAL_INV => (
            Kind::Invalidate,
            Operation::Local(work::Local::Invalidate),
            Local::Invalidate(key_of(common)),
        ),
        bindings::ib_wr_opcode_IB_WR_REG_MR => {
            // SAFETY: A request with this operation begins a `struct ib_reg_wr`, whose region is
            // live.
            unsafe { registration(&*request.cast::<bindings::ib_reg_wr>()) }?
        }
        _ => return Err(EINVAL),
    })
}

/// An operation that makes packets.
fn remote(kind: Kind, operation: Operation) -> (Kind, Operation, Local) {
    (kind, operation, Local::Nothing)
}

fn atomic(request: &bindings::ib_atomic_wr) -> (Kind, Operation, Local) {
    let target = Target {
        address: request.remote_addr,
        rkey: request.rkey,
    };
    if request.wr.opcode == bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD {
        let add = request.compare_add;
        return remote(
            Kind::FetchAdd,
            Operation::Atomic(target, Atomic::FetchAdd { add }),
        );
    }
    let operation = Atomic::CompareSwap {
        compare: request.compare_add,
        swap: request.swap,
    };
    remote(Kind::CompareSwap, Operation::Atomic(target, operation))
}

/// A registration of what was mapped.
///
/// # Errors
///
/// `EINVAL` for a region whose addresses begin at 0.
///
/// # Safety
///
/// The region of the request is live.
unsafe fn registration(request: &bindings::ib_reg_wr) -> Result<(Kind, Operation, Local)> {
    if request.access as u32 & bindings::ib_access_flags_IB_ZERO_BASED != 0 {
        return Err(EINVAL);
    }
    // SAFETY: The caller has a live region, which `register` made with our part.
    let (mr, part) = unsafe { (&*request.mr, region::Registered::part(request.mr)) };
    let wanted = Registration {
        key: request.key,
        rights: region::rights(request.access as u32),
        address: mr.iova,
        length: mr.length,
        page_size: mr.page_size as usize,
    };
    Ok((
        Kind::Register,
        Operation::Local(work::Local::Register),
        Local::Register(part.region.clone(), wanted),
    ))
}

/// Reads a request of a datagram queue pair.
///
/// # Safety
///
/// The caller keeps to the contract of [`send`]. Such a request is the first part of a
/// `struct ib_ud_wr`.
unsafe fn datagram<'a>(
    pair: &QueuePair,
    request: *const bindings::ib_send_wr,
) -> Result<Datagram<'a>> {
    // SAFETY: A valid request of a datagram queue pair begins a `struct ib_ud_wr`.
    let (common, more) = unsafe { (&*request, &*request.cast::<bindings::ib_ud_wr>()) };
    let options = &pair.hca.options;
    let flags = common.send_flags;
    let inline = flags & bindings::ib_send_flags_IB_SEND_INLINE != 0;
    // SAFETY: The list of a valid request has as many entries as its count.
    let segments = unsafe { Segment::list(common.sg_list, common.num_sge, pair.send_segments) }?;
    let length: usize = segments.iter().map(|segment| segment.len()).sum();
    if inline && length > pair.inline as usize {
        return Err(EINVAL);
    }
    let (immediate, cut) = match common.opcode {
        bindings::ib_wr_opcode_IB_WR_SEND => (None, None),
        bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM => (Some(immediate(common)), None),
        bindings::ib_wr_opcode_IB_WR_LSO
            if options.tso && pair.kind == Type::Datagram && !inline =>
        {
            // SAFETY: The header of a valid request is there as long as the request is posted.
            (None, Some(unsafe { cut(more, length) }?))
        }
        _ => return Err(EINVAL),
    };
    let checksum = flags & bindings::ib_send_flags_IB_SEND_IP_CSUM != 0;
    if more.ah.is_null() || (checksum && !options.checksum) {
        return Err(EINVAL);
    }
    Ok(Datagram {
        request: id_of(common),
        signalled: flags & bindings::ib_send_flags_IB_SEND_SIGNALED != 0,
        solicited: flags & bindings::ib_send_flags_IB_SEND_SOLICITED != 0,
        immediate,
        inline,
        header: &[],
        from: 0,
        length,
        segments,
        checksum,
        cut,
        to: Destination {
            // SAFETY: The handle lives until the request is complete, and `create` has written its
            // part.
            address: unsafe { address::Handle::part(more.ah) },
            queue_pair: Qpn::new(more.remote_qpn).ok_or(EINVAL)?,
            qkey: more.remote_qkey,
            pkey_index: more.pkey_index,
        },
    })
}

/// Returns the cut of a long segment with `length` bytes of data.
///
/// # Safety
///
/// The caller keeps to the contract of [`send`]: the header is there as long as the request is
/// posted.
unsafe fn cut<'a>(request: &bindings::ib_ud_wr, length: usize) -> Result<Cut<'a>> {
    let (size, header) = (
        usize::try_from(request.mss)?,
        usize::try_from(request.hlen)?,
    );
    if request.header.is_null() || header > MAX_HEADER {
        return Err(EINVAL);
    }
    // SAFETY: The header is not null, and has `hlen` bytes as long as the request is posted.
    let header = unsafe { core::slice::from_raw_parts(request.header.cast::<u8>(), header) };
    Cut::new(header, size, length).ok_or(EINVAL)
}

/// Reads the parts of a chain of receives on a queue for receives of so many segments.
///
/// # Safety
///
/// The chain is valid.
unsafe fn receives(
    mut next: *const bindings::ib_recv_wr,
    bad: *mut *const bindings::ib_recv_wr,
    most: u32,
    mut post: impl FnMut(u64, &[Segment]) -> Result,
) -> i32 {
    while !next.is_null() {
        // SAFETY: The chain is valid, so each request is, until the link is null.
        let request = unsafe { &*next };
        // SAFETY: The list has as many entries as its count; both members of the union are as large
        // as a number, and all bits make one.
        let (id, segments) = unsafe {
            (
                request.__bindgen_anon_1.wr_id,
                Segment::list(request.sg_list, request.num_sge, most),
            )
        };
        if let Err(error) = segments.and_then(|segments| post(id, segments)) {
            // SAFETY: The caller gives room for the request that failed.
            unsafe { *bad = next };
            return error.to_errno();
        }
        next = request.next;
    }
    0
}

/// Posts a chain of receives to a queue pair (`post_recv`).
///
/// # Safety
///
/// Called with a live queue pair and a chain of valid requests.
pub(super) unsafe extern "C" fn receive(
    qp: *mut bindings::ib_qp,
    first: *const bindings::ib_recv_wr,
    bad: *mut *const bindings::ib_recv_wr,
) -> i32 {
    // SAFETY: `qp` is live and was made by `Pair::create`; the chain is valid.
    unsafe {
        let pair = Pair::part(qp);
        receives(first, bad, pair.receive_segments, |id, segments| {
            pair.hca.take_request_of(pair.kind)?;
            pair.post_receive(id, segments)
        })
    }
}

/// Posts a chain of receives to a shared receive queue (`post_srq_recv`).
///
/// # Safety
///
/// Called with a live shared queue and a chain of valid requests.
pub(super) unsafe extern "C" fn receive_shared(
    srq: *mut bindings::ib_srq,
    first: *const bindings::ib_recv_wr,
    bad: *mut *const bindings::ib_recv_wr,
) -> i32 {
    // SAFETY: `srq` is live and was made by `Queue::create`; the chain is valid.
    unsafe {
        let queue = shared_receive::Queue::part(srq);
        let hca = device::hca((*srq).device);
        receives(first, bad, queue.segments_each, |id, segments| {
            hca.faults.take_request()?;
            queue.post(id, segments)
        })
    }
}
