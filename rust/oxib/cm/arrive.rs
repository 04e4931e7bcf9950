// SPDX-License-Identifier: GPL-2.0-only

//! Messages that arrive for identifiers that are there.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::{
        Address,
        Destination, //
    },
    id::{
        Id,
        Inner,
        Next, //
    },
    machine::{
        actions::{
            self,
            Counted,
            Report, //
        },
        arrival::{
            self,
            Addressee,
            Heard, //
        },
        claim::{
            Adapter,
            Taken, //
        },
        input::{
            self,
            Incoming, //
        },
        peer::{
            Location,
            Names, //
        },
        state::StateName, //
    },
    message,
    notice::Notice,
    port::Port,
    table::Reserved,
    Manager, //
};
use crate::{
    rdma::{
        cm_counters::Cause,
        cm_trace,
        mad::Received,
        route::AddressVector, //
    },
    wire::cm::{
        rej::{
            Rej,
            Rejected, //
        },
        rep::Rep,
        CommId,
        Kind,
        Message,
        Reason, //
    },
};

impl Manager {
    /// Takes in a message from `port`.
    pub(super) fn take_in(&self, port: &Arc<Port>, mad: Received) {
        let Ok(message) = Message::parse(mad.bytes()) else {
            return port.count_dropped(Cause::Malformed);
        };
        let sender = message.sender();
        match Notice::of_message(port, mad) {
            Ok(notice) => self.queue(port, sender, notice),
            // It is as if it had been lost.
            Err(_) => port.count_dropped(Cause::NoMemory),
        }
    }

    /// Takes in a message from `port` that has waited until it can be answered.
    pub(super) fn take_in_again(&self, port: &Arc<Port>, notice: KBox<Notice>) {
        if let Some(sender) = notice.parsed().map(|message| message.sender()) {
            self.queue(port, sender, notice);
        }
    }

    fn queue(&self, port: &Arc<Port>, sender: CommId, notice: KBox<Notice>) {
        let source = |notice: &Notice| notice.message().map(|received| port.source(received));
        if self.lanes.push_message(sender, notice, source).is_err() {
            port.count_dropped(Cause::Busy);
        }
    }
}

/// Handles a notice when its turn has come.
pub(super) fn handle(notice: KBox<Notice>) {
    if let Some(id) = notice.id.clone() {
        let next = id.with(|inner| match (notice.report, inner.machine.name()) {
            (Report::UserEstablished, StateName::Established)
            | (Report::RepError(_), StateName::Idle) => inner.turn(notice),
            // The connection has gone on, and its consumer with it.
            _ => Next::Nothing(Some(notice)),
        });
        return id.then(next);
    }
    let (Some(message), Some(port)) = (notice.parsed(), notice.port.clone()) else {
        return;
    };
    let manager = port.manager();
    let kind = message.kind();
    match message {
        Message::Req(_) => manager.req(&port, notice),
        Message::SidrReq(_) => manager.sidr_req(&port, notice),
        Message::Rep(rep) => {
            let reply = Reply::from(rep);
            manager.rep(&port, &reply, notice);
        }
        Message::Dreq(dreq) => {
            let (names, tid) = (named(message), dreq.header().tid());
            manager.dreq(&port, (names, tid), &message.into(), notice);
        }
        // Not on RoCE, where there is no path to load (IBTA annex A16).
        Message::Lap(_) | Message::Apr(_) if port.roce => port.count_dropped(Cause::Invalid),
        Message::Lap(_) => manager.lap(&port, notice),
        Message::Rej(rej) => {
            let (names @ (ours, theirs), reason) = (named(message), rej.reason());
            cm_trace::reject(ours.get(), theirs.get(), reason.get(), false);
            let id = manager.rejected(&port, rej, &notice);
            if id.is_none() {
                manager.take_back(&port, rej, &notice);
            }
            if id.as_ref().is_some_and(|id| !id.is_rejected(names, reason)) {
                return notice.count_dropped(Cause::Unexpected);
            }
            take(id, names, (kind, message.into()), notice);
        }
        Message::Mra(_)
        | Message::Rtu(_)
        | Message::Drep(_)
        | Message::SidrRep(_)
        | Message::Apr(_) => {
            let names = named(message);
            let id = manager.addressed(names.0);
            take(id, names, (kind, message.into()), notice);
        }
    }
}

/// The identifiers in a message, of its receiver and of its sender.
fn named(message: Message<'_>) -> Names {
    match message {
        Message::Req(req) => (CommId::ZERO, req.local_comm_id()),
        Message::Mra(mra) => (mra.remote_comm_id(), mra.local_comm_id()),
        Message::Rej(rej) => (rej.remote_comm_id(), rej.local_comm_id()),
        Message::Rep(rep) => (rep.remote_comm_id(), rep.local_comm_id()),
        Message::Rtu(rtu) => (rtu.remote_comm_id(), rtu.local_comm_id()),
        Message::Dreq(dreq) => (dreq.remote_comm_id(), dreq.local_comm_id()),
        Message::Drep(drep) => (drep.remote_comm_id(), drep.local_comm_id()),
        Message::SidrReq(req) => (CommId::ZERO, req.request_id()),
        Message::SidrRep(rep) => (rep.request_id(), CommId::ZERO),
        Message::Lap(lap) => (lap.remote_comm_id(), lap.local_comm_id()),
        Message::Apr(apr) => (apr.remote_comm_id(), apr.local_comm_id()),
    }
}

/// Lets a message's identifier have it, if it is there, and the consumer what comes of it.
fn take(
    id: Option<Arc<Id>>,
    names: Names,
    (kind, incoming): (Kind, Incoming),
    notice: KBox<Notice>,
) {
    let Some(id) = id else {
        return notice.count_dropped(Cause::UnknownId);
    };
    let now = id.manager.now();
    // Most messages have both names, so that their address is not looked at: one turn of the lock.
    let heard = id.with(|inner| match inner.hears(kind, names) {
        true => Ok(inner.receive(&id, &incoming, None, now, notice)),
        false => Err(notice),
    });
    let next = match heard {
        Ok(next) => next,
        Err(notice) if id.hears(kind, names, &notice) != Heard::Taken => {
            return notice.count_dropped(Cause::WrongPeer);
        }
        // The machine compares the names again: they may have changed since `hears` looked at them.
        Err(notice) => id.with(|inner| inner.receive(&id, &incoming, None, now, notice)),
    };
    id.then(next);
}

/// The parts of a REP that are needed: it travels on in its notice.
struct Reply {
    names: Names,
    guid: u64,
    tid: u64,
    incoming: input::Rep,
}

impl From<&Rep> for Reply {
    fn from(rep: &Rep) -> Self {
        Self {
            names: named(Message::Rep(rep)),
            guid: rep.local_ca_guid(),
            tid: rep.header().tid(),
            incoming: input::Rep::from(rep),
        }
    }
}

impl Manager {
    /// The identifier of this name.
    pub(super) fn addressed(&self, name: CommId) -> Option<Arc<Id>> {
        self.ids.get(&name)
    }

    /// Finds the connection that a REJ is for.
    fn rejected(&self, port: &Port, rej: &Rej, notice: &Notice) -> Option<Arc<Id>> {
        let names = named(Message::Rej(rej));
        let source = port.source(notice.message()?);
        match arrival::rejected(names, rej.reason(), rej.ca_guid(), source) {
            Addressee::Ours(name) => self.addressed(name),
            Addressee::Theirs(name) => self.addressed(self.remote_ids.get(&name)?),
        }
    }

    fn rep(&self, port: &Arc<Port>, reply: &Reply, mut notice: KBox<Notice>) {
        let (ours, theirs) = reply.names;
        let Some(id) = self.addressed(ours) else {
            return port.count_dropped(Cause::UnknownId);
        };
        let incoming = Incoming::Rep(reply.incoming);
        let Some(is_again) = id.hears_again(Kind::Rep, reply.names, &incoming, &notice) else {
            return port.count_dropped(Cause::WrongPeer);
        };
        let (Ok(name), Ok(qpn)) = (Reserved::new(GFP_KERNEL), Reserved::new(GFP_KERNEL)) else {
            return port.count_dropped(Cause::NoMemory);
        };
        let Some(received) = notice.message() else {
            return;
        };
        let adapter = Adapter {
            guid: reply.guid,
            source: port.source(received),
        };
        let mut stale = None;
        let Ok(source) = port.address_again(&notice, is_again) else {
            return self.defer(port, notice);
        };
        notice.end_wait();
        let now = self.now();
        let next = id.with(|inner| {
            if let Some(peer) = inner.machine.takes_rep(&reply.incoming) {
                // Before the machine has the REP: if one of the names is taken, nothing may have
                // changed.
                let claimed = inner.claims.claim(
                    id.local(),
                    adapter,
                    (&self.remote_ids, theirs, name),
                    (&self.remote_qpns, peer, qpn),
                );
                match claimed {
                    Ok(()) => inner.peer_qpn = peer,
                    Err(Taken::Id(_)) => {
                        port.count_duplicate(Kind::Rep);
                        return Next::Nothing(Some(notice));
                    }
                    Err(Taken::Qpn(other)) => {
                        port.count_dropped(Cause::Stale);
                        stale = Some(other);
                        return Next::Nothing(Some(notice));
                    }
                }
            }
            inner.receive(&id, &incoming, source.as_ref(), now, notice)
        });
        if let (Some(other), Next::Nothing(Some(notice))) = (stale, &next) {
            // Without an address nothing is sent, and the peer sends its REP again.
            if let Ok(to) = port.reply_address(notice) {
                let names = (theirs, ours);
                let reason = (Reason::STALE_CONNECTION, &[][..]);
                message::reject(&to, reply.tid, names, Rejected::Rep, reason);
            }
            // Without the lock: this takes that of another identifier, and two have no order.
            self.end_stale(other);
        }
        id.then(next);
    }

    fn dreq(
        &self,
        port: &Arc<Port>,
        (names, tid): (Names, u64),
        incoming: &Incoming,
        mut notice: KBox<Notice>,
    ) {
        let known = self.addressed(names.0).and_then(|id| {
            let is_again = id.hears_again(Kind::Dreq, names, incoming, &notice)?;
            Some((id, is_again))
        });
        let Some((id, is_again)) = known else {
            // The connection is over here: its end is what the peer wants (IBTA 12.9.7).
            return self.answer_unknown_dreq(port, (names, tid), notice);
        };
        let Ok(source) = port.address_again(&notice, is_again) else {
            return self.defer(port, notice);
        };
        notice.end_wait();
        let now = self.now();
        let next = id.with(|inner| {
            let before = inner.machine.name();
            let next = inner.receive(&id, incoming, source.as_ref(), now, notice);
            // A repeated DREQ changes nothing: the DREP answers the one that the consumer was
            // told of.
            if before != StateName::DreqRcvd && inner.machine.name() == StateName::DreqRcvd {
                inner.tid = tid;
            }
            next
        });
        id.then(next);
    }

    fn answer_unknown_dreq(
        &self,
        port: &Arc<Port>,
        ((ours, theirs), tid): (Names, u64),
        notice: KBox<Notice>,
    ) {
        let reply_address = port.reply_address(&notice);
        if let Err(NoReplyAddress::Unresolved) = reply_address {
            return self.defer(port, notice);
        }
        port.count_duplicate(Kind::Dreq);
        let Ok(to) = reply_address else {
            return;
        };
        let message = crate::wire::cm::drep::Parameters {
            local_comm_id: ours,
            remote_comm_id: theirs,
            private_data: &[],
        };
        // Lost or not sent is the same: the peer repeats its DREQ.
        let _ = Destination::from(&to).post(Kind::Drep, |out| message.build(tid, out));
    }

    /// Ends a connection that its peer does not have any more: a message from the address of the
    /// peer has named the same queue pair for another one (IBTA 12.9.8.3.1).
    pub(super) fn end_stale(&self, name: CommId) {
        if let Some(id) = self.addressed(name) {
            // It may have been ended by now.
            let _ = id.send_dreq(&[]);
        }
    }
}

impl Id {
    /// Decides whether a message of that kind with these identifiers is heard.
    fn hears(&self, kind: Kind, names: Names, notice: &Notice) -> Heard {
        // The lock is released before `is_from_peer` takes it again.
        let known = self.look(|inner| inner.machine.ids());
        arrival::hear(kind, known, names, || self.is_from_peer(notice))
    }

    /// Decides whether `incoming`, a message of that kind with these identifiers, is heard. If so,
    /// returns whether it is a duplicate that is answered as the first one was.
    fn hears_again(
        &self,
        kind: Kind,
        names: Names,
        incoming: &Incoming,
        notice: &Notice,
    ) -> Option<bool> {
        let now = self.manager.now();
        // The lock is released before `is_from_peer` takes it again. A message with wrong names has
        // nobody look for what would answer it.
        let (known, is_again) = self.look(|inner| {
            let machine = &inner.machine;
            let known = machine.ids();
            let may_be = arrival::hear(kind, known, names, || true) == Heard::Taken;
            (known, may_be && machine.answers_again(incoming, now))
        });
        let heard = arrival::hear(kind, known, names, || self.is_from_peer(notice));
        (heard == Heard::Taken).then_some(is_again)
    }

    /// Returns whether a REJ with these identifiers may end the connection.
    fn is_rejected(&self, names: Names, reason: Reason) -> bool {
        self.look(|inner| {
            let machine = &inner.machine;
            arrival::is_rejected(machine.ids(), names, reason, machine.is_half_open())
        })
    }

    /// Returns whether a message came from an address of the peer's.
    fn is_from_peer(&self, notice: &Notice) -> bool {
        let (Some(port), Some(received)) = (&notice.port, notice.message()) else {
            return false;
        };
        let lmc = port.lmc();
        let sender = Location {
            subnet: port.subnet(),
            lid: received.slid(),
            gid: received.source(),
        };
        self.look(|inner| {
            let addresses = [inner.address.as_ref(), inner.alternate.as_deref()];
            let mut peers = addresses.into_iter().flatten().map(Address::location);
            peers.any(|peer| peer.is_same_node(&sender, lmc))
        })
    }

    /// Returns the address of the sender of `incoming`, the message of `notice`, if the message is
    /// a duplicate that is answered as the first one was. Sleeps.
    ///
    /// # Errors
    ///
    /// The message is to be [deferred](Manager::defer).
    pub(super) fn reply_address(
        &self,
        port: &Arc<Port>,
        notice: &Notice,
        incoming: &Incoming,
    ) -> core::result::Result<Option<Address>, Unresolved> {
        let now = self.manager.now();
        let is_again = self.look(|inner| inner.machine.answers_again(incoming, now));
        port.address_again(notice, is_again)
    }
}

/// The reasons for which there is no address to reply to a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoReplyAddress {
    /// The Ethernet address of its sender is not known, and is being asked for.
    Unresolved,
    /// Its addresses are not valid here.
    Invalid,
}

/// The Ethernet address of a sender is not known, and is being asked for.
pub(super) struct Unresolved;

impl Port {
    /// Returns the address of a message's sender. Sleeps, but does not wait for another node.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    pub(super) fn reply_address(
        self: &Arc<Self>,
        notice: &Notice,
    ) -> core::result::Result<Address, NoReplyAddress> {
        let device = self.device().map_err(|_| NoReplyAddress::Invalid)?;
        let received = notice.message().ok_or(NoReplyAddress::Invalid)?;
        let vector = match self.roce {
            true => AddressVector::from_roce_completion(&device, self.number, received),
            false => AddressVector::from_completion(&device, self.number, received),
        };
        match vector {
            Ok(vector) => Ok(Address::new(self.clone(), vector)),
            Err(ETIMEDOUT) => Err(NoReplyAddress::Unresolved),
            Err(_) => Err(NoReplyAddress::Invalid),
        }
    }

    /// Returns the address of a message's sender if the message `is_again` to be answered as the
    /// first one was. Sleeps.
    ///
    /// # Errors
    ///
    /// The message is to be [deferred](Manager::defer).
    fn address_again(
        self: &Arc<Self>,
        notice: &Notice,
        is_again: bool,
    ) -> core::result::Result<Option<Address>, Unresolved> {
        if !is_again {
            return Ok(None);
        }
        match self.reply_address(notice) {
            Ok(address) => Ok(Some(address)),
            Err(NoReplyAddress::Invalid) => Ok(None),
            Err(NoReplyAddress::Unresolved) => Err(Unresolved),
        }
    }

    /// Lets a message wait if its sender's address is not known yet, or counts it as dropped.
    pub(super) fn put_off(self: &Arc<Self>, notice: KBox<Notice>, why: NoReplyAddress) {
        match why {
            NoReplyAddress::Unresolved => self.manager().defer(self, notice),
            NoReplyAddress::Invalid => self.count_dropped(Cause::Invalid),
        }
    }

    /// Counts what a message was, besides having come.
    pub(super) fn count(&self, counted: Option<Counted>) {
        match counted {
            None => {}
            Some(Counted::Duplicate(kind)) => self.count_duplicate(kind),
            Some(Counted::Dropped(cause)) => self.count_dropped(match cause {
                actions::Cause::Unexpected => Cause::Unexpected,
                actions::Cause::Stranger => Cause::WrongPeer,
                actions::Cause::WrongQpn => Cause::WrongQpn,
            }),
        }
    }
}

impl Inner {
    /// Returns whether a message of that kind with these identifiers is heard wherever it comes
    /// from.
    fn hears(&self, kind: Kind, names: Names) -> bool {
        arrival::hear(kind, self.machine.ids(), names, || false) == Heard::Taken
    }

    /// Lets the machine have a message.
    pub(super) fn receive(
        &mut self,
        id: &Arc<Id>,
        incoming: &Incoming,
        source: Option<&Address>,
        now: super::Time,
        notice: KBox<Notice>,
    ) -> Next {
        let actions = self.machine.receive(incoming, now);
        if let Some(port) = &notice.port {
            port.count(actions.counted);
        }
        self.send(id, &actions, source);
        self.follow(id, &actions, now, Some(notice))
    }
}
