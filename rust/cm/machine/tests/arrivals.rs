// SPDX-License-Identifier: GPL-2.0-only

//! The arriving side of one node, with its tables and places: peers that connect, crash, and come
//! back with another address, and an attacker who says of itself what it likes, from addresses of
//! its own.
//!
//! Peers are served whatever the attacker does, the attacker is told of no connection that is not
//! its own, and in the end nothing is left.

#[path = "simulation/directory.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod directory;
#[path = "simulation/random.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod random;

use std::collections::BTreeMap;

use directory::Directory;
use oxib_cm_machine::actions::{
    Actions,
    RemoteAction, //
};
use oxib_cm_machine::backlog::{
    Backlog,
    Cell,
    Outcome,
    Place,
    Refused, //
};
use oxib_cm_machine::claim::{
    Adapter,
    Claims,
    Remote,
    Taken, //
};
use oxib_cm_machine::input::{
    Incoming,
    QpType,
    RepParam,
    Req, //
};
use oxib_cm_machine::source::Source;
use oxib_cm_machine::state::StateName;
use oxib_cm_machine::time::Time;
use oxib_cm_machine::Machine;
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::mtu::Mtu;
use oxib_wire::pkey::Pkey;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;
use random::Random;

const PEERS: usize = 4;
const PLACES: u32 = 16;
/// Identifiers, and queue pairs of a peer: few, so that they are used again.
const NAMES: u64 = 6;
/// The first address of the attacker.
const ATTACKER: u32 = 1 << 16;
const ATTACKERS_ADDRESSES: u64 = 40;

struct Id {
    machine: Machine,
    claims: Claims,
    place: Option<Place>,
    /// The address that its REQ came from.
    address: u32,
}

/// Outcome of a REQ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Rep(u32),
    /// Duplicate of that connection's REQ.
    Again(u32),
    /// Stale, as that connection has its queue pair.
    Stale(u32),
    Dropped,
}

/// The node.
struct Node {
    now: Time,
    next: u32,
    ids: BTreeMap<u32, Id>,
    by_id: Directory<CommId>,
    by_qpn: Directory<Qpn>,
    backlog: Backlog<Vec<Cell>>,
    random: Random,
}

fn remote<T>(name: T, adapter: Adapter) -> Remote<T> {
    Remote { name, adapter }
}

fn source(address: u32) -> u32 {
    address.wrapping_mul(0x9e37_79b9).rotate_left(16)
}

impl Node {
    fn new(random: Random) -> Node {
        Node {
            now: Time::new(1),
            next: 0xb000,
            ids: BTreeMap::new(),
            by_id: Directory::new(),
            by_qpn: Directory::new(),
            backlog: Backlog::new(PLACES, Vec::new()),
            random,
        }
    }

    fn receive(&mut self, address: u32, guid: u64, req: &Req) -> Answer {
        // Whoever was asked has had time to answer.
        self.now = self.now.after(10_000);
        let adapter = Adapter {
            guid,
            source: Source::new(address, 0, None),
        };
        if let Some(name) = self.by_id.get(&remote(req.sender, adapter)) {
            self.step(name, |machine, now| {
                machine.receive(&Incoming::DuplicateReq, now)
            });
            return Answer::Again(name);
        }
        if let Some(name) = self.by_qpn.get(&remote(req.qpn, adapter)) {
            return Answer::Stale(name);
        }
        self.next += 1;
        let local = CommId::new(self.next);
        let Some(place) = self.place(source(address), local) else {
            return Answer::Dropped;
        };
        let (machine, _) = Machine::accept_req(local, req, self.now);
        let mut claims = Claims::default();
        let claimed = claims.claim(
            local,
            adapter,
            (&self.by_id, req.sender, ()),
            (&self.by_qpn, req.qpn, ()),
        );
        assert_eq!(claimed, Ok::<(), Taken>(()), "both names were free");
        let id = Id {
            machine,
            claims,
            place: Some(place),
            address,
        };
        self.ids.insert(local.get(), id);
        let rep = RepParam {
            qpn: Qpn::from_bytes([0, 2, 0]),
            psn: Psn::wrapping(2),
            responder_resources: 1,
            initiator_depth: 1,
            rto: 100,
        };
        self.step(local.get(), |machine, now| {
            machine.send_rep(&rep, now).expect("a REQ came")
        });
        Answer::Rep(local.get())
    }

    /// Takes a place as `half_open.rs` does.
    fn place(&mut self, source: u32, name: CommId) -> Option<Place> {
        if let Some(place) = self.hold(|backlog, now| backlog.take(source, name, now)) {
            return Some(place);
        }
        for _ in 0..16 {
            let chance = self.random.below(1 << 32) as u32;
            let is_allowed = self.backlog.may_take_over(source);
            let candidate = self.backlog.candidate(source, chance);
            if let Some(holder) = candidate.filter(|_| is_allowed) {
                let machine = &self.ids[&holder.get()].machine;
                assert_eq!(machine.name(), StateName::RepSent, "it has a place");
                self.step(holder.get(), |machine, _| machine.give_up());
                return self.hold(|backlog, now| backlog.take_over(source, name, now));
            }
        }
        None
    }

    fn hold(
        &mut self,
        take: impl Fn(&mut Backlog<Vec<Cell>>, Time) -> Result<Place, Refused>,
    ) -> Option<Place> {
        loop {
            match take(&mut self.backlog, self.now) {
                Ok(place) => return Some(place),
                Err(Refused::Full) => return None,
                Err(Refused::Memory(cells)) => {
                    self.backlog.grow(vec![Cell::default(); cells]);
                }
            }
        }
    }

    fn step(&mut self, name: u32, step: impl FnOnce(&mut Machine, Time) -> Actions) {
        let id = self.ids.get_mut(&name).expect("it is there");
        let actions = step(&mut id.machine, self.now);
        if actions.half_open_over {
            let mut place = id.place.take().expect("it had a place");
            match Outcome::of(&actions) {
                Some(outcome) => self.backlog.end(&mut place, outcome, self.now),
                None => self.backlog.give_back(&mut place),
            }
        }
        if actions.remote == RemoteAction::Forget {
            let ours = CommId::new(name);
            id.claims.release(ours, &self.by_id, &self.by_qpn);
        }
        if id.machine.name() == StateName::Idle {
            self.ids.remove(&name);
        }
    }

    /// A message with both names, of which the second was told to whoever knows it.
    fn hear(&mut self, name: u32, message: &Incoming) {
        if self.ids.contains_key(&name) {
            self.step(name, |machine, now| machine.receive(message, now));
        }
    }

    /// The consumer agrees to a DREQ, and the time-wait passes.
    fn end(&mut self, name: u32) {
        let state = self.ids.get(&name).map(|id| id.machine.name());
        if state == Some(StateName::DreqRcvd) {
            self.step(name, |machine, now| {
                machine.send_drep(now).expect("a DREQ came")
            });
        }
        if self.ids.contains_key(&name) {
            self.step(name, |machine, _| machine.give_up());
        }
    }

    /// The connection is stale: its peer is sent a DREQ, and answers or is not there.
    fn end_stale(&mut self, name: u32) {
        let state = self.ids.get(&name).map(|id| id.machine.name());
        if state == Some(StateName::Established) {
            self.step(name, |machine, now| {
                machine.send_dreq(100, now).expect("it is established")
            });
            self.step(name, |machine, _| machine.give_up());
        }
        self.end(name);
    }
}

/// A connection as its caller has it.
#[derive(Clone, Copy)]
struct Connection {
    ours: u32,
    theirs: u32,
    qpn: u8,
}

/// A peer that means what it says.
struct Peer {
    guid: u64,
    address: u32,
    connections: Vec<Connection>,
    next: u32,
}

fn request(sender: u32, qpn: u8) -> Req {
    Req {
        sender: CommId::new(sender),
        qp_type: QpType::Rc,
        qpn: Qpn::from_bytes([0, 1, qpn]),
        psn: Psn::wrapping(1),
        pkey: Pkey::DEFAULT,
        mtu: Mtu::new(3),
        responder_resources: 1,
        initiator_depth: 1,
        retry_count: 7,
        rnr_retry_count: 7,
        remote_response_timeout: 20,
        local_response_timeout: 20,
        max_retries: 15,
        ack_timeout: 14,
        alternate_ack_timeout: None,
    }
}

impl Peer {
    /// Connects, with a queue pair that it does not use. It is served at the first try, but for
    /// one rejection where it had the queue pair before, at the same address.
    fn connect(&mut self, node: &mut Node) {
        let used = |qpn: &u8| self.connections.iter().any(|other| other.qpn == *qpn);
        let Some(qpn) = (0..NAMES as u8).find(|qpn| !used(qpn)) else {
            return;
        };
        let mut answer = Answer::Dropped;
        for attempt in 0..2 {
            self.next += 1;
            let req = request(self.next, qpn);
            answer = node.receive(self.address, self.guid, &req);
            let Answer::Stale(holder) = answer else {
                break;
            };
            assert_eq!(attempt, 0, "the stale connection is over");
            assert_eq!(node.ids[&holder].address, self.address);
            node.end_stale(holder);
        }
        let Answer::Rep(theirs) = answer else {
            panic!("{answer:?} for a peer");
        };
        let sender = CommId::new(self.next);
        if node.random.percent(30) {
            let again = node.receive(self.address, self.guid, &request(self.next, qpn));
            assert_eq!(again, Answer::Again(theirs));
        }
        node.hear(theirs, &Incoming::Rtu { sender });
        assert_eq!(node.ids[&theirs].machine.name(), StateName::Established);
        self.connections.push(Connection {
            ours: self.next,
            theirs,
            qpn,
        });
    }

    fn disconnect(&mut self, node: &mut Node) {
        if let Some(connection) = self.connections.pop() {
            let sender = CommId::new(connection.ours);
            let qpn = Qpn::from_bytes([0, 2, 0]);
            node.hear(connection.theirs, &Incoming::Dreq { sender, qpn });
            node.end(connection.theirs);
        }
    }

    /// All its connections are there.
    fn check(&self, node: &Node) {
        for connection in &self.connections {
            let state = node.ids[&connection.theirs].machine.name();
            assert_eq!(state, StateName::Established);
        }
    }
}

/// A REQ from an address of the attacker, with names of others, or a message with a guess.
fn attack(node: &mut Node, peers: &[Peer]) {
    let address = ATTACKER + node.random.below(ATTACKERS_ADDRESSES) as u32;
    let victim = &peers[node.random.below(PEERS as u64) as usize];
    // The identifier that it has used last or will use next.
    let sender = victim.next + node.random.below(3) as u32;
    let req = request(sender, node.random.below(NAMES) as u8);
    match node.receive(address, victim.guid, &req) {
        Answer::Rep(name) | Answer::Again(name) | Answer::Stale(name) => {
            // What it is told of is its own.
            assert_eq!(node.ids[&name].address, address);
            if node.random.percent(20) {
                let sender = req.sender;
                node.hear(name, &Incoming::Rtu { sender });
            }
        }
        Answer::Dropped => {}
    }
}

fn run(seed: u64) {
    let mut random = Random::new(seed);
    let mut node = Node::new(Random::new(!seed));
    let mut fresh = PEERS as u32;
    let mut peers: Vec<Peer> = (0..PEERS as u32)
        .map(|number| Peer {
            guid: number.into(),
            address: number,
            connections: Vec::new(),
            next: 0x100 * (number + 1),
        })
        .collect();
    for _ in 0..500 {
        let chosen = random.below(PEERS as u64) as usize;
        let peer = &mut peers[chosen];
        match random.below(16) {
            0..4 => peer.connect(&mut node),
            4..6 => peer.disconnect(&mut node),
            // It crashes, and knows nothing of before.
            6 => peer.connections.clear(),
            // So it does, and gets another address.
            7 => {
                peer.connections.clear();
                peer.address = fresh;
                fresh += 1;
            }
            _ => attack(&mut node, &peers),
        }
        for peer in &peers {
            peer.check(&node);
        }
        assert!(node.backlog.taken() <= PLACES);
    }
    let names: Vec<u32> = node.ids.keys().copied().collect();
    for name in names {
        node.end_stale(name);
    }
    assert!(node.ids.is_empty());
    assert_eq!((node.by_id.len(), node.by_qpn.len()), (0, 0));
    assert_eq!(node.backlog.taken(), 0);
}

#[test]
fn an_attacker_hinders_no_peer() {
    let first = std::env::var("OXIB_FIRST_SEED").map_or(0, |text| text.parse().expect("a number"));
    for seed in (0..1000).map(|index: u64| index.wrapping_add(first)) {
        let failed = std::panic::catch_unwind(|| run(seed)).is_err();
        assert!(!failed, "seed {seed}");
    }
}
