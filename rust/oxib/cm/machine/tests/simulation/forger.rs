// SPDX-License-Identifier: GPL-2.0-only

//! Messages about a conversation that none of its ends has sent.

use oxib_cm_machine::actions::SERVICE_TIMEOUT;
use oxib_cm_machine::input::{
    Incoming,
    QpType,
    Rep,
    Req, //
};
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::kind::Kind;
use oxib_wire::cm::mra::Acknowledged;
use oxib_wire::cm::mtu::Mtu;
use oxib_wire::cm::reason::Reason;
use oxib_wire::cm::rej::Rejected;
use oxib_wire::pkey::Pkey;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;

use super::consumer::Temper;
use super::network::{
    Body,
    Origin,
    Packet,
    Side, //
};
use super::node::Id;
use super::world::{
    Scenario,
    World, //
};
use crate::random::Random;

/// The most that happens before a schedule is left to itself.
const MOST_STEPS: usize = 400;

/// Forgers that there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forger {
    /// A third node, which does not know both names of a connection.
    Stranger,
    /// Any node, with the peer's address at times.
    Anybody,
}

/// A name of the conversation, or one near it.
fn name(world: &mut World, side: Side) -> CommId {
    let base = match side {
        Side::Active => 0xa000,
        Side::Passive => 0xb000,
    };
    match world.random.below(8) {
        0 => CommId::ZERO,
        near => CommId::new(base + near as u32 - 1),
    }
}

fn qpn(world: &mut World) -> Qpn {
    let (high, low) = (world.random.below(4) as u8, world.random.below(3) as u8);
    Qpn::from_bytes([0, high, low])
}

/// The times are those that the simulator's judge knows the ends of: the caps of others are for
/// `tests/patience.rs`.
fn req(world: &mut World, sender: CommId) -> Req {
    Req {
        sender,
        qp_type: world.random.choose(&[QpType::Rc, QpType::Uc]),
        qpn: qpn(world),
        psn: Psn::wrapping(3),
        pkey: Pkey::DEFAULT,
        mtu: Mtu::new(world.random.below(8) as u8),
        responder_resources: 1,
        initiator_depth: 1,
        retry_count: 7,
        rnr_retry_count: 7,
        remote_response_timeout: 8 + world.random.below(13) as u8,
        local_response_timeout: 8 + world.random.below(13) as u8,
        max_retries: world.random.below(16) as u8,
        ack_timeout: 11 + world.random.below(8) as u8,
        alternate_ack_timeout: None,
    }
}

fn answer(world: &mut World, sender: CommId) -> (Kind, Incoming) {
    match world.random.below(9) {
        0 => {
            let of = world.random.choose(&[
                Acknowledged::Req,
                Acknowledged::Rep,
                Acknowledged::Lap,
                Acknowledged::Reserved,
            ]);
            let service_timeout = SERVICE_TIMEOUT;
            let mra = Incoming::Mra {
                sender,
                of,
                service_timeout,
            };
            (Kind::Mra, mra)
        }
        1 => {
            let rep = Rep {
                sender,
                qpn: qpn(world),
                eecn: qpn(world),
                psn: Psn::wrapping(4),
                responder_resources: 1,
                initiator_depth: 1,
                rnr_retry_count: 7,
                target_ack_delay: world.random.below(32) as u8,
            };
            (Kind::Rep, Incoming::Rep(rep))
        }
        2 => (Kind::Rtu, Incoming::Rtu { sender }),
        3 => {
            let qpn = qpn(world);
            (Kind::Dreq, Incoming::Dreq { sender, qpn })
        }
        4 => (Kind::Drep, Incoming::Drep { sender }),
        5 => {
            let ack_timeout = world.random.below(32) as u8;
            let lap = Incoming::Lap {
                sender,
                ack_timeout,
            };
            (Kind::Lap, lap)
        }
        6 => (Kind::Apr, Incoming::Apr { sender }),
        _ => {
            let of = world
                .random
                .choose(&[Rejected::Req, Rejected::Rep, Rejected::Other]);
            let reason = world.random.choose(&[
                Reason::CONSUMER_DEFINED,
                Reason::STALE_CONNECTION,
                Reason::TIMEOUT,
                Reason::INVALID_SERVICE_ID,
            ]);
            (Kind::Rej, Incoming::Rej { sender, of, reason })
        }
    }
}

/// Makes a message that none of the ends has sent.
fn forge(world: &mut World, forger: Forger) -> Packet {
    let origins = [Origin::Stranger, Origin::Peer];
    let from = match forger {
        Forger::Stranger => Origin::Stranger,
        Forger::Anybody => world.random.choose(&origins),
    };
    let to = world.random.choose(&[Side::Active, Side::Passive]);
    let (receiver, sender) = (name(world, to), name(world, to.other()));
    let adapter = world.random.choose(&origins);
    if to == Side::Passive && world.random.percent(30) {
        let body = Body::Req(req(world, sender));
        return Packet {
            to,
            from,
            adapter,
            kind: Kind::Req,
            receiver: CommId::ZERO,
            body,
        };
    }
    let (kind, message) = answer(world, sender);
    Packet {
        to,
        from,
        adapter,
        kind,
        receiver,
        body: Body::Answer(message),
    }
}

/// Returns whether a stranger can have sent it: any REQ, with all names of the peer in it and
/// before the peer sends its own; of other messages those that do not say both names of a
/// connection.
fn is_a_strangers(world: &mut World, packet: &Packet) -> bool {
    if let Body::Req(_) = packet.body {
        return true;
    }
    let node = world.node(packet.to);
    let peers = |id: &Id| id.peer == Origin::Peer;
    let named = (packet.receiver, packet.sender());
    let mut known = node.ids.values().filter(|id| peers(id));
    !known.any(|id| id.machine.ids() == named)
}

/// A scenario in which a forger is heard.
pub fn scenario(random: &mut Random, forger: Forger) -> Scenario {
    match forger {
        Forger::Stranger => Scenario {
            loss: 0,
            duplicates: random.below(40),
            longest_delay: 1 + random.below(40),
            temper: random.choose(&[Temper::Willing, Temper::Slow]),
            connections: 1,
        },
        Forger::Anybody => Scenario {
            loss: random.below(60),
            duplicates: random.below(60),
            longest_delay: 1 + random.below(3000),
            temper: Temper::Any,
            connections: 1 + random.below(4),
        },
    }
}

/// Lets the conversation take its course, with forgeries and what `other` does in between, as
/// long as `goes_on` says so. Whatever has happened, nothing is left of it, and what a stranger
/// has sent has had no effect on the two.
pub fn converse(
    mut world: World,
    forger: Forger,
    mut other: impl FnMut(&mut World),
    goes_on: impl Fn(&World) -> bool,
) {
    for _ in 0..MOST_STEPS {
        if !goes_on(&world) {
            break;
        }
        match world.random.below(8) {
            0..4 => {
                if !world.step_on() {
                    break;
                }
            }
            4 => other(&mut world),
            _ => {
                let packet = forge(&mut world, forger);
                if forger == Forger::Anybody || is_a_strangers(&mut world, &packet) {
                    world.deliver(packet);
                }
            }
        }
    }
    world.run();
    world.judge_every_schedule();
    if forger == Forger::Stranger {
        world.judge_willing();
        assert_eq!(world.revealed, []);
    }
}
