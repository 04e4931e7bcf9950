// SPDX-License-Identifier: GPL-2.0-only

//! Work requests and what is reported of them (IBTA 10.8, 11.4, 11.6).

use super::packet::{
    Atomic,
    Remote,
    Tail, //
};
use super::wire::immdt::ImmDt;

/// The operation of a send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A SEND, with its extension.
    Send(Tail),
    /// RDMA WRITE, to this address and key.
    Write(Target, Option<ImmDt>),
    /// RDMA READ, from this address and key.
    Read(Target),
    /// An atomic operation on the word at this address and key. What it was goes into the scatter
    /// list, as eight bytes in the host's order.
    Atomic(Target, Atomic),
    /// Something that [`Queues::local`] does, in its place in the queue.
    ///
    /// [`Queues::local`]: super::shell::Queues::local
    Local(Local),
}

/// An address and a key of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The address of the first byte.
    pub address: u64,
    /// The remote key of the region.
    pub rkey: u32,
}

impl Target {
    /// Returns so many bytes of memory from there.
    pub(super) fn of(self, length: u32) -> Remote {
        Remote {
            address: self.address,
            rkey: self.rkey,
            length,
        }
    }
}

/// An operation that makes no packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Local {
    /// Fast registration of a memory region.
    Register,
    /// Local invalidate. It waits until all sends before it are complete, as a packet of them may
    /// have to be repeated out of the memory that it takes away. (The specification lets it wait
    /// only if it is fenced.)
    Invalidate,
}

/// A send that was posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// The operation that it asks for.
    pub operation: Operation,
    /// The number of bytes in its scatter/gather list or its inline data.
    pub length: u32,
    /// Whether its success makes a completion.
    pub signalled: bool,
    /// Whether the peer's completion should raise an event.
    pub solicited: bool,
    /// Whether it waits until READs and atomics before it are complete.
    pub fence: bool,
}

impl Work {
    /// Returns whether its answer carries data.
    pub(super) fn is_fetch(&self) -> bool {
        matches!(self.operation, Operation::Read(_) | Operation::Atomic(..))
    }

    /// The status of success, if that makes a completion.
    pub(super) fn success(&self) -> Option<Status> {
        self.signalled.then_some(Status::Success)
    }
}

/// The completion status of a work request (IBTA 11.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Completion without an error.
    Success,
    /// A message that is longer than any may be, or than the receive that it came into.
    LocalLength,
    /// An operation that this queue pair does not do.
    LocalOperation,
    /// A list of the request's own that names memory which it may not use.
    LocalProtection,
    /// The queue pair failed before its turn.
    Flushed,
    /// A registration or an invalidation that was refused.
    MemoryManagement,
    /// The peer's answer is none to this request.
    BadResponse,
    /// The peer takes no such request, or not of this length.
    RemoteInvalidRequest,
    /// The peer's memory may not be used in this way.
    RemoteAccess,
    /// The peer could not do it.
    RemoteOperation,
    /// The peer does not answer.
    RetryExceeded,
    /// The peer has no receive.
    RnrRetryExceeded,
}

impl Status {
    /// The number in `enum ib_wc_status`.
    pub const fn number(self) -> u8 {
        match self {
            Status::Success => 0,
            Status::LocalLength => 1,
            Status::LocalOperation => 2,
            Status::LocalProtection => 4,
            Status::Flushed => 5,
            Status::MemoryManagement => 6,
            Status::BadResponse => 7,
            Status::RemoteInvalidRequest => 9,
            Status::RemoteAccess => 10,
            Status::RemoteOperation => 11,
            Status::RetryExceeded => 12,
            Status::RnrRetryExceeded => 13,
        }
    }
}

/// The operation that took a receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// A SEND, with its extension.
    Send(Tail),
    /// An RDMA WRITE with immediate data.
    Write(ImmDt),
}

/// The end of a receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The status of the receive.
    pub status: Status,
    /// The number of bytes that came; 0 unless it ended well.
    pub length: u32,
    /// The operation that took it.
    pub delivery: Delivery,
    /// Whether the completion should raise an event.
    pub solicited: bool,
}

impl Received {
    /// Creates the end of a receive that failed.
    pub(super) fn failed(status: Status) -> Received {
        Received {
            status,
            length: 0,
            delivery: Delivery::Send(Tail::Plain),
            solicited: false,
        }
    }
}

/// An affiliated asynchronous event of the queue pair (IBTA 11.6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The first packet came before the queue pair was told to send (`IB_EVENT_COMM_EST`).
    CommunicationEstablished,
    /// All that was sent is complete (`IB_EVENT_SQ_DRAINED`).
    SendQueueDrained,
    /// No more receives will be taken from the shared queue (`IB_EVENT_QP_LAST_WQE_REACHED`).
    LastWqeReached,
    /// The peer asked for something that is not done here (`IB_EVENT_QP_REQ_ERR`).
    RequestError,
    /// The peer asked for memory that it may not use (`IB_EVENT_QP_ACCESS_ERR`).
    AccessError,
}
