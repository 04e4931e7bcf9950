// SPDX-License-Identifier: GPL-2.0-only

//! Packets of a connected queue pair: what stands after the base transport header, and the payload
//! (IBTA 9.2 to 9.4).

use super::wire::aeth::{
    Aeth,
    Syndrome, //
};
use super::wire::atomic::{
    AtomicAckEth,
    AtomicEth, //
};
use super::wire::immdt::{
    Ieth,
    ImmDt, //
};
use super::wire::opcode::Operation;
use super::wire::packet::Extension;
use super::wire::psn::Psn;
use super::wire::reth::Reth;

/// Memory of a responder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remote {
    /// The address of the first byte.
    pub address: u64,
    /// The remote key of the region.
    pub rkey: u32,
    /// The length in bytes.
    pub length: u32,
}

impl Remote {
    /// Returns the memory that is left after that many bytes. Addresses wrap around; no region
    /// does.
    pub(super) fn skip(self, bytes: u32) -> Remote {
        Remote {
            address: self.address.wrapping_add(u64::from(bytes)),
            length: self.length.saturating_sub(bytes),
            ..self
        }
    }

    /// Returns the first bytes of the memory, that many at most.
    pub(super) fn first(self, bytes: u32) -> Remote {
        Remote {
            length: self.length.min(bytes),
            ..self
        }
    }
}

/// An atomic operation on a word of eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Atomic {
    /// Puts `swap` in its place if it is `compare`.
    CompareSwap {
        /// The value that the word has to have.
        compare: u64,
        /// The value that the word gets.
        swap: u64,
    },
    /// Adds to it, losing the carry.
    FetchAdd {
        /// The value that is added to the word.
        add: u64,
    },
}

impl Atomic {
    /// Returns the new value of the word that is now `original`.
    pub fn apply(self, original: u64) -> u64 {
        match self {
            Atomic::CompareSwap { compare, swap } if compare == original => swap,
            Atomic::CompareSwap { .. } => original,
            Atomic::FetchAdd { add } => original.wrapping_add(add),
        }
    }
}

/// The extension that comes with the last packet of a SEND.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// No extension: data alone.
    Plain,
    /// Immediate data, for the receiver's completion.
    Immediate(ImmDt),
    /// The remote key that the receiver invalidates.
    Invalidate(u32),
}

/// A packet from requester to responder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// The first of several packets of a SEND.
    SendFirst,
    /// A packet of a SEND between the first and the last.
    SendMiddle,
    /// The last of several.
    SendLast(Tail),
    /// A SEND in one packet.
    SendOnly(Tail),
    /// The first of several packets of an RDMA WRITE.
    WriteFirst(Remote),
    /// A packet of an RDMA WRITE between the first and the last.
    WriteMiddle,
    /// The last of several.
    WriteLast(Option<ImmDt>),
    /// An RDMA WRITE in one packet.
    WriteOnly(Remote, Option<ImmDt>),
    /// An RDMA READ of that memory.
    Read(Remote),
    /// An atomic operation; the length is 8.
    Atomic(Remote, Atomic),
}

/// The report of an answer on the request (AETH).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acknowledgement {
    /// The kind of acknowledgement, positive or negative.
    pub syndrome: Syndrome,
    /// The number of messages that the responder has completed, 24 bits (MSN).
    pub msn: u32,
}

/// A packet from responder to requester.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Response {
    /// The first of several packets of the data read.
    ReadFirst(Acknowledgement),
    /// A packet of the data read between the first and the last.
    ReadMiddle,
    /// The last of several.
    ReadLast(Acknowledgement),
    /// The data read in one packet.
    ReadOnly(Acknowledgement),
    /// An acknowledgement, positive or negative.
    Acknowledge(Acknowledgement),
    /// The value of an atomic operation's word before the operation.
    Atomic(Acknowledgement, u64),
}

/// The meaning of a packet, with that of its extended headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// A request, from requester to responder.
    Request(Request),
    /// An answer, from responder to requester.
    Response(Response),
}

impl From<Reth> for Remote {
    fn from(reth: Reth) -> Remote {
        Remote {
            address: reth.address(),
            rkey: reth.rkey(),
            length: reth.length(),
        }
    }
}

impl From<Remote> for Reth {
    fn from(remote: Remote) -> Reth {
        Reth::new(remote.address, remote.rkey, remote.length)
    }
}

impl Atomic {
    /// The word and the operation that a header asks for.
    fn of(operation: Operation, header: &AtomicEth) -> Request {
        let remote = Remote {
            address: header.address(),
            rkey: header.rkey(),
            length: 8,
        };
        let atomic = if operation == Operation::CompareSwap {
            Atomic::CompareSwap {
                compare: header.compare(),
                swap: header.swap_add(),
            }
        } else {
            Atomic::FetchAdd {
                add: header.swap_add(),
            }
        };
        Request::Atomic(remote, atomic)
    }

    fn header(self, remote: &Remote) -> AtomicEth {
        let (swap_add, compare) = match self {
            Atomic::CompareSwap { compare, swap } => (swap, compare),
            Atomic::FetchAdd { add } => (add, 0),
        };
        AtomicEth::new(remote.address, remote.rkey, swap_add, compare)
    }
}

impl Acknowledgement {
    fn of(header: Aeth) -> Option<Acknowledgement> {
        Some(Acknowledgement {
            syndrome: header.syndrome().ok()?,
            msn: header.msn(),
        })
    }

    fn header(&self) -> Aeth {
        Aeth::new(self.syndrome, self.msn)
    }
}

impl Body {
    /// Reads a packet of that operation with these extended headers.
    ///
    /// `None` if a header is missing, the syndrome of an answer is reserved, or the operation is
    /// none of a connection: such a packet is to be dropped.
    pub fn of(operation: Operation, extension: &Extension) -> Option<Body> {
        if operation.is_response() {
            Response::of(operation, extension).map(Body::Response)
        } else {
            Request::of(operation, extension).map(Body::Request)
        }
    }

    /// The operation that stands in the base transport header.
    pub fn operation(&self) -> Operation {
        match self {
            Body::Request(request) => request.operation(),
            Body::Response(response) => response.operation(),
        }
    }

    /// The extended headers between the base transport header and the payload.
    pub fn extension(&self) -> Extension {
        match self {
            Body::Request(request) => request.extension(),
            Body::Response(response) => response.extension(),
        }
    }
}

impl Tail {
    fn of(operation: Operation, extension: &Extension) -> Option<Tail> {
        if operation.has_immediate() {
            extension.immediate.map(Tail::Immediate)
        } else if operation.has_invalidate() {
            extension
                .invalidate
                .map(|header| Tail::Invalidate(header.rkey()))
        } else {
            Some(Tail::Plain)
        }
    }

    fn extension(self) -> Extension {
        let none = Extension::default();
        match self {
            Tail::Plain => none,
            Tail::Immediate(immediate) => Extension {
                immediate: Some(immediate),
                ..none
            },
            Tail::Invalidate(rkey) => Extension {
                invalidate: Some(Ieth::new(rkey)),
                ..none
            },
        }
    }
}

impl Request {
    fn of(operation: Operation, extension: &Extension) -> Option<Request> {
        let tail = || Tail::of(operation, extension);
        let remote = || extension.reth.map(Remote::from);
        let immediate = match operation.has_immediate() {
            true => Some(extension.immediate?),
            false => None,
        };
        Some(match operation {
            Operation::SendFirst => Request::SendFirst,
            Operation::SendMiddle => Request::SendMiddle,
            Operation::SendLast | Operation::SendLastImmediate | Operation::SendLastInvalidate => {
                Request::SendLast(tail()?)
            }
            Operation::SendOnly | Operation::SendOnlyImmediate | Operation::SendOnlyInvalidate => {
                Request::SendOnly(tail()?)
            }
            Operation::WriteFirst => Request::WriteFirst(remote()?),
            Operation::WriteMiddle => Request::WriteMiddle,
            Operation::WriteLast | Operation::WriteLastImmediate => Request::WriteLast(immediate),
            Operation::WriteOnly | Operation::WriteOnlyImmediate => {
                Request::WriteOnly(remote()?, immediate)
            }
            Operation::ReadRequest => Request::Read(remote()?),
            Operation::CompareSwap | Operation::FetchAdd => {
                Atomic::of(operation, &extension.atomic?)
            }
            _ => return None,
        })
    }

    fn extension(&self) -> Extension {
        let none = Extension::default();
        match self {
            Request::SendFirst | Request::SendMiddle | Request::WriteMiddle => none,
            Request::SendLast(tail) | Request::SendOnly(tail) => tail.extension(),
            Request::WriteLast(immediate) => Extension {
                immediate: *immediate,
                ..none
            },
            Request::WriteFirst(remote) | Request::Read(remote) => Extension {
                reth: Some(Reth::from(*remote)),
                ..none
            },
            Request::WriteOnly(remote, immediate) => Extension {
                reth: Some(Reth::from(*remote)),
                immediate: *immediate,
                ..none
            },
            Request::Atomic(remote, atomic) => Extension {
                atomic: Some(atomic.header(remote)),
                ..none
            },
        }
    }

    fn operation(&self) -> Operation {
        match self {
            Request::SendFirst => Operation::SendFirst,
            Request::SendMiddle => Operation::SendMiddle,
            Request::SendLast(Tail::Plain) => Operation::SendLast,
            Request::SendLast(Tail::Immediate(_)) => Operation::SendLastImmediate,
            Request::SendLast(Tail::Invalidate(_)) => Operation::SendLastInvalidate,
            Request::SendOnly(Tail::Plain) => Operation::SendOnly,
            Request::SendOnly(Tail::Immediate(_)) => Operation::SendOnlyImmediate,
            Request::SendOnly(Tail::Invalidate(_)) => Operation::SendOnlyInvalidate,
            Request::WriteFirst(_) => Operation::WriteFirst,
            Request::WriteMiddle => Operation::WriteMiddle,
            Request::WriteLast(None) => Operation::WriteLast,
            Request::WriteLast(Some(_)) => Operation::WriteLastImmediate,
            Request::WriteOnly(_, None) => Operation::WriteOnly,
            Request::WriteOnly(_, Some(_)) => Operation::WriteOnlyImmediate,
            Request::Read(_) => Operation::ReadRequest,
            Request::Atomic(_, Atomic::CompareSwap { .. }) => Operation::CompareSwap,
            Request::Atomic(_, Atomic::FetchAdd { .. }) => Operation::FetchAdd,
        }
    }
}

impl Response {
    fn of(operation: Operation, extension: &Extension) -> Option<Response> {
        if operation == Operation::ReadResponseMiddle {
            return Some(Response::ReadMiddle);
        }
        let acknowledgement = Acknowledgement::of(extension.aeth?)?;
        Some(match operation {
            Operation::ReadResponseFirst => Response::ReadFirst(acknowledgement),
            Operation::ReadResponseLast => Response::ReadLast(acknowledgement),
            Operation::ReadResponseOnly => Response::ReadOnly(acknowledgement),
            Operation::Acknowledge => Response::Acknowledge(acknowledgement),
            Operation::AtomicAcknowledge => {
                Response::Atomic(acknowledgement, extension.atomic_ack?.original())
            }
            _ => return None,
        })
    }

    fn extension(&self) -> Extension {
        let none = Extension::default();
        match self {
            Response::ReadMiddle => none,
            Response::ReadFirst(acknowledgement)
            | Response::ReadLast(acknowledgement)
            | Response::ReadOnly(acknowledgement)
            | Response::Acknowledge(acknowledgement) => Extension {
                aeth: Some(acknowledgement.header()),
                ..none
            },
            Response::Atomic(acknowledgement, original) => Extension {
                aeth: Some(acknowledgement.header()),
                atomic_ack: Some(AtomicAckEth::new(*original)),
                ..none
            },
        }
    }

    fn operation(&self) -> Operation {
        match self {
            Response::ReadFirst(_) => Operation::ReadResponseFirst,
            Response::ReadMiddle => Operation::ReadResponseMiddle,
            Response::ReadLast(_) => Operation::ReadResponseLast,
            Response::ReadOnly(_) => Operation::ReadResponseOnly,
            Response::Acknowledge(_) => Operation::Acknowledge,
            Response::Atomic(..) => Operation::AtomicAcknowledge,
        }
    }
}

/// A packet that came. The shell has found the queue pair by it and has checked everything up to
/// the base transport header, the partition and the checksums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Incoming<'a> {
    /// The request or the answer.
    pub body: Body,
    /// The packet sequence number (PSN).
    pub psn: Psn,
    /// Whether the requester wants to hear soon.
    pub ack_request: bool,
    /// Whether its completion should raise an event.
    pub solicited: bool,
    /// The data, without the pad.
    pub payload: &'a [u8],
}

/// The source of a packet's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload {
    /// A packet without payload.
    None,
    /// The scatter/gather list of a send, or its inline data.
    Send {
        /// The index of the send.
        index: u32,
        /// The number of bytes of the send that come before.
        offset: u32,
        /// The number of bytes in this packet.
        length: u32,
    },
    /// The memory that a READ asks for.
    Remote(Remote),
}

impl Payload {
    /// Returns the number of bytes.
    pub fn length(&self) -> u32 {
        match self {
            Payload::None => 0,
            Payload::Send { length, .. } => *length,
            Payload::Remote(remote) => remote.length,
        }
    }
}

/// A packet to send to the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// The request or the answer.
    pub body: Body,
    /// The packet sequence number (PSN).
    pub psn: Psn,
    /// Whether the responder is to answer soon.
    pub ack_request: bool,
    /// Whether its completion should raise an event.
    pub solicited: bool,
    /// The source of the data.
    pub payload: Payload,
}

impl Outgoing {
    /// Makes the packet of an answer.
    pub(super) fn response(response: Response, psn: Psn, payload: Payload) -> Outgoing {
        Outgoing {
            body: Body::Response(response),
            psn,
            ack_request: false,
            solicited: false,
            payload,
        }
    }
}
