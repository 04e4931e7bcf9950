// SPDX-License-Identifier: GPL-2.0-only

//! A sequence of steps: peers, an attacker, a network that reorders, repeats and loses, time, and
//! what must hold after each step.

use std::collections::{
    BTreeMap,
    BTreeSet, //
};

use oxib_cm_machine::backlog::Cell;
use oxib_cm_machine::input::{
    Incoming,
    Rep, //
};
use oxib_cm_machine::state::StateName;
use oxib_cm_machine::time::Time;
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::mra::Acknowledged;
use oxib_wire::cm::reason::Reason;
use oxib_wire::cm::rej::Rejected;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;

use super::node::{
    hash,
    Body,
    Fate,
    Id,
    Node,
    Packet, //
};
use super::peer::{
    request,
    Peer,
    QPNS, //
};
use crate::random::Random;

const PEERS: u32 = 3;

/// The first address of the attacker, and how many it has.
const ATTACKER: u32 = 0x1000;
const ATTACKERS_ADDRESSES: u64 = 6;

/// Messages that are under way at most: others are lost.
const ROOM: usize = 24;

/// Steps of a sequence.
pub const STEPS: usize = 100;

/// After so many milliseconds no state is left that a timer ends.
const LONGEST: u64 = 400_000;

/// The names and the address that a REQ said and came from.
type ReqOrigin = (u32, u64, CommId, Qpn);

/// Outcome that a REQ has to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    Duplicate,
    Stale,
    Admitted,
    Dropped,
    /// Admitted or dropped, by chance.
    Either,
}

pub struct World {
    random: Random,
    node: Node,
    peers: Vec<Peer>,
    /// Messages under way to the node, and to peers.
    pool: Vec<(bool, Packet)>,
    /// The next address that no peer has had.
    fresh: u32,
    /// The REQ that each identifier was made for.
    origins: BTreeMap<u32, ReqOrigin>,
    /// Identifiers, and the addresses that their peers have moved to.
    moved: BTreeSet<(u32, u32)>,
}

fn is_half_open(id: &Id) -> bool {
    matches!(
        id.machine.name(),
        StateName::ReqRcvd | StateName::MraReqSent | StateName::RepSent | StateName::MraRepRcvd
    )
}

fn is_attacker(address: u32) -> bool {
    address >= ATTACKER
}

impl World {
    pub fn new(mut random: Random) -> World {
        let most = 1 + random.below(8) as u32;
        let peer = |number: u32| Peer {
            guid: number.into(),
            address: 1 + number,
            next: 0x100 * (1 + number),
            connections: BTreeMap::new(),
            sent: Vec::new(),
        };
        World {
            random,
            node: Node::new(most),
            peers: (0..PEERS).map(peer).collect(),
            pool: Vec::new(),
            fresh: 1 + PEERS,
            origins: BTreeMap::new(),
            moved: BTreeSet::new(),
        }
    }

    /// Takes all steps, and ends in order.
    pub fn run(mut self) {
        for _ in 0..STEPS {
            self.step();
            self.check();
        }
        self.end();
    }

    fn step(&mut self) {
        let chosen = self.random.below(u64::from(PEERS)) as usize;
        let now = self.node.now;
        match self.random.below(16) {
            0..3 => {
                self.peers[chosen].connect(now);
            }
            3 => self.end_connection(chosen),
            4 => self.crash(chosen),
            5..9 => self.deliver_any(),
            9..12 => {
                let packet = self.forge();
                self.arrive(&packet);
            }
            12..15 => self.consume(),
            _ => self.pass_time(),
        }
        self.collect();
    }

    fn end_connection(&mut self, chosen: usize) {
        let names: Vec<u32> = self.peers[chosen].connections.keys().copied().collect();
        if !names.is_empty() {
            let name = self.random.choose(&names);
            let is_orderly = self.random.percent(70);
            self.peers[chosen].end(name, is_orderly, self.node.now);
        }
    }

    /// A peer loses all that it knows, and may get another address.
    fn crash(&mut self, chosen: usize) {
        let peer = &mut self.peers[chosen];
        peer.connections.clear();
        if self.random.percent(50) {
            peer.address = self.fresh;
            self.fresh += 1;
        }
    }

    /// Takes up what the peers have sent.
    fn collect(&mut self) {
        for peer in &mut self.peers {
            self.pool
                .extend(peer.sent.drain(..).map(|packet| (true, packet)));
        }
        while self.pool.len() > ROOM {
            let index = self.random.below(self.pool.len() as u64) as usize;
            self.pool.swap_remove(index);
        }
    }

    /// Any of the messages arrives, is lost, or arrives and will once more.
    fn deliver_any(&mut self) {
        if self.pool.is_empty() {
            return;
        }
        let index = self.random.below(self.pool.len() as u64) as usize;
        let (is_for_node, packet) = match self.random.percent(20) {
            true => self.pool[index],
            false => self.pool.swap_remove(index),
        };
        match is_for_node {
            _ if self.random.percent(10) => {}
            true => self.arrive(&packet),
            false => self.arrive_at_peer(&packet),
        }
    }

    fn arrive_at_peer(&mut self, packet: &Packet) {
        let now = self.node.now;
        let mut peers = self.peers.iter_mut();
        if let Some(peer) = peers.find(|peer| peer.address == packet.address) {
            peer.receive(packet, now);
        }
    }

    /// A message arrives at the node. It changes no connection but its sender's.
    fn arrive(&mut self, packet: &Packet) {
        let states = self.states();
        match packet.body {
            Body::Req(req) => {
                let origin = (packet.address, packet.guid, req.sender, req.qpn);
                let expected = self.expected(&origin);
                let fate = self.node.req(packet, &req, &mut self.random);
                let is_right = match expected {
                    Expected::Duplicate => fate == Fate::Duplicate,
                    Expected::Stale => fate == Fate::Stale,
                    Expected::Admitted => matches!(fate, Fate::Admitted(_)),
                    Expected::Dropped => fate == Fate::Dropped,
                    Expected::Either => matches!(fate, Fate::Admitted(_) | Fate::Dropped),
                };
                assert!(is_right, "{packet:?}: {fate:?}, not {expected:?}");
                if let Fate::Admitted(name) = fate {
                    self.origins.insert(name, origin);
                }
            }
            Body::Other(message) => self.node.hear(packet, &message),
        }
        for (name, (address, names, state)) in states {
            let knows_both = names == (packet.receiver, packet.sender());
            let is_senders = address == packet.address || knows_both;
            let id = &self.node.ids[&name];
            if id.address != address {
                assert!(knows_both && id.address == packet.address, "{packet:?}");
                self.moved.insert((name, id.address));
            }
            let is_now = id.machine.name();
            let is_given_up = is_now == StateName::Idle
                && matches!(state, StateName::RepSent | StateName::MraRepRcvd)
                && matches!(packet.body, Body::Req(_));
            assert!(
                is_senders || is_given_up || is_now == state,
                "{packet:?} changes {state:?} of {address:#x} to {is_now:?}"
            );
        }
        self.judge_sent(Some(packet));
    }

    fn states(&self) -> BTreeMap<u32, (u32, (CommId, CommId), StateName)> {
        let one =
            |(name, id): (&u32, &Id)| (*name, (id.address, id.machine.ids(), id.machine.name()));
        self.node.ids.iter().map(one).collect()
    }

    /// Returns the outcome that a REQ has to have, by the rules of `security.md`.
    fn expected(&self, origin: &ReqOrigin) -> Expected {
        let (address, guid, sender, qpn) = *origin;
        let listed = |name: &u32| {
            self.node
                .ids
                .get(name)
                .is_some_and(|id| id.listed.is_some())
        };
        let listed = || {
            self.origins
                .iter()
                .filter(|(name, _)| listed(name))
                .map(|(_, origin)| origin)
        };
        if listed().any(|other| (other.0, other.1, other.2) == (address, guid, sender)) {
            return Expected::Duplicate;
        }
        if listed().any(|other| (other.0, other.1, other.3) == (address, guid, qpn)) {
            return Expected::Stale;
        }
        let held = self.held();
        let taken: u32 = held.values().sum();
        let own = held.get(&address).copied().unwrap_or(0);
        if own < self.node.most - taken {
            return Expected::Admitted;
        }
        if own * held.len() as u32 >= taken {
            return Expected::Dropped;
        }
        let holders = self.node.ids.iter().filter(|(_, id)| is_half_open(id));
        let gives =
            |(name, id): (&u32, &Id)| held[&id.source] > own && self.node.has_had_time(*name);
        let (able, unable): (Vec<bool>, Vec<bool>) = holders.map(gives).partition(|gives| *gives);
        match (able.is_empty(), unable.is_empty()) {
            (true, _) => Expected::Dropped,
            (false, true) => Expected::Admitted,
            (false, false) => Expected::Either,
        }
    }

    /// The slots of each source that has some.
    fn held(&self) -> BTreeMap<u32, u32> {
        let mut held = BTreeMap::new();
        for id in self.node.ids.values().filter(|id| is_half_open(id)) {
            *held.entry(id.source).or_insert(0) += 1;
        }
        held
    }

    /// Checks that the node tells nobody of the connections of others.
    fn judge_sent(&mut self, cause: Option<&Packet>) {
        for packet in std::mem::take(&mut self.node.sent) {
            let (name, qpn) = match packet.body {
                Body::Other(Incoming::Rep(rep)) => (rep.sender, Some(rep.qpn)),
                _ => (packet.sender(), None),
            };
            // A DREQ says the receiver's own queue pair.
            let owner = self.origins.get(&name.get());
            let is_owners = owner.is_none_or(|origin| origin.0 == packet.address);
            let is_moved = self.moved.contains(&(name.get(), packet.address));
            // A DREP says the names of the DREQ, whether there is such a connection or not.
            let is_drep = matches!(packet.body, Body::Other(Incoming::Drep { .. }));
            let knows = |cause: &Packet| {
                let knows_both = owner.is_some_and(|origin| origin.2 == cause.sender());
                cause.receiver == name && (knows_both || is_drep)
            };
            let is_told = cause.is_some_and(|cause| {
                cause.address == packet.address && qpn.is_none() && knows(cause)
            });
            let is_rightful = is_owners || is_moved || is_told;
            assert!(is_rightful, "{packet:?} tells {owner:?} for {cause:?}");
            if let Some(qpn) = qpn {
                assert_eq!(self.node.ids[&name.get()].qpn, qpn);
            }
            if !is_attacker(packet.address) {
                self.pool.push((false, packet));
            }
        }
    }

    /// A message of the attacker's: a REQ with any names of a peer, or another message with a name
    /// of ours, and not the peer's beside it unless the connection is the attacker's.
    fn forge(&mut self) -> Packet {
        let address = ATTACKER + self.random.below(ATTACKERS_ADDRESSES) as u32;
        let victim = &self.peers[self.random.below(u64::from(PEERS)) as usize];
        let guid = victim.guid;
        let sender = CommId::new(victim.next.saturating_sub(1) + self.random.below(3) as u32);
        if self.random.percent(40) {
            let qpn = self.random.below(u64::from(QPNS)) as u8;
            let mut req = request(sender, qpn);
            req.local_response_timeout = self.random.choose(&[0, 12, 20, 31]);
            req.max_retries = self.random.choose(&[0, 15]);
            return Packet {
                address,
                guid,
                receiver: CommId::ZERO,
                body: Body::Req(req),
            };
        }
        let names: Vec<u32> = self.node.ids.keys().copied().collect();
        let receiver = match names.is_empty() {
            true => 0xbeef,
            false => self.random.choose(&names),
        };
        let id = self.node.ids.get(&receiver);
        let own = id.filter(|id| is_attacker(id.address));
        // It sends from the address of the connection, or from another one of its own.
        let address = match own {
            Some(id) if self.random.percent(60) => id.address,
            _ => address,
        };
        let theirs = id.map_or(CommId::ZERO, |id| id.machine.ids().1);
        let sender = match own {
            Some(_) if self.random.percent(80) => theirs,
            None if sender == theirs => CommId::new(0xbad),
            _ => sender,
        };
        let qpn = id.map_or(Qpn::from_bytes([0; 3]), |id| id.qpn);
        Packet {
            address,
            guid,
            receiver: CommId::new(receiver),
            body: Body::Other(self.forged(sender, qpn)),
        }
    }

    fn forged(&mut self, sender: CommId, qpn: Qpn) -> Incoming {
        let service_timeout = self.random.below(32) as u8;
        let acknowledged = [Acknowledged::Req, Acknowledged::Rep, Acknowledged::Lap];
        let of = self.random.choose(&acknowledged);
        let rejected = self
            .random
            .choose(&[Rejected::Req, Rejected::Rep, Rejected::Other]);
        let reasons = [
            Reason::STALE_CONNECTION,
            Reason::TIMEOUT,
            Reason::CONSUMER_DEFINED,
        ];
        let reason = self.random.choose(&reasons);
        match self.random.below(8) {
            0..2 => Incoming::Rtu { sender },
            2 => Incoming::Dreq { sender, qpn },
            3 => Incoming::Drep { sender },
            4 => Incoming::Rej {
                sender,
                of: rejected,
                reason,
            },
            5 => Incoming::Mra {
                sender,
                of,
                service_timeout,
            },
            6 => Incoming::Lap {
                sender,
                ack_timeout: service_timeout,
            },
            _ => Incoming::Rep(Rep {
                sender,
                qpn,
                eecn: qpn,
                psn: Psn::wrapping(3),
                responder_resources: 1,
                initiator_depth: 1,
                rnr_retry_count: 7,
                target_ack_delay: 15,
            }),
        }
    }

    /// Lets the consumer do something with one of its connections.
    fn consume(&mut self) {
        let names: Vec<u32> = self.node.ids.keys().copied().collect();
        if names.is_empty() {
            return;
        }
        let name = self.random.choose(&names);
        let chance = self.random.below(10);
        let node = &mut self.node;
        match (node.ids[&name].machine.name(), chance) {
            (StateName::ReqRcvd | StateName::MraReqSent, 0..7) => node.reply(name),
            (StateName::ReqRcvd | StateName::MraReqSent, 7) => {
                node.call(name, |machine, _| machine.prepare_mra());
            }
            (StateName::ReqRcvd | StateName::MraReqSent, 8)
            | (StateName::RepSent | StateName::MraRepRcvd, 0) => {
                node.call(name, |machine, now| {
                    machine.send_rej(Reason::CONSUMER_DEFINED, now)
                });
            }
            (StateName::RepSent | StateName::MraRepRcvd, 1) => {
                node.call(name, |machine, _| machine.established());
            }
            (StateName::RepSent | StateName::MraRepRcvd, 2..9) => {}
            (StateName::Established, 0..3) => node.disconnect(name),
            (StateName::Established, 3..9) => {}
            (StateName::DreqRcvd, 0..8) => node.call(name, |machine, now| machine.send_drep(now)),
            (StateName::TimeWait | StateName::DreqSent, 0..8) => {}
            _ => node.destroy(name),
        }
        self.judge_sent(None);
    }

    /// Time passes, until the next timer or for a while.
    fn pass_time(&mut self) {
        let peers = self.peers.iter().filter_map(Peer::due);
        let next = self
            .node
            .ids
            .values()
            .filter_map(|id| id.timer)
            .chain(peers)
            .min();
        let after = self.random.choose(&[1, 100, 5000, 60_000]);
        let then = self.node.now.after(after);
        self.advance(next.filter(|_| after == 1).unwrap_or(then));
    }

    fn advance(&mut self, then: Time) {
        self.node.now = self.node.now.max(then);
        self.node.expire();
        self.judge_sent(None);
        for peer in &mut self.peers {
            peer.expire(self.node.now);
        }
    }

    /// Checks what always holds.
    fn check(&self) {
        let node = &self.node;
        let (mut slots, mut names) = (0, 0);
        for (name, id) in &node.ids {
            assert_eq!(id.slot.is_some(), is_half_open(id), "{id:?}");
            slots += u32::from(id.slot.is_some());
            // A timer that has nothing to wait for does no harm.
            let due = id.machine.due();
            assert!(due.is_none() || id.timer == due, "{id:?}");
            if let Some((remote_id, remote_qpn)) = &id.listed {
                names += 1;
                assert_eq!(node.by_id.get(remote_id), Some(*name));
                assert_eq!(node.by_qpn.get(remote_qpn), Some(*name));
            }
        }
        assert_eq!(node.backlog.taken(), slots, "a slot is lost");
        assert!(slots <= node.most);
        for (source, held) in self.held() {
            assert_eq!(node.backlog.held(hash(source)), held);
        }
        // Nothing is kept of connections that are over.
        assert_eq!((node.by_id.len(), node.by_qpn.len()), (names, names));
        let bound = 32.max(4 * node.most as usize);
        assert!(node.cells <= bound, "{} cells", node.cells);
        assert!(size_of::<Cell>() * 4 <= 80);
        assert!(node.backlog.time_to_finish() <= 8192);
    }

    /// The attacker is silent, its connections stay. When time has passed, all slots are free and
    /// each peer connects. When the consumer has let go of everything, nothing is left.
    fn end(&mut self) {
        self.pool.clear();
        self.let_time_pass();
        assert_eq!(self.node.backlog.taken(), 0, "a slot is never given back");
        for chosen in 0..PEERS as usize {
            self.connect_at_last(chosen);
            self.check();
        }
        for name in self.node.ids.keys().copied().collect::<Vec<_>>() {
            self.node.destroy(name);
        }
        self.check();
        assert!(self.node.ids.is_empty());
    }

    /// Lets the consumer answer the peers that it has not answered, and time pass. All that is
    /// sent is lost.
    fn let_time_pass(&mut self) {
        for name in self.node.ids.keys().copied().collect::<Vec<_>>() {
            self.node.reply(name);
            self.node.call(name, |machine, now| machine.send_drep(now));
        }
        for _ in 0..3 {
            self.advance(self.node.now.after(LONGEST));
            for peer in &mut self.peers {
                peer.sent.clear();
            }
            self.pool.clear();
        }
        let is_over = |id: &Id| id.machine.name() == StateName::Idle;
        let over = self.node.ids.iter().filter(|(_, id)| is_over(id));
        for name in over.map(|(name, _)| *name).collect::<Vec<_>>() {
            self.node.destroy(name);
        }
    }

    /// Connects a peer, at the second try where the node has an old connection of its queue pair.
    fn connect_at_last(&mut self, chosen: usize) {
        for attempt in 0..2 {
            let Some(name) = self.peers[chosen].connect(self.node.now) else {
                return;
            };
            while let Some(packet) = self.peers[chosen].sent.pop() {
                self.arrive(&packet);
                if let Some(asked) = self.node.ids.keys().last().copied() {
                    self.node.reply(asked);
                    self.judge_sent(None);
                }
                for (_, packet) in std::mem::take(&mut self.pool) {
                    self.arrive_at_peer(&packet);
                }
            }
            let connection = self.peers[chosen].connections.get(&name);
            let state = connection.map(|connection| connection.machine.name());
            if state == Some(StateName::Established) {
                return;
            }
            assert_eq!(attempt, 0, "a peer does not connect: {state:?}");
            self.let_time_pass();
        }
    }
}
