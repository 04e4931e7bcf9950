// SPDX-License-Identifier: GPL-2.0-only

//! Packets for the management queue pairs of a node, and those that it sends by itself.

use super::agent;
use super::agent::{
    Managed,
    Outcome,
    Request, //
};
use super::counters::Counters;
use super::datagram;
use super::datagram::{
    GENERAL_QP,
    OUT_LEN,
    SUBNET_QP, //
};
use super::directed;
use super::directed::{
    Place,
    Step, //
};
use super::discard::Discard;
use super::events::Events;
use super::wire::lid::Lid;
use super::wire::lrh::VL_MANAGEMENT;
use super::wire::mad;
use super::wire::mad::{
    Header,
    Subject,
    CLASS_PERFORMANCE,
    CLASS_SUBNET_LID,
    METHOD_TRAP, //
};
use super::wire::packet::{
    Outgoing,
    Packet, //
};
use super::wire::pma::Performance;
use super::wire::smp;
use super::wire::smp::notice::Notice;
use super::wire::smp::{
    attribute,
    Smp, //
};

/// The key that a packet for the general services has to have (IBTA 13.4.2).
const GENERAL_QKEY: u32 = 0x8001_0000;

/// A packet that has been written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The port by which the packet leaves.
    pub port: u8,
    /// The length of the packet, in bytes.
    pub len: usize,
}

/// The result of a packet for the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The packet that is to be sent now: an answer, or what came, on its way.
    pub answer: Option<Answer>,
    /// Changes that the packet has made.
    pub events: Events,
    /// The cause for which there is no answer, if it is the packet's own fault.
    pub discard: Option<Discard>,
}

impl Received {
    fn events(events: Events) -> Received {
        Received {
            answer: None,
            events,
            discard: None,
        }
    }
}

impl From<Discard> for Received {
    fn from(discard: Discard) -> Received {
        Received {
            discard: Some(discard),
            ..Received::events(Events::default())
        }
    }
}

/// A packet that the node sends without a request, and the time of the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Poll {
    /// A packet that is to be sent now. There may be more: ask again.
    pub send: Option<Answer>,
    /// The time at which the next packet is due, in nanoseconds, if nothing else happens before.
    pub next: Option<u64>,
}

/// A node with cables in its ports.
pub trait Cabled: Managed + Sized {
    /// The cable of a port carries packets, or has stopped to.
    fn carrier(&mut self, number: u8, up: bool, _now: u64) -> Events {
        self.node_mut().carrier(number, up)
    }

    /// Serves a packet for one of the node's own management queue pairs that came by a port, and
    /// writes the answer as a packet, or the packet as it goes on. Directed routes are followed.
    fn receive<C: Counters>(
        &mut self,
        in_port: u8,
        packet: &Packet<'_>,
        now: u64,
        counters: &C,
        out: &mut [u8; OUT_LEN],
    ) -> Received {
        receive(self, in_port, packet, now, counters, out)
    }

    /// Writes the next trap that is due, as a packet, and says when to come again.
    fn poll(&mut self, now: u64, out: &mut [u8; OUT_LEN]) -> Poll {
        poll(self, now, out)
    }
}

/// Serves a packet that came by a port.
fn receive<M: Managed, C: Counters>(
    managed: &mut M,
    in_port: u8,
    packet: &Packet<'_>,
    now: u64,
    counters: &C,
    out: &mut [u8; OUT_LEN],
) -> Received {
    let link = packet.head.lrh.link();
    let on_management = link.vl == VL_MANAGEMENT;
    let (Some(deth), Ok(datagram)) = (
        packet.extension.deth,
        <&[u8; mad::LEN]>::try_from(packet.payload),
    ) else {
        return Discard::Management.into();
    };
    let served = match packet.transport.destination {
        SUBNET_QP if on_management && packet.head.grh.is_none() => {
            let request = Request::new(in_port, link.slid, now);
            subnet(managed, request, packet, datagram, out)
        }
        GENERAL_QP if !on_management && deth.qkey() == GENERAL_QKEY => {
            general(managed, in_port, packet, datagram, counters, out)
        }
        SUBNET_QP | GENERAL_QP if on_management != (packet.transport.destination == SUBNET_QP) => {
            Err(Discard::Lane)
        }
        _ => Err(Discard::Management),
    };
    served.unwrap_or_else(Received::from)
}

/// Serves a datagram of subnet management (queue pair 0).
fn subnet<M: Managed>(
    managed: &mut M,
    request: Request,
    packet: &Packet<'_>,
    datagram: &[u8; mad::LEN],
    out: &mut [u8; OUT_LEN],
) -> Result<Received, Discard> {
    let mut smp = *Smp::from_bytes(datagram);
    if !smp.is_subnet_management() || smp.header().base_version() != mad::BASE_VERSION {
        return Err(Discard::Management);
    }
    if smp.is_directed() {
        return directed_route(managed, request, &mut smp, out);
    }
    let link = packet.head.lrh.link();
    if !owns(managed, request.in_port, link.dlid) && link.dlid != Lid::PERMISSIVE {
        return Err(Discard::Destination);
    }
    let (outcome, events) = agent::serve(managed, request, &mut smp);
    if let Some(received) = unanswered(outcome, events) {
        return Ok(received);
    }
    let own = own_lid(managed, request.in_port);
    let outgoing = Outgoing {
        sl: link.sl,
        ..datagram::subnet(own, link.slid)
    };
    // Without a way back in the tables the answer leaves by where the request came from.
    let port = managed
        .leave_by(request.in_port, link.slid)
        .unwrap_or(request.in_port);
    Ok(send(&outgoing, &smp, port, events, out))
}

/// A directed route: the packet goes on, or is served here and goes back.
fn directed_route<M: Managed>(
    managed: &mut M,
    request: Request,
    smp: &mut Smp,
    out: &mut [u8; OUT_LEN],
) -> Result<Received, Discard> {
    let place = Place {
        is_switch: managed.node().is_switch(),
        ports: managed.node().port_count(),
        in_port: request.in_port,
    };
    let step = directed::arrive(smp, place)?;
    let own = own_lid(managed, request.in_port);
    let nothing = Events::default();
    match step {
        Step::Leave(port) => {
            let linked = managed
                .node()
                .port(port)
                .is_some_and(|port| port.is_linked());
            if !linked {
                return Err(Discard::OutNotActive);
            }
            let outgoing = datagram::subnet(Lid::PERMISSIVE, Lid::PERMISSIVE);
            Ok(send(&outgoing, smp, port, nothing, out))
        }
        Step::Address(lid) if smp.is_returning() || !owns(managed, request.in_port, lid) => {
            let port = managed
                .leave_by(request.in_port, lid)
                .filter(|port| *port != 0)
                .ok_or(Discard::NoRoute)?;
            Ok(send(&datagram::subnet(own, lid), smp, port, nothing, out))
        }
        Step::Agent | Step::Address(_) => {
            let (outcome, events) = agent::serve(managed, request, smp);
            if let Some(received) = unanswered(outcome, events) {
                return Ok(received);
            }
            directed::turn(smp);
            let outgoing = match smp.dr_dlid() {
                Lid::PERMISSIVE => datagram::subnet(Lid::PERMISSIVE, Lid::PERMISSIVE),
                _ => datagram::subnet(own, request.slid),
            };
            Ok(send(&outgoing, smp, request.in_port, events, out))
        }
        Step::Manager => Err(Discard::NotHere),
    }
}

/// Returns the result for a packet that the agent has not answered; `None` if it has.
fn unanswered(outcome: Outcome, events: Events) -> Option<Received> {
    let discard = match outcome {
        Outcome::Reply => return None,
        Outcome::Consumed => None,
        Outcome::Refused => Some(Discard::MKey),
        Outcome::Agents => Some(Discard::NotHere),
    };
    Some(Received {
        discard,
        ..Received::events(events)
    })
}

/// The general services, of which there is one.
fn general<M: Managed, C: Counters>(
    managed: &mut M,
    in_port: u8,
    packet: &Packet<'_>,
    datagram: &[u8; mad::LEN],
    counters: &C,
    out: &mut [u8; OUT_LEN],
) -> Result<Received, Discard> {
    let link = packet.head.lrh.link();
    let node = managed.node_mut();
    let addressed = node.addressed(in_port);
    let port = node.port(addressed).ok_or(Discard::NoPort)?;
    if !port.owns_lid(link.dlid) {
        return Err(Discard::Destination);
    }
    if !port.is_in_partition(packet.transport.pkey) {
        return Err(Discard::PartitionIn);
    }
    let mut answer = *Performance::from_bytes(datagram);
    let header = answer.header();
    if header.class() != CLASS_PERFORMANCE || header.base_version() != mad::BASE_VERSION {
        return Err(Discard::Management);
    }
    if !node.performance(counters).serve(&mut answer) {
        return Err(Discard::NotHere);
    }
    let outgoing = datagram::general_answer(packet, link.dlid).ok_or(Discard::Management)?;
    let port = managed
        .leave_by(in_port, link.slid)
        .filter(|port| *port != 0)
        .unwrap_or(in_port);
    let len = datagram::write(&outgoing, &answer.bytes(), out).ok_or(Discard::Management)?;
    Ok(Received {
        answer: Some(Answer { port, len }),
        ..Received::events(Events::default())
    })
}

/// The node's address for packets that came by that port.
fn own_lid<M: Managed>(managed: &M, in_port: u8) -> Lid {
    let node = managed.node();
    node.port(node.addressed(in_port))
        .map_or(Lid::ZERO, |port| port.info().lid())
}

fn owns<M: Managed>(managed: &M, in_port: u8, lid: Lid) -> bool {
    let node = managed.node();
    node.port(node.addressed(in_port))
        .is_some_and(|port| port.owns_lid(lid))
}

/// Writes a packet of subnet management.
fn send(
    outgoing: &Outgoing,
    smp: &Smp,
    port: u8,
    events: Events,
    out: &mut [u8; OUT_LEN],
) -> Received {
    let len = datagram::write(outgoing, &smp.bytes(), out);
    Received {
        answer: len.map(|len| Answer { port, len }),
        ..Received::events(events)
    }
}

/// Writes the next trap that is due.
fn poll<M: Managed>(managed: &mut M, now: u64, out: &mut [u8; OUT_LEN]) -> Poll {
    let mut send = None;
    loop {
        // Each turn takes one that is due, and none is due again at once.
        let mut traps = core::mem::take(&mut managed.node_mut().traps);
        let due = traps.due(now, |port| managed.node().trap_interval(port));
        managed.node_mut().traps = traps;
        let Some(trap) = due else { break };
        let node = managed.node();
        let Some(port) = node.port(trap.port) else {
            continue;
        };
        let (lid, manager, sl) = {
            let info = port.info();
            (info.lid(), info.sm_lid(), info.sm_sl())
        };
        let mut smp = Smp::new(
            Header::new(Subject {
                class: CLASS_SUBNET_LID,
                class_version: smp::CLASS_VERSION,
                method: METHOD_TRAP,
                tid: trap.tid,
                attribute: attribute::NOTICE,
                modifier: 0,
            }),
            0,
        );
        let producer = node.identity.node_type;
        smp.put(&Notice::new(trap.kind, producer, lid, &trap.details));
        let outgoing = Outgoing {
            sl,
            ..datagram::subnet(lid, manager)
        };
        // Without a way to the manager it waits for its next turn.
        let way = managed
            .leave_by(trap.port, manager)
            .filter(|port| *port != 0);
        if let Some(port) = way {
            send = datagram::write(&outgoing, &smp.bytes(), out).map(|len| Answer { port, len });
            break;
        }
    }
    let node = managed.node();
    let next = node.traps.next(|port| node.trap_interval(port).is_some());
    Poll { send, next }
}
