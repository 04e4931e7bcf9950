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
    for rep in node.sent.drain(..) {
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
        let mut peer = Peer {
            guid: 1,
            address: 1,
            next: 0x100,
            connections: Default::default(),
            sent: Vec::new(),
        };
        let (ours, theirs) = connect(&mut node, &mut peer, is_ready);
        let named = if has_name { ours } else { 0 };
        let (packet, message) = time_out(&peer, (named, theirs));
        node.hear(&packet, &message);
        assert_eq!(node.ids[&ours].machine.name(), state, "{packet:?}");
    }
}
