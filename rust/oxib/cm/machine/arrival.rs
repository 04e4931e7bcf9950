// SPDX-License-Identifier: GPL-2.0-only

//! Decisions about a message that arrives, before the machine of a connection has it: the
//! connection that it is for, and the requests that make a new one (IBTA 12.9.7).
//!
//! The order of the checks counts. A duplicate is answered before anything else is asked for, so
//! that a peer with a connection loses nothing by what others do meanwhile. A slot is taken last,
//! so that what is rejected takes none. Nothing is sent here.

use super::claim::{
    Adapter,
    Remote, //
};
use super::input::Req;
use super::peer::{
    self,
    Names, //
};
use super::source::Source;
use super::wire::cm::comm_id::CommId;
use super::wire::cm::reason::Reason;
use super::wire::cm::service_id::ServiceId;
use super::wire::cm::Kind;
use super::wire::qpn::Qpn;

/// Tables and listeners of a node, for peers that ask for a connection.
pub trait Reception {
    /// A connection, by which a duplicate is answered.
    type Connection;
    /// A listener, by its service.
    type Listener;
    /// A slot of a listener's.
    type Slot;

    /// Forgets the copies of the request that wait for the address of their sender. Once the
    /// connection of this one is over, each of them would be taken for a new request.
    fn forget_copies(&mut self);

    /// Returns the connection that its peer calls `id`.
    fn by_id(&self, id: &Remote<CommId>) -> Option<Self::Connection>;

    /// Returns our identifier of the connection to the queue pair `qpn`.
    fn by_qpn(&self, qpn: &Remote<Qpn>) -> Option<CommId>;

    /// Returns the listener of a service.
    fn listener(&self, service: ServiceId) -> Option<Self::Listener>;

    /// Returns whether a request from `source` may get a slot of `listener`. Only then
    /// [`Reception::take_slot`] is called, which may be costly.
    fn admits(&self, listener: &Self::Listener, source: &Source) -> bool;

    /// Takes a slot of `listener` for a request from `source`. Another connection may lose its
    /// own.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    fn take_slot(
        &mut self,
        listener: &Self::Listener,
        source: &Source,
    ) -> Result<Self::Slot, Unanswered>;
}

/// The fields of a REQ that decide about it.
#[derive(Clone, Copy, Debug)]
pub struct IncomingReq {
    /// The channel adapter that asks.
    pub adapter: Adapter,
    /// Its identifier for the connection.
    pub id: CommId,
    /// Its queue pair number.
    pub qpn: Qpn,
    /// The service that it asks for.
    pub service: ServiceId,
    /// Fields that a machine reads, if the transport is known.
    pub req: Option<Req>,
}

/// The reasons for which a REQ is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unanswered {
    /// The listener has no slot for its sender, which repeats it.
    NoSlot,
    /// There is no memory for a slot. The sender repeats the REQ.
    NoMemory,
}

/// The decision about a REQ.
#[derive(Debug)]
pub enum Verdict<C, L, P> {
    /// A repetition, which its connection answers again.
    Duplicate(C),
    /// No answer, for this reason.
    Dropped(Unanswered),
    /// A rejection for this reason.
    Rejected(Reason),
    /// A rejection, and the end of the connection of ours that has its queue pair: the peer does
    /// not have it any more.
    Stale(CommId),
    /// A new connection, to be reported to its listener.
    New(New<L, P>),
}

/// A REQ that makes a connection.
#[derive(Debug)]
pub struct New<L, P> {
    /// Fields that the machine reads.
    pub req: Req,
    /// The listener that it is for.
    pub listener: L,
    /// Its slot at the listener, until it is established or ends.
    pub slot: P,
}

/// Decides about a REQ.
pub fn request<R: Reception>(
    node: &mut R,
    incoming: &IncomingReq,
) -> Verdict<R::Connection, R::Listener, R::Slot> {
    let adapter = incoming.adapter;
    node.forget_copies();
    let name = incoming.id;
    if let Some(connection) = node.by_id(&Remote { name, adapter }) {
        return Verdict::Duplicate(connection);
    }
    // A stale connection (IBTA 12.9.8.3.1). The address is part of the key, so that no other node
    // can end a connection by naming its queue pair.
    let name = incoming.qpn;
    if let Some(other) = node.by_qpn(&Remote { name, adapter }) {
        return Verdict::Stale(other);
    }
    let Some(req) = incoming.req else {
        return Verdict::Rejected(Reason::INVALID_TRANSPORT_TYPE);
    };
    let Some(listener) = node.listener(incoming.service) else {
        return Verdict::Rejected(Reason::INVALID_SERVICE_ID);
    };
    if !node.admits(&listener, &adapter.source) {
        return Verdict::Dropped(Unanswered::NoSlot);
    }
    match node.take_slot(&listener, &adapter.source) {
        Ok(slot) => Verdict::New(New {
            req,
            listener,
            slot,
        }),
        Err(why) => Verdict::Dropped(why),
    }
}

/// The name by which the connection is found that a message is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addressee {
    /// The connection that has this identifier of ours.
    Ours(CommId),
    /// The connection that has this identifier of the peer's, which does not know ours.
    Theirs(Remote<CommId>),
}

/// Returns the name of the connection that a REJ with the identifiers `named`, ours first, is
/// for. One for a time-out is from a peer that may not know ours, and gives its GUID (IBTA
/// 12.6.7.2).
pub fn rejected(named: Names, reason: Reason, guid: Option<u64>, source: Source) -> Addressee {
    match guid {
        Some(guid) if reason == Reason::TIMEOUT => Addressee::Theirs(Remote {
            name: named.1,
            adapter: Adapter { guid, source },
        }),
        _ => Addressee::Ours(named.0),
    }
}

/// Returns whether a REJ with the identifiers `named` may end the connection that we know by
/// `known`.
///
/// One for a time-out may lack our identifier: its sender has given up a REQ and has not been told
/// it. Such a sender has no REP of ours, so the connection is half open. Any node that writes the
/// sender's address into its packet can leave our identifier out.
pub fn is_rejected(known: Names, named: Names, reason: Reason, is_half_open: bool) -> bool {
    reason != Reason::TIMEOUT || is_half_open || named.0 == known.0
}

/// The decision about a message that is for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// The connection's machine takes it.
    Taken,
    /// There is no such connection: that of this identifier is another one.
    Unknown,
    /// The message is not from the peer, and is dropped.
    WrongPeer,
}

/// Decides about a message other than a REQ with the identifiers `named`, for the connection that
/// we know by `known`.
///
/// A DREQ ends a connection, so it has both identifiers or is for another one. Of a LAP the
/// machine looks at the identifiers itself, wherever it comes from.
pub fn hear(kind: Kind, known: Names, named: Names, is_from_peer: impl FnOnce() -> bool) -> Heard {
    match kind {
        Kind::Dreq if known.1 != named.1 => Heard::Unknown,
        Kind::Dreq | Kind::Lap => Heard::Taken,
        _ if peer::may_be(known, named, is_from_peer) => Heard::Taken,
        _ => Heard::WrongPeer,
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(oxib_cm_arrival))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::super::input::QpType;
    use super::super::wire::cm::mtu::Mtu;
    use super::super::wire::pkey::Pkey;
    use super::super::wire::psn::Psn;
    use super::*;

    /// A node with one of each, or none.
    #[derive(Default)]
    struct Node {
        id: Option<u32>,
        qpn: Option<CommId>,
        service: Option<u64>,
        refuses: bool,
        has_no_memory: bool,
        slots: u32,
        /// Copies of the request that wait.
        copies: u32,
    }

    impl Reception for Node {
        type Connection = u32;
        type Listener = u64;
        type Slot = u32;

        fn forget_copies(&mut self) {
            self.copies = 0;
        }

        fn by_id(&self, _: &Remote<CommId>) -> Option<u32> {
            self.id
        }

        fn by_qpn(&self, _: &Remote<Qpn>) -> Option<CommId> {
            self.qpn
        }

        fn listener(&self, service: ServiceId) -> Option<u64> {
            self.service.filter(|known| *known == service.get())
        }

        fn admits(&self, _: &u64, _: &Source) -> bool {
            !self.refuses
        }

        fn take_slot(&mut self, _: &u64, _: &Source) -> Result<u32, Unanswered> {
            assert_eq!(self.copies, 0);
            if self.has_no_memory {
                return Err(Unanswered::NoMemory);
            }
            self.slots = self.slots.checked_sub(1).ok_or(Unanswered::NoSlot)?;
            Ok(self.slots)
        }
    }

    fn source() -> Source {
        Source::new(16, 0, None)
    }

    /// A REQ for service 4.
    fn incoming() -> IncomingReq {
        IncomingReq {
            adapter: Adapter {
                guid: 1,
                source: source(),
            },
            id: CommId::new(2),
            qpn: Qpn::from_bytes([0, 0, 3]),
            service: ServiceId::new(4),
            req: Some(Req {
                sender: CommId::new(2),
                qp_type: QpType::Rc,
                qpn: Qpn::from_bytes([0, 0, 3]),
                psn: Psn::wrapping(5),
                pkey: Pkey::DEFAULT,
                mtu: Mtu::new(4),
                responder_resources: 1,
                initiator_depth: 1,
                retry_count: 7,
                rnr_retry_count: 7,
                remote_response_timeout: 20,
                local_response_timeout: 20,
                max_retries: 15,
                ack_timeout: 19,
                alternate_ack_timeout: None,
            }),
        }
    }

    #[test]
    fn checks_in_their_order() {
        let mut node = Node {
            id: Some(7),
            qpn: Some(CommId::new(8)),
            ..Node::default()
        };
        assert!(matches!(
            request(&mut node, &incoming()),
            Verdict::Duplicate(7)
        ));
        node.id = None;
        assert!(matches!(
            request(&mut node, &incoming()),
            Verdict::Stale(other) if other == CommId::new(8)
        ));
        node.qpn = None;
        let unknown = IncomingReq {
            req: None,
            ..incoming()
        };
        assert!(matches!(
            request(&mut node, &unknown),
            Verdict::Rejected(Reason::INVALID_TRANSPORT_TYPE)
        ));
        assert!(matches!(
            request(&mut node, &incoming()),
            Verdict::Rejected(Reason::INVALID_SERVICE_ID)
        ));
        node.service = Some(4);
        assert!(matches!(
            request(&mut node, &incoming()),
            Verdict::Dropped(Unanswered::NoSlot)
        ));
        node.slots = 1;
        node.has_no_memory = true;
        assert!(matches!(
            request(&mut node, &incoming()),
            Verdict::Dropped(Unanswered::NoMemory)
        ));
        node.has_no_memory = false;
        assert!(matches!(
            request(&mut node, &incoming()),
            Verdict::New(New {
                listener: 4,
                slot: 0,
                ..
            })
        ));
    }

    #[test]
    fn every_queue_pair_may_ask() {
        // Programs that have no queue pair of the kernel's name any number, often 0.
        for bytes in [[0, 0, 0], [0, 0, 1], [0xff, 0xff, 0xff]] {
            let mut node = Node {
                service: Some(4),
                slots: 1,
                ..Node::default()
            };
            let asking = IncomingReq {
                qpn: Qpn::from_bytes(bytes),
                ..incoming()
            };
            assert!(matches!(request(&mut node, &asking), Verdict::New(_)));
        }
    }

    #[test]
    fn no_copy_waits_once_a_request_is_handled() {
        // The connections by identifier and by queue pair, and the service that is listened for:
        // a duplicate, a stale connection, a rejection, no slot, and a new connection.
        let table = [
            (Some(7), None, None, 1),
            (None, Some(CommId::new(8)), None, 1),
            (None, None, None, 1),
            (None, None, Some(4), 0),
            (None, None, Some(4), 1),
        ];
        for (id, qpn, service, slots) in table {
            let mut node = Node {
                id,
                qpn,
                service,
                slots,
                copies: 2,
                ..Node::default()
            };
            let _ = request(&mut node, &incoming());
            assert_eq!(node.copies, 0);
        }
    }

    #[test]
    fn what_is_not_new_takes_no_slot() {
        let mut node = Node {
            qpn: Some(CommId::new(8)),
            service: Some(4),
            slots: 1,
            ..Node::default()
        };
        let _ = request(&mut node, &incoming());
        assert_eq!(node.slots, 1);
    }

    #[test]
    fn what_is_not_admitted_takes_no_slot() {
        let mut node = Node {
            service: Some(4),
            refuses: true,
            slots: 1,
            ..Node::default()
        };
        let verdict = request(&mut node, &incoming());
        assert!(matches!(verdict, Verdict::Dropped(Unanswered::NoSlot)));
        assert_eq!(node.slots, 1);
    }

    #[test]
    fn a_time_out_is_found_by_the_names_of_its_sender() {
        let [ours, theirs] = [1, 2].map(CommId::new);
        let source = source();
        let by_theirs = Addressee::Theirs(Remote {
            name: theirs,
            adapter: Adapter { guid: 3, source },
        });
        let table = [
            (Reason::TIMEOUT, Some(3), by_theirs),
            (Reason::TIMEOUT, None, Addressee::Ours(ours)),
            (Reason::STALE_CONNECTION, Some(3), Addressee::Ours(ours)),
        ];
        for (reason, guid, addressee) in table {
            assert_eq!(rejected((ours, theirs), reason, guid, source), addressee);
        }
    }

    #[test]
    fn a_time_out_ends_an_established_connection_by_both_names() {
        let [ours, theirs, other] = [1, 2, 3].map(CommId::new);
        // Our identifier in the message, the reason, and whether an established connection and one
        // that is half open may end.
        let table = [
            (CommId::ZERO, Reason::TIMEOUT, false, true),
            (other, Reason::TIMEOUT, false, true),
            (ours, Reason::TIMEOUT, true, true),
            (ours, Reason::CONSUMER_DEFINED, true, true),
        ];
        for (named, reason, established, half_open) in table {
            let may_end =
                |is_half_open| is_rejected((ours, theirs), (named, theirs), reason, is_half_open);
            assert_eq!((may_end(false), may_end(true)), (established, half_open));
        }
    }

    #[test]
    fn messages_that_are_heard() {
        let [ours, theirs, other] = [1, 2, 3].map(CommId::new);
        let known = (ours, theirs);
        // Of a message its kind, the identifier of its sender, and what becomes of it from an
        // address of the peer's and from another one.
        let table = [
            (Kind::Rtu, theirs, Heard::Taken, Heard::Taken),
            (Kind::Rtu, other, Heard::Taken, Heard::WrongPeer),
            (Kind::Dreq, theirs, Heard::Taken, Heard::Taken),
            (Kind::Dreq, other, Heard::Unknown, Heard::Unknown),
            (Kind::Lap, other, Heard::Taken, Heard::Taken),
        ];
        for (kind, sender, from_peer, from_elsewhere) in table {
            assert_eq!(hear(kind, known, (ours, sender), || true), from_peer);
            assert_eq!(hear(kind, known, (ours, sender), || false), from_elsewhere);
        }
    }
}
