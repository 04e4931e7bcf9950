// SPDX-License-Identifier: GPL-2.0-only

//! The node: identifiers with their machines and timers, the tables of remote names, and the
//! slots of one listener: memory and sending for what `arrival.rs` decides, as `arrive.rs`,
//! `request.rs` and `half_open.rs` of the module are.

use std::collections::BTreeMap;

use oxib_cm_machine::actions::{
    Actions,
    Counted,
    Outgoing,
    RemoteAction,
    Send,
    SlotAction,
    TimerAction,
    SERVICE_TIMEOUT, //
};
use oxib_cm_machine::arrival::{
    self,
    Addressee,
    Heard,
    IncomingReq,
    New,
    Reception,
    Unanswered,
    Verdict, //
};
use oxib_cm_machine::backlog::{
    Backlog,
    Cell,
    Refused, //
    Slot,
};
use oxib_cm_machine::claim::{
    Adapter,
    Claims,
    Remote,
    Taken, //
};
use oxib_cm_machine::input::{
    Incoming,
    Rep,
    RepParam,
    Req, //
};
use oxib_cm_machine::source::Source;
use oxib_cm_machine::state::StateName;
use oxib_cm_machine::time::Time;
use oxib_cm_machine::Machine;
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::reason::Reason;
use oxib_wire::cm::rej::Rejected;
use oxib_wire::cm::service_id::ServiceId;
use oxib_wire::cm::Kind;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;

use crate::directory::Directory;
use crate::random::Random;

/// The number of candidates that are looked at: `LOOKED_AT` of `half_open.rs`.
const LOOKED_AT: u32 = 16;

/// Our first name for a connection, and our first queue pair.
const FIRST_NAME: u32 = 0xb000;

/// The service of the listener.
const SERVICE: ServiceId = ServiceId::new(1);

/// Milliseconds after which a request of the node's is repeated first.
const RTO: u32 = 100;

#[derive(Clone, Copy, Debug)]
pub enum Body {
    Req(Req),
    Other(Incoming),
}

/// A message to or from the node.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The address that it comes from, or goes to if the node sends it.
    pub address: u32,
    pub guid: u64,
    pub receiver: CommId,
    pub body: Body,
}

impl Packet {
    /// The sender's name for the connection.
    pub fn sender(&self) -> CommId {
        match self.body {
            Body::Req(req) => req.sender,
            Body::Other(message) => match message {
                Incoming::Rep(rep) => rep.sender,
                Incoming::Mra { sender, .. }
                | Incoming::Rej { sender, .. }
                | Incoming::Rtu { sender }
                | Incoming::Dreq { sender, .. }
                | Incoming::Drep { sender }
                | Incoming::Lap { sender, .. }
                | Incoming::Apr { sender } => sender,
                Incoming::DuplicateReq | Incoming::DuplicateSidrReq | Incoming::SidrRep => {
                    CommId::ZERO
                }
            },
        }
    }

    pub fn adapter(&self) -> Adapter {
        Adapter {
            guid: self.guid,
            source: Source::new(self.address, 0, None),
        }
    }
}

/// An identifier of the node.
#[derive(Debug)]
pub struct Id {
    pub machine: Machine,
    pub timer: Option<Time>,
    pub slot: Option<Slot>,
    claims: Claims,
    /// The names that it claimed, as long as it stands in the tables.
    pub listed: Option<(Remote<CommId>, Remote<Qpn>)>,
    /// The address of its peer, and the source of its slot.
    pub address: u32,
    pub source: u32,
    pub qpn: Qpn,
    peer_qpn: Qpn,
    request: Option<Packet>,
}

/// Outcome of a REQ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Admitted(u32),
    Duplicate,
    Stale,
    Dropped,
}

pub struct Node {
    pub now: Time,
    next: u32,
    pub most: u32,
    pub ids: BTreeMap<u32, Id>,
    pub by_id: Directory<CommId>,
    pub by_qpn: Directory<Qpn>,
    pub backlog: Backlog<Vec<Cell>>,
    pub cells: usize,
    /// Messages that it has sent since the judge has looked.
    pub sent: Vec<Packet>,
}

/// An address as the backlog knows it.
pub fn hash(address: u32) -> u32 {
    address.wrapping_mul(0x9e37_79b9).rotate_left(16)
}

impl Node {
    pub fn new(most: u32) -> Node {
        Node {
            now: Time::new(1),
            next: FIRST_NAME,
            most,
            ids: BTreeMap::new(),
            by_id: Directory::new(),
            by_qpn: Directory::new(),
            backlog: Backlog::new(most, Vec::new()),
            cells: 0,
            sent: Vec::new(),
        }
    }

    /// Takes a REQ; returns what became of it.
    pub fn req(&mut self, packet: &Packet, req: &Req, random: &mut Random) -> Fate {
        let incoming = IncomingReq {
            adapter: packet.adapter(),
            id: req.sender,
            qpn: req.qpn,
            service: SERVICE,
            req: Some(*req),
        };
        let mut arriving = Arriving {
            node: self,
            address: packet.address,
            random,
        };
        match arrival::request(&mut arriving, &incoming) {
            Verdict::Duplicate(name) => {
                self.step(name, Some(packet), |machine, now| {
                    machine.receive(&Incoming::DuplicateReq, now)
                });
                Fate::Duplicate
            }
            Verdict::Stale(name) => {
                self.reject_stale(packet);
                self.disconnect(name.get());
                Fate::Stale
            }
            Verdict::Dropped(Unanswered::NoSlot | Unanswered::NoMemory) => Fate::Dropped,
            Verdict::New(new) => Fate::Admitted(self.admit(packet, new)),
            other => panic!("{other:?} for a REQ of a peer, for the service"),
        }
    }

    /// Makes the identifier of a REQ that is new.
    fn admit(&mut self, packet: &Packet, new: New<(), (CommId, Slot)>) -> u32 {
        let adapter = packet.adapter();
        let (id, qpn) = names(&new.req, adapter);
        let (local, slot) = new.slot;
        let (machine, actions) = Machine::accept_req(local, &new.req, self.now);
        let mut claims = Claims::default();
        let claimed = claims.claim(
            local,
            adapter,
            (&self.by_id, id.name, ()),
            (&self.by_qpn, qpn.name, ()),
        );
        assert_eq!(claimed, Ok::<(), Taken>(()), "both names were free");
        let [_, _, high, low] = local.get().to_be_bytes();
        let made = Id {
            machine,
            timer: None,
            slot: Some(slot),
            claims,
            listed: Some((id, qpn)),
            address: packet.address,
            source: packet.address,
            qpn: Qpn::from_bytes([1, high, low]),
            peer_qpn: new.req.qpn,
            request: None,
        };
        self.ids.insert(local.get(), made);
        self.act(local.get(), &actions, None);
        local.get()
    }

    fn reject_stale(&mut self, packet: &Packet) {
        self.sent.push(Packet {
            receiver: packet.sender(),
            body: Body::Other(Incoming::Rej {
                sender: CommId::ZERO,
                of: Rejected::Req,
                reason: Reason::STALE_CONNECTION,
            }),
            ..*packet
        });
    }

    fn addressee(&self, packet: &Packet, message: &Incoming) -> Addressee {
        let named = (packet.receiver, packet.sender());
        let Adapter { guid, source } = packet.adapter();
        match *message {
            Incoming::Rej { reason, .. } => arrival::rejected(named, reason, Some(guid), source),
            _ => Addressee::Ours(named.0),
        }
    }

    /// Takes a message other than a REQ.
    pub fn hear(&mut self, packet: &Packet, message: &Incoming) {
        let named = (packet.receiver, packet.sender());
        let found = match self.addressee(packet, message) {
            Addressee::Ours(name) => Some(name.get()),
            Addressee::Theirs(name) => self.by_id.get(&name),
        };
        let Some((name, id)) = found.and_then(|name| Some((name, self.ids.get(&name)?))) else {
            return self.answer_unknown(packet, message);
        };
        let known = id.machine.ids();
        if let Incoming::Rej { reason, .. } = *message {
            if !arrival::is_rejected(known, named, reason, id.machine.is_half_open()) {
                return;
            }
        }
        let is_from_peer = || id.address == packet.address;
        match arrival::hear(kind(message), known, named, is_from_peer) {
            Heard::Taken => {}
            Heard::Unknown => return self.answer_unknown(packet, message),
            Heard::WrongPeer => return,
        }
        let counted = self.step(name, Some(packet), |machine, now| {
            machine.receive(message, now)
        });
        if let (Incoming::Lap { .. }, None) = (message, counted) {
            self.move_to(name, packet.address);
        }
    }

    /// Gives the peer another address from now on.
    fn move_to(&mut self, name: u32, address: u32) {
        let id = self.ids.get_mut(&name).expect("it has taken a LAP");
        if id.claims.are_from_elsewhere(Source::new(address, 0, None)) {
            id.claims
                .release(CommId::new(name), &self.by_id, &self.by_qpn);
            id.listed = None;
        }
        id.address = address;
    }

    /// A DREQ for a connection that there is not is answered with its own names.
    fn answer_unknown(&mut self, packet: &Packet, message: &Incoming) {
        if let Incoming::Dreq { sender, .. } = *message {
            self.sent.push(Packet {
                receiver: sender,
                body: Body::Other(Incoming::Drep {
                    sender: packet.receiver,
                }),
                ..*packet
            });
        }
    }

    fn take_slot(&mut self, source: u32, name: CommId, random: &mut Random) -> Option<Slot> {
        let now = self.now;
        if let Some(slot) = self.hold(|backlog| backlog.take(source, name, now)) {
            return Some(slot);
        }
        if !self.backlog.may_take_over(source) {
            return None;
        }
        for _ in 0..LOOKED_AT {
            let chance = random.below(1 << 32) as u32;
            let holder = self.backlog.candidate(source, chance);
            let holder = holder.filter(|holder| self.has_had_time(holder.get()));
            if let Some(holder) = holder {
                self.step(holder.get(), None, |machine, _| machine.give_up());
                return self.hold(|backlog| backlog.take_over(source, name, now));
            }
        }
        None
    }

    fn hold(
        &mut self,
        take: impl Fn(&mut Backlog<Vec<Cell>>) -> Result<Slot, Refused>,
    ) -> Option<Slot> {
        loop {
            match take(&mut self.backlog) {
                Ok(slot) => return Some(slot),
                Err(Refused::Full) => return None,
                Err(Refused::Memory(cells)) => {
                    self.cells = self.cells.max(cells);
                    self.backlog.grow(vec![Cell::default(); cells]);
                }
            }
        }
    }

    /// Returns whether a connection may have to give its slot up.
    pub fn has_had_time(&self, name: u32) -> bool {
        let asked = self.ids[&name].machine.asked_at();
        asked.is_some_and(|asked| self.now.since(asked) >= self.backlog.time_to_finish())
    }

    /// The consumer agrees to a REQ.
    pub fn reply(&mut self, name: u32) {
        let param = RepParam {
            qpn: self.ids[&name].qpn,
            psn: Psn::wrapping(2),
            responder_resources: 1,
            initiator_depth: 1,
            rto: RTO,
        };
        self.call(name, |machine, now| machine.send_rep(&param, now));
    }

    /// Sends a DREQ, as the consumer disconnects or the connection is stale.
    pub fn disconnect(&mut self, name: u32) {
        self.call(name, |machine, now| machine.send_dreq(RTO, now));
    }

    /// Destroys an identifier, as the consumer lets go of it.
    pub fn destroy(&mut self, name: u32) {
        self.step(name, None, |machine, _| machine.destroy(false));
        let id = self.ids.remove(&name).expect("it is there");
        assert_eq!(id.machine.name(), StateName::Idle);
        assert!(id.slot.is_none() && id.listed.is_none());
    }

    /// A call of the consumer's, which its state may refuse.
    pub fn call<E>(
        &mut self,
        name: u32,
        call: impl FnOnce(&mut Machine, Time) -> Result<Actions, E>,
    ) {
        let now = self.now;
        if let Some(id) = self.ids.get_mut(&name) {
            if let Ok(actions) = call(&mut id.machine, now) {
                self.act(name, &actions, None);
            }
        }
    }

    /// The timers that are due go off.
    pub fn expire(&mut self) {
        let is_due = |id: &Id| id.timer.is_some_and(|due| due <= self.now);
        let due = self.ids.iter().filter(|(_, id)| is_due(id));
        for name in due.map(|(name, _)| *name).collect::<Vec<_>>() {
            self.ids.get_mut(&name).expect("it is there").timer = None;
            self.step(name, None, |machine, now| machine.timer(RTO, now));
        }
    }

    /// Lets a machine take a step, and tells as what its message was counted.
    fn step(
        &mut self,
        name: u32,
        cause: Option<&Packet>,
        step: impl FnOnce(&mut Machine, Time) -> Actions,
    ) -> Option<Counted> {
        let id = self.ids.get_mut(&name).expect("it is there");
        let actions = step(&mut id.machine, self.now);
        self.act(name, &actions, cause);
        actions.counted
    }

    fn act(&mut self, name: u32, actions: &Actions, cause: Option<&Packet>) {
        let id = self.ids.get_mut(&name).expect("it is there");
        match actions.timer {
            TimerAction::Keep => {}
            TimerAction::Stop => id.timer = None,
            TimerAction::At(due) => id.timer = Some(due),
        }
        if actions.slot != SlotAction::Keep {
            let mut slot = id.slot.take().expect("a half-open connection has a slot");
            match actions.slot {
                SlotAction::End(outcome) => self.backlog.end(&mut slot, outcome, self.now),
                _ => self.backlog.give_back(&mut slot),
            }
        }
        if actions.remote == RemoteAction::Forget {
            id.claims
                .release(CommId::new(name), &self.by_id, &self.by_qpn);
            id.listed = None;
        }
        let packet = match actions.send {
            None => return,
            Some(Send::Again) => id.request.expect("a request is kept"),
            Some(Send::New(outgoing)) => id.build(outgoing, id.address),
            Some(Send::Saved(outgoing)) => {
                id.build(outgoing, cause.map_or(id.address, |cause| cause.address))
            }
        };
        if id.machine.awaits_answer() {
            id.request = Some(packet);
        }
        self.sent.push(packet);
    }
}

/// The node for a REQ from an address.
struct Arriving<'a> {
    node: &'a mut Node,
    address: u32,
    random: &'a mut Random,
}

impl Reception for Arriving<'_> {
    type Connection = u32;
    type Listener = ();
    type Slot = (CommId, Slot);

    /// No request waits: addresses are known.
    fn forget_copies(&mut self) {}

    fn by_id(&self, id: &Remote<CommId>) -> Option<u32> {
        self.node.by_id.get(id)
    }

    fn by_qpn(&self, qpn: &Remote<Qpn>) -> Option<CommId> {
        self.node.by_qpn.get(qpn).map(CommId::new)
    }

    fn listener(&self, service: ServiceId) -> Option<()> {
        (service == SERVICE).then_some(())
    }

    fn admits(&self, (): &(), _: &Source) -> bool {
        self.node.backlog.admits(hash(self.address))
    }

    fn take_slot(&mut self, (): &(), _: &Source) -> Result<(CommId, Slot), Unanswered> {
        let local = CommId::new(self.node.next);
        let slot = self
            .node
            .take_slot(hash(self.address), local, self.random)
            .ok_or(Unanswered::NoSlot)?;
        self.node.next += 1;
        Ok((local, slot))
    }
}

/// The kind of a message.
fn kind(message: &Incoming) -> Kind {
    match message {
        Incoming::DuplicateReq => Kind::Req,
        Incoming::Rep(_) => Kind::Rep,
        Incoming::Mra { .. } => Kind::Mra,
        Incoming::Rej { .. } => Kind::Rej,
        Incoming::Rtu { .. } => Kind::Rtu,
        Incoming::Dreq { .. } => Kind::Dreq,
        Incoming::Drep { .. } => Kind::Drep,
        Incoming::Lap { .. } => Kind::Lap,
        Incoming::Apr { .. } => Kind::Apr,
        Incoming::DuplicateSidrReq => Kind::SidrReq,
        Incoming::SidrRep => Kind::SidrRep,
    }
}

/// The names that a REQ gives, for the tables.
pub fn names(req: &Req, adapter: Adapter) -> (Remote<CommId>, Remote<Qpn>) {
    let id = Remote {
        name: req.sender,
        adapter,
    };
    let qpn = Remote {
        name: req.qpn,
        adapter,
    };
    (id, qpn)
}

impl Id {
    fn build(&self, outgoing: Outgoing, address: u32) -> Packet {
        let (sender, receiver) = self.machine.ids();
        let message = match outgoing {
            Outgoing::Rep => Incoming::Rep(Rep {
                sender,
                qpn: self.qpn,
                eecn: self.qpn,
                psn: Psn::wrapping(2),
                responder_resources: 1,
                initiator_depth: 1,
                rnr_retry_count: 7,
                target_ack_delay: 15,
            }),
            Outgoing::Mra { of } => Incoming::Mra {
                sender,
                of,
                service_timeout: SERVICE_TIMEOUT,
            },
            Outgoing::Rej { reason, of, local } => Incoming::Rej {
                sender: local,
                of,
                reason,
            },
            Outgoing::Dreq => Incoming::Dreq {
                sender,
                qpn: self.peer_qpn,
            },
            Outgoing::Drep => Incoming::Drep { sender },
            // For a REP that no honest peer sends.
            Outgoing::Rtu => Incoming::Rtu { sender },
            other => panic!("{other:?} is sent by no end that is asked"),
        };
        Packet {
            address,
            guid: 0,
            receiver,
            body: Body::Other(message),
        }
    }
}
