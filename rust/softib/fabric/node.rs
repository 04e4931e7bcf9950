// SPDX-License-Identifier: GPL-2.0-only

//! A node: its ports and its management agents. Channel adapters are just that; switches and
//! routers have one.

use core::ops::DerefMut;

use super::agent;
use super::agent::{
    Managed,
    Outcome,
    Request, //
};
use super::counters::Counters;
use super::events::{
    Changes,
    Events, //
};
use super::performance;
use super::port::Port;
use super::receive::Cabled;
use super::traps;
use super::traps::Traps;
use super::wire::lid::Lid;
use super::wire::mad::CLASS_PERFORMANCE;
use super::wire::pma::Performance;
use super::wire::smp;
use super::wire::smp::node::{
    NodeDescription,
    NodeType,
    DESCRIPTION_LEN, //
};
use super::wire::smp::notice::{
    BadKey,
    Culprit,
    Details,
    Kind,
    LocalChanges, //
};
use super::wire::smp::Smp;

/// The identity of a node, as NodeInfo and NodeDescription report it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The kind of node: channel adapter, switch or router.
    pub node_type: NodeType,
    /// The NodeGUID; ports have GUIDs of their own.
    pub node_guid: u64,
    /// The GUID of the system that it is part of: its own if there is no other part.
    pub system_guid: u64,
    /// The device ID that its vendor gives it.
    pub device: u16,
    /// The revision that its vendor gives it.
    pub revision: u32,
    /// Its vendor, 24 bits.
    pub vendor: u32,
    /// The NodeDescription, a name for administrators; zeros after its end.
    pub description: [u8; DESCRIPTION_LEN],
}

/// A node with its ports, in whatever memory they are.
#[derive(Debug)]
pub struct Node<P> {
    pub(super) identity: Identity,
    pub(super) ports: P,
    pub(super) traps: Traps,
}

/// The result of [`Node::process`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Processed {
    /// The party that handles the datagram next.
    pub outcome: Outcome,
    /// Changes that the datagram has made.
    pub events: Events,
}

impl<P: DerefMut<Target = [Port]>> Node<P> {
    /// A node with these ports; of a switch the first is its own ([`Port::of_switch`]).
    ///
    /// `None` if there are none to the outside, or more than a number of a port can say.
    pub fn new(identity: Identity, ports: P) -> Option<Node<P>> {
        let mut node = Node {
            identity,
            ports,
            traps: Traps::default(),
        };
        let count = node
            .ports
            .len()
            .checked_sub(usize::from(node.is_switch()))?;
        if count == 0 || count >= usize::from(u8::MAX) {
            return None;
        }
        let first = node.first();
        for (port, number) in node.ports.iter_mut().zip(first..) {
            port.info.set_local_port(number);
        }
        Some(node)
    }

    /// Returns the node's type, GUIDs and description.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn is_switch(&self) -> bool {
        self.identity.node_type == NodeType::Switch
    }

    /// The number of the first port.
    pub(super) fn first(&self) -> u8 {
        u8::from(!self.is_switch())
    }

    /// Returns the number of external ports.
    pub fn port_count(&self) -> u8 {
        let all = u8::try_from(self.ports.len()).unwrap_or(u8::MAX);
        all.saturating_sub(u8::from(self.is_switch()))
    }

    /// The port of that number.
    pub fn port(&self, number: u8) -> Option<&Port> {
        let index = number.checked_sub(self.first())?;
        self.ports.get(usize::from(index))
    }

    /// The port of that number, to be changed.
    pub(super) fn port_mut(&mut self, number: u8) -> Option<&mut Port> {
        let index = number.checked_sub(self.first())?;
        self.ports.get_mut(usize::from(index))
    }

    /// The port with the addresses that answer a packet that came by that port: a switch has one
    /// set of them.
    pub(super) fn addressed(&self, in_port: u8) -> u8 {
        if self.is_switch() {
            0
        } else {
            in_port
        }
    }

    /// The cable of a port carries packets, or has stopped to.
    pub fn carrier(&mut self, number: u8, up: bool) -> Events {
        let changed = self.port_mut(number).is_some_and(|port| port.carrier(up));
        Events::new(number, Changes::STATE.when(changed))
    }

    /// Counts a packet with a wrong P_Key that a port has taken, and tells the subnet manager.
    pub fn bad_p_key(&mut self, number: u8, culprit: &Culprit, now: u64) -> Events {
        if let Some(port) = self.port_mut(number) {
            port.count_bad_p_key();
        }
        let details = Details::BadPKey(BadKey::new(culprit));
        self.raise(number, Kind::Security, details, now)
    }

    /// Counts a packet with a wrong Q_Key that a port has taken, and tells the subnet manager.
    pub fn bad_q_key(&mut self, number: u8, culprit: &Culprit, now: u64) -> Events {
        if let Some(port) = self.port_mut(number) {
            port.count_bad_q_key();
        }
        let details = Details::BadQKey(BadKey::new(culprit));
        self.raise(number, Kind::Security, details, now)
    }

    /// Changes what a port says that it can do: these bits on, those off.
    pub fn set_capability(&mut self, number: u8, on: u32, off: u32, now: u64) -> Events {
        let Some(port) = self.port_mut(number) else {
            return Events::default();
        };
        let before = port.info.capability_mask();
        let mask = (before & !off) | on;
        port.info.set_capability_mask(mask);
        if mask == before {
            return Events::default();
        }
        let changes = LocalChanges::new(port.info.lid(), mask, 0);
        self.raise(
            number,
            Kind::Informational,
            Details::LocalChanges(changes),
            now,
        )
    }

    /// Changes what the node is called. The subnet manager of each port is told.
    pub fn set_description(&mut self, description: [u8; DESCRIPTION_LEN], now: u64) -> Events {
        let mut events = Events::default();
        if self.identity.description == description {
            return events;
        }
        self.identity.description = description;
        let last = self.addressed(self.port_count());
        for number in self.first()..=last {
            let Some(port) = self.port(number) else {
                continue;
            };
            let changes = LocalChanges::new(
                port.info.lid(),
                port.info.capability_mask(),
                LocalChanges::DESCRIPTION,
            );
            let details = Details::LocalChanges(changes);
            events = self.raise(number, Kind::Informational, details, now);
        }
        events
    }

    /// Remembers to tell the subnet manager of a port something.
    pub(super) fn raise(&mut self, number: u8, kind: Kind, details: Details, now: u64) -> Events {
        let first = self.first();
        let ports: &[Port] = &self.ports;
        let has_manager = |number: u8| {
            let index = number.checked_sub(first).map(usize::from);
            let port = index.and_then(|index| ports.get(index));
            port.is_some_and(Port::has_manager)
        };
        self.traps.raise(number, kind, details, now, has_manager);
        Events::new(number, Changes::TRAP)
    }

    /// Returns the time that a trap of that port waits for its answer, in nanoseconds; `None` if
    /// the port has no manager to tell, or cannot reach it.
    pub(super) fn trap_interval(&self, number: u8) -> Option<u64> {
        let port = self.port(number).filter(|port| port.has_manager())?;
        Some(traps::interval(port.info.subnet_timeout()))
    }

    pub(super) fn describe(&self) -> NodeDescription {
        NodeDescription(self.identity.description)
    }

    /// Serves a management datagram that the node's consumer got by a port, of a channel adapter
    /// with a consumer that keeps the rules of directed routes itself, and writes the answer.
    ///
    /// `slid` is the sender's address.
    pub fn process<C: Counters>(
        &mut self,
        in_port: u8,
        request: &[u8; smp::LEN],
        slid: Lid,
        now: u64,
        counters: &C,
        answer: &mut [u8; smp::LEN],
    ) -> Processed {
        *answer = *request;
        let smp = Smp::from_bytes_mut(answer);
        let (outcome, events) = match smp.header().class() {
            CLASS_PERFORMANCE => {
                let mut datagram = *Performance::from_bytes(request);
                let served = self.performance(counters).serve(&mut datagram);
                *answer = datagram.bytes();
                let outcome = if served {
                    Outcome::Reply
                } else {
                    Outcome::Agents
                };
                (outcome, Events::default())
            }
            _ if smp.is_subnet_management() => {
                let served = agent::serve(self, Request::new(in_port, slid, now), smp);
                if served.0 == Outcome::Reply && smp.is_directed() {
                    let status = smp.header().status() | smp::DIRECTION;
                    smp.header_mut().set_status(status);
                }
                served
            }
            _ => (Outcome::Agents, Events::default()),
        };
        Processed { outcome, events }
    }

    pub(super) fn performance<'a, C: Counters>(
        &'a mut self,
        counters: &'a C,
    ) -> performance::Agent<'a, C> {
        let first = self.first();
        performance::Agent {
            ports: &mut self.ports,
            first,
            counters,
        }
    }
}

impl<P: DerefMut<Target = [Port]>> Cabled for Node<P> {}

impl<P: DerefMut<Target = [Port]>> Managed for Node<P> {
    type Ports = P;

    fn node(&self) -> &Node<P> {
        self
    }

    fn node_mut(&mut self) -> &mut Node<P> {
        self
    }

    fn particular(
        &mut self,
        _request: Request,
        _set: bool,
        _smp: &mut Smp,
    ) -> Option<Result<Events, u16>> {
        None
    }

    fn leave_by(&self, in_port: u8, _dlid: Lid) -> Option<u8> {
        Some(in_port)
    }
}
