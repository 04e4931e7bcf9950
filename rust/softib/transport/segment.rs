// SPDX-License-Identifier: GPL-2.0-only

//! The place of a requester in its send queue, and the packets that a message is cut into
//! (IBTA 9.7.1, 9.8.2).

use super::attributes::Mtu;
use super::packet::{
    Body,
    Outgoing,
    Payload,
    Request,
    Tail, //
};
use super::sequence::{
    after,
    ahead,
    distance, //
};
use super::wire::immdt::ImmDt;
use super::wire::psn::Psn;
use super::work::{
    Operation,
    Target,
    Work, //
};

/// A place in the send queue: before one packet of one send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cursor {
    /// The index of the send.
    pub(super) index: u32,
    /// The number of its first packet.
    pub(super) first: Psn,
    /// The number of the packet.
    pub(super) psn: Psn,
}

impl Cursor {
    /// Returns the place before the first send ever.
    pub(super) fn start(psn: Psn) -> Cursor {
        Cursor {
            index: 0,
            first: psn,
            psn,
        }
    }

    /// Returns the place before the send after this one; the first packet of that
    /// has the number `first`.
    pub(super) fn following(self, first: Psn) -> Cursor {
        Cursor {
            index: self.index.wrapping_add(1),
            first,
            psn: first,
        }
    }

    /// Returns the number of packets of the send that come before.
    pub(super) fn done(&self) -> u32 {
        ahead(self.first, self.psn)
    }

    /// Returns whether the other place is later.
    pub(super) fn is_behind(&self, other: &Cursor) -> bool {
        match other.index.wrapping_sub(self.index) as i32 {
            0 => distance(self.psn, other.psn) > 0,
            sends => sends > 0,
        }
    }
}

/// Returns the number of packet sequence numbers that a send takes.
pub(super) fn packets(work: &Work, mtu: Mtu) -> u32 {
    match work.operation {
        Operation::Local(_) => 0,
        Operation::Atomic(..) => 1,
        _ => mtu.packets(work.length),
    }
}

/// The number after the last packet of the send at this place.
pub(super) fn end(work: &Work, at: &Cursor, mtu: Mtu) -> Psn {
    after(at.first, packets(work, mtu))
}

/// A packet of a SEND or an RDMA WRITE.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// The packet; it does not ask for an acknowledgement.
    pub(super) packet: Outgoing,
    /// Whether the message ends with it.
    pub(super) last: bool,
}

/// The packet of a message at this place; `None` if the send is no message.
pub(super) fn segment(work: &Work, at: &Cursor, mtu: Mtu) -> Option<Segment> {
    let offset = at.done().wrapping_mul(mtu.bytes());
    let rest = work.length.saturating_sub(offset);
    let (first, last) = (offset == 0, rest <= mtu.bytes());
    let request = match work.operation {
        Operation::Send(tail) => send(tail, first, last),
        Operation::Write(target, immediate) => write(target, work.length, immediate, first, last),
        Operation::Read(_) | Operation::Atomic(..) | Operation::Local(_) => return None,
    };
    let payload = match rest.min(mtu.bytes()) {
        0 => Payload::None,
        length => Payload::Send {
            index: at.index,
            offset,
            length,
        },
    };
    let completes = match request {
        Request::SendLast(_) | Request::SendOnly(_) => true,
        Request::WriteLast(immediate) | Request::WriteOnly(_, immediate) => immediate.is_some(),
        _ => false,
    };
    let packet = Outgoing {
        body: Body::Request(request),
        psn: at.psn,
        ack_request: false,
        // It means something only where a receive ends (IBTA 9.2.3).
        solicited: work.solicited && completes,
        payload,
    };
    Some(Segment { packet, last })
}

fn send(tail: Tail, first: bool, last: bool) -> Request {
    match (first, last) {
        (true, true) => Request::SendOnly(tail),
        (true, false) => Request::SendFirst,
        (false, false) => Request::SendMiddle,
        (false, true) => Request::SendLast(tail),
    }
}

fn write(
    target: Target,
    length: u32,
    immediate: Option<ImmDt>,
    first: bool,
    last: bool,
) -> Request {
    match (first, last) {
        (true, true) => Request::WriteOnly(target.of(length), immediate),
        (true, false) => Request::WriteFirst(target.of(length)),
        (false, false) => Request::WriteMiddle,
        (false, true) => Request::WriteLast(immediate),
    }
}
