// SPDX-License-Identifier: GPL-2.0-only

//! A subnet manager as small as one can be: it finds the nodes, gives them addresses, writes their
//! tables, and brings their ports up. It trusts what it is told.

use std::collections::{
    HashMap,
    VecDeque, //
};

use super::{
    build,
    outgoing,
    Device,
    World, //
};
use oxib_softib_fabric::node::Processed;
use oxib_softib_fabric::Outcome;
use oxib_wire::lid::Lid;
use oxib_wire::mad::{
    Header,
    Subject,
    CLASS_SUBNET_DIRECTED,
    CLASS_SUBNET_LID,
    METHOD_GET,
    METHOD_GET_RESP,
    METHOD_SET, //
};
use oxib_wire::packet::Packet;
use oxib_wire::smp::attribute;
use oxib_wire::smp::forwarding::{
    Linear,
    Multicast,
    MulticastBlock, //
};
use oxib_wire::smp::node::{
    NodeInfo,
    NodeType, //
};
use oxib_wire::smp::port::{
    PortInfo,
    State, //
};
use oxib_wire::smp::switch::SwitchInfo;
use oxib_wire::smp::{
    self,
    Attribute,
    Smp, //
};

/// A node that was found.
#[derive(Clone, Debug)]
pub struct Found {
    pub path: Vec<u8>,
    pub info: NodeInfo,
    pub lid: u16,
    /// The port by which the path enters the node.
    pub entry: u8,
}

impl Found {
    pub fn is_switch(&self) -> bool {
        self.info.node_type() == NodeType::Switch as u8
    }
}

/// The manager, on port 1 of an adapter.
#[derive(Debug)]
pub struct Manager {
    pub host: usize,
    pub port: u8,
    pub m_key: u64,
    pub tid: u64,
    pub nodes: Vec<Found>,
    /// The node at the end of each cable, by node and port.
    pub links: HashMap<(usize, u8), (usize, u8)>,
}

/// Packets to this group go to every adapter.
pub const GROUP: u16 = 0xc001;

impl Manager {
    pub fn new(host: usize) -> Manager {
        Manager::at(host, 1)
    }

    pub fn at(host: usize, port: u8) -> Manager {
        Manager {
            host,
            port,
            m_key: 0,
            tid: 100,
            nodes: Vec::new(),
            links: HashMap::new(),
        }
    }

    fn subject(&mut self, class: u8, method: u8, attribute: u16, modifier: u32) -> Subject {
        self.tid += 1;
        Subject {
            class,
            class_version: smp::CLASS_VERSION,
            method,
            tid: self.tid,
            attribute,
            modifier,
        }
    }

    /// A request on a directed route.
    pub fn directed(&mut self, path: &[u8], method: u8, attribute: u16, modifier: u32) -> Smp {
        let subject = self.subject(CLASS_SUBNET_DIRECTED, method, attribute, modifier);
        let mut request = Smp::new(Header::new(subject), self.m_key);
        request.set_dr_slid(Lid::PERMISSIVE);
        request.set_dr_dlid(Lid::PERMISSIVE);
        request.set_hop_count(path.len() as u8);
        for (hop, port) in (1..).zip(path) {
            request.set_initial_hop(hop, *port).unwrap();
        }
        request
    }

    /// Sends a directed request and takes its answer. Without hops it is for the own node.
    pub fn ask(&mut self, world: &mut World, mut request: Smp) -> Option<Smp> {
        let tid = request.header().tid();
        if request.hop_count() == 0 {
            return self.ask_own(world, &request);
        }
        // C14-9:1
        request.set_hop_pointer(1);
        let out = request.initial_hop(1).unwrap();
        assert_eq!(out, self.port);
        let packet = build(&outgoing(15, 0xffff, 0xffff, 0, 0), &request.bytes());
        world.send(self.host, out, packet);
        self.take(world, tid)
    }

    /// The own node answers itself, as its management layer has it.
    fn ask_own(&mut self, world: &mut World, request: &Smp) -> Option<Smp> {
        let now = world.now;
        let Device::Adapter(node) = &mut world.devices[self.host] else {
            panic!("the manager is not on an adapter");
        };
        let mut answer = [0; smp::LEN];
        let Processed { outcome, events } = node.process(
            self.port,
            &request.bytes(),
            Lid::PERMISSIVE,
            now,
            &super::no_counts,
            &mut answer,
        );
        world.events.push((self.host, events));
        (outcome == Outcome::Reply).then(|| *Smp::from_bytes(&answer))
    }

    /// Takes the answer with that transaction ID out of all that has arrived.
    pub fn take(&mut self, world: &mut World, tid: u64) -> Option<Smp> {
        let all = std::mem::take(&mut world.managed);
        all.iter().find_map(|at| {
            let packet = Packet::parse(&at.packet).unwrap();
            let answer = *Smp::from_bytes(packet.payload.try_into().unwrap());
            let own = (at.device, at.port) == (self.host, self.port);
            (own && answer.header().tid() == tid).then_some(answer)
        })
    }

    /// Sends a request by local identifiers and takes its answer.
    pub fn ask_lid(
        &mut self,
        world: &mut World,
        lid: u16,
        method: u8,
        attribute: u16,
        modifier: u32,
    ) -> Option<Smp> {
        let subject = self.subject(CLASS_SUBNET_LID, method, attribute, modifier);
        let request = Smp::new(Header::new(subject), self.m_key);
        let own = world.port(self.host, self.port).info().lid().get();
        let packet = build(&outgoing(15, own, lid, 0, 0), &request.bytes());
        world.send(self.host, self.port, packet);
        self.take(world, subject.tid)
    }

    pub fn get<A: Attribute>(&mut self, world: &mut World, path: &[u8], modifier: u32) -> A {
        let request = self.directed(path, METHOD_GET, A::ID, modifier);
        let answer = self.ask(world, request).expect("no answer");
        assert_eq!(answer.header().method(), METHOD_GET_RESP);
        assert_eq!(
            answer.header().status() & 0x7fff,
            0,
            "{:?}",
            answer.header()
        );
        assert!(answer.is_returning());
        assert_eq!(answer.header().attribute(), A::ID);
        answer.get()
    }

    /// Sets an attribute, and answers with the status.
    pub fn try_set<A: Attribute>(
        &mut self,
        world: &mut World,
        path: &[u8],
        modifier: u32,
        value: &A,
    ) -> u16 {
        let mut request = self.directed(path, METHOD_SET, A::ID, modifier);
        request.put(value);
        let answer = self.ask(world, request).expect("no answer");
        assert_eq!(answer.header().method(), METHOD_GET_RESP);
        answer.header().status() & 0x7fff
    }

    pub fn set<A: Attribute>(&mut self, world: &mut World, path: &[u8], modifier: u32, value: &A) {
        assert_eq!(self.try_set(world, path, modifier, value), 0);
    }

    /// Finds all nodes and links.
    pub fn discover(&mut self, world: &mut World) {
        let mut queue = VecDeque::from([Vec::new()]);
        let mut known: HashMap<u64, usize> = HashMap::new();
        self.nodes.clear();
        self.links.clear();
        while let Some(path) = queue.pop_front() {
            let info: NodeInfo = self.get(world, &path, 0);
            let index = match known.get(&info.node_guid()) {
                Some(index) => *index,
                None => {
                    let index = self.nodes.len();
                    known.insert(info.node_guid(), index);
                    self.nodes.push(Found {
                        path: path.clone(),
                        info,
                        lid: index as u16 + 1,
                        entry: info.local_port(),
                    });
                    self.look_further(world, &path, &info, &mut queue);
                    index
                }
            };
            if let Some((out, before)) = path.split_last() {
                let from = self.get::<NodeInfo>(world, before, 0).node_guid();
                let (one, other) = ((known[&from], *out), (index, info.local_port()));
                self.links.insert(one, other);
                self.links.insert(other, one);
            }
        }
    }

    /// Queues the paths that lead on from a node that is new.
    fn look_further(
        &mut self,
        world: &mut World,
        path: &[u8],
        info: &NodeInfo,
        queue: &mut VecDeque<Vec<u8>>,
    ) {
        let out: Vec<u8> = if info.node_type() == NodeType::Switch as u8 {
            (1..=info.ports()).collect()
        } else if path.is_empty() {
            vec![self.port]
        } else {
            Vec::new()
        };
        for port in out {
            let state = self.get::<PortInfo>(world, path, port.into()).state();
            if state != State::Down {
                queue.push_back([path, &[port]].concat());
            }
        }
    }

    /// Gives every node an address and tells it which node is manager.
    pub fn address(&mut self, world: &mut World) {
        for found in self.nodes.clone() {
            let port = if found.is_switch() { 0 } else { found.entry };
            let mut info: PortInfo = self.get(world, &found.path, port.into());
            info.set_lid(Lid::new(found.lid));
            info.set_sm_lid(Lid::new(self.nodes[0].lid));
            info.set_state(State::NoChange);
            info.set_client_reregister(true);
            self.set(world, &found.path, port.into(), &info);
        }
    }

    /// The port by which to leave a switch for a node: the first step of the shortest way.
    fn way(&self, from: usize, to: usize) -> Option<u8> {
        let mut queue = VecDeque::from([to]);
        let mut steps: HashMap<usize, u8> = HashMap::from([(to, 0)]);
        while let Some(node) = queue.pop_front() {
            if node != to && !self.nodes[node].is_switch() {
                continue;
            }
            for ((there, _), (peer, out)) in &self.links {
                if there == &node && !steps.contains_key(peer) {
                    steps.insert(*peer, *out);
                    queue.push_back(*peer);
                }
            }
        }
        steps.get(&from).copied()
    }

    /// Writes the tables of all switches.
    pub fn route(&mut self, world: &mut World) {
        for (index, found) in self.nodes.clone().into_iter().enumerate() {
            if !found.is_switch() {
                continue;
            }
            let mut info: SwitchInfo = self.get(world, &found.path, 0);
            info.set_linear_top(self.nodes.len() as u16);
            info.set_port_state_change(true);
            self.set(world, &found.path, 0, &info);
            let mut block = Linear([0xff; 64]);
            for (to, target) in self.nodes.iter().enumerate() {
                block.0[usize::from(target.lid)] = self.way(index, to).unwrap();
            }
            self.set(world, &found.path, 0, &block);
            self.group(world, index);
        }
    }

    /// The group is sent along the ways to all nodes: right only where there are no circles.
    fn group(&mut self, world: &mut World, index: usize) {
        let mut ports = [0; 32];
        for (node, port) in self.links.keys() {
            if *node == index {
                ports[usize::from(GROUP - 0xc000)] |= 1 << port;
            }
        }
        let part = MulticastBlock {
            position: 0,
            block: 0,
        };
        let path = self.nodes[index].path.clone();
        self.set(world, &path, part.modifier(), &Multicast::new(ports));
    }

    /// Takes all ports with a link to a state.
    pub fn bring(&mut self, world: &mut World, state: State) {
        for found in self.nodes.clone() {
            let ports: Vec<u8> = if found.is_switch() {
                (1..=found.info.ports()).collect()
            } else {
                vec![found.entry]
            };
            for port in ports {
                let mut info: PortInfo = self.get(world, &found.path, port.into());
                let before = match state {
                    State::Armed => State::Init,
                    _ => State::Armed,
                };
                if info.state() != before {
                    continue;
                }
                info.set_state(state);
                info.set_physical(oxib_wire::smp::port::Physical::NoChange);
                self.set(world, &found.path, port.into(), &info);
            }
        }
    }

    /// Runs a whole sweep: finds the nodes, and sets addresses, tables and states.
    pub fn sweep(&mut self, world: &mut World) {
        self.discover(world);
        self.address(world);
        self.route(world);
        self.bring(world, State::Armed);
        self.bring(world, State::Active);
    }

    /// The address of a node by its GUID.
    pub fn lid_of(&self, guid: u64) -> u16 {
        self.nodes
            .iter()
            .find(|found| found.info.node_guid() == guid)
            .unwrap()
            .lid
    }
}

/// The number of SMInfo, for the tests of managers.
pub const SM_INFO: u16 = attribute::SM_INFO;
