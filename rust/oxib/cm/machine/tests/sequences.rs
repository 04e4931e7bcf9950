// SPDX-License-Identifier: GPL-2.0-only

//! Sequences of messages to one node, from peers and from an attacker: forged, reordered, repeated
//! and lost, with the node's consumer and its timers in between. The fuzz target `cm_arrivals`
//! chooses such sequences, here a seed does.
//!
//! `OXIB_SCHEDULES` says how many to run (2000 unless told), `OXIB_FIRST_SEED` from which seed on.

mod arriving;
mod directory;
#[allow(dead_code, reason = "each test uses its part")]
mod random;

use arriving::node::{
    Body,
    Fate,
    Node,
    Packet, //
};
use arriving::peer::Peer;
use arriving::world::World;
use oxib_cm_machine::input::Incoming;
use oxib_cm_machine::state::StateName;
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::reason::Reason;
use oxib_wire::cm::rej::Rejected;
use random::Random;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number in the environment"))
}

#[test]
fn whatever_arrives_the_node_keeps_its_rules() {
    let first = number("OXIB_FIRST_SEED").unwrap_or(0);
    let count = number("OXIB_SCHEDULES").unwrap_or(2000);
    for seed in (0..count).map(|index| index.wrapping_add(first)) {
        let run = || World::new(Random::new(seed)).run();
        let failed = std::panic::catch_unwind(run).is_err();
        assert!(!failed, "seed {seed}");
    }
}

fn peer(number: u32) -> Peer {
    Peer {
        guid: number.into(),
        address: number,
        next: 0x100 * number,
        connections: Default::default(),
        sent: Vec::new(),
    }
}

/// The REJ of a peer that gives up a request, with its own name for the connection and `named` for
/// ours.
fn time_out(peer: &Peer, (named, theirs): (u32, u32)) -> (Packet, Incoming) {
    let message = Incoming::Rej {
        sender: CommId::new(theirs),
        of: Rejected::Req,
        reason: Reason::TIMEOUT,
    };
    let packet = Packet {
        address: peer.address,
        guid: peer.guid,
        receiver: CommId::new(named),
        body: Body::Other(message),
    };
    (packet, message)
}

/// Our name for a connection whose peer is ready, if the RTU arrives, and the peer's name for it.
fn connect(node: &mut Node, peer: &mut Peer, is_ready: bool) -> (u32, u32) {
    let theirs = peer.connect(node.now).expect("a queue pair is free");
    let packet = peer.sent.pop().expect("it has asked");
    let Body::Req(req) = packet.body else {
        panic!("{packet:?} is no REQ");
    };
    let Fate::Admitted(ours) = node.req(&packet, &req, &mut Random::new(1)) else {
        panic!("{req:?} is new");
    };
    node.reply(ours);
    let is_own = |packet: &Packet| packet.address == peer.address;
    let (own, others) = node.sent.drain(..).partition::<Vec<_>, _>(is_own);
    node.sent = others;
    for rep in own {
        peer.receive(&rep, node.now);
    }
    let rtu = peer.sent.pop().expect("it has a REP");
    match rtu.body {
        Body::Other(message) if is_ready => node.hear(&rtu, &message),
        _ => {}
    }
    (ours, theirs)
}

/// A sender that has been told our name gives it. A stranger that writes the peer's address into a
/// packet may know the peer's name alone.
#[test]
fn a_time_out_without_our_name_ends_no_established_connection() {
    // Whether the RTU has come, whether the REJ has our name, and the state afterwards.
    let table = [
        (false, false, StateName::Idle),
        (false, true, StateName::Idle),
        (true, false, StateName::Established),
        (true, true, StateName::TimeWait),
    ];
    for (is_ready, has_name, state) in table {
        let mut node = Node::new(1);
        let mut peer = peer(1);
        let (ours, theirs) = connect(&mut node, &mut peer, is_ready);
        let named = if has_name { ours } else { 0 };
        let (packet, message) = time_out(&peer, (named, theirs));
        node.hear(&packet, &message);
        assert_eq!(node.ids[&ours].machine.name(), state, "{packet:?}");
    }
}

/// The RTU of the first peer is lost, so that the peer believes that it is connected.
#[test]
fn a_peer_that_loses_its_slot_is_told() {
    let mut node = Node::new(1);
    let [mut first, mut second] = [1, 2].map(peer);
    let (ours, theirs) = connect(&mut node, &mut first, false);
    let state = |peer: &Peer, name| peer.connections[&name].machine.name();
    assert_eq!(state(&first, theirs), StateName::Established);
    node.now = node.now.after(node.backlog.time_to_finish());
    let (_, newcomers) = connect(&mut node, &mut second, true);
    assert_eq!(state(&second, newcomers), StateName::Established);
    assert_eq!(node.ids[&ours].machine.name(), StateName::Idle);
    let told = node.sent.pop().expect("the first peer is told");
    assert_eq!((told.address, told.receiver.get()), (1, theirs));
    assert_eq!(told.sender().get(), ours);
    first.receive(&told, node.now);
    assert_eq!(state(&first, theirs), StateName::TimeWait);
}
