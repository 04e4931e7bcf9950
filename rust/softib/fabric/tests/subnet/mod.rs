// SPDX-License-Identifier: GPL-2.0-only

//! Nodes with cables between them, and a small subnet manager that brings them up.

#![allow(dead_code, reason = "each test uses its part")]

pub mod alone;
pub mod manager;

use std::collections::{
    HashMap,
    VecDeque, //
};

use oxib_softib_fabric::counters::PortCounts;
use oxib_softib_fabric::node::Identity;
use oxib_softib_fabric::port::Profile;
use oxib_softib_fabric::router::{
    Hop,
    Neighbour,
    Route, //
};
use oxib_softib_fabric::switch::{
    PortMask,
    Storage,
    Tables, //
};
use oxib_softib_fabric::{
    Cabled,
    Discard,
    Events,
    Node,
    Port,
    Router,
    Switch,
    OUT_LEN, //
};
use oxib_wire::bth::Transport;
use oxib_wire::deth::Deth;
use oxib_wire::icrc;
use oxib_wire::lid::Lid;
use oxib_wire::opcode::Opcode;
use oxib_wire::packet::{
    Extension,
    Global,
    Head,
    Outgoing,
    Packet, //
};
use oxib_wire::pkey::Pkey;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;
use oxib_wire::smp::lanes::SlToVl;
use oxib_wire::smp::node::NodeType;

/// Storage of a switch's tables in vectors.
#[derive(Debug)]
pub struct Vectors;

impl Storage for Vectors {
    type Ports = Vec<Port>;
    type Linear = Vec<u8>;
    type Multicast = Vec<PortMask>;
    type Lanes = Vec<SlToVl>;
}

pub type TestRouter = Router<Vec<Port>, Vec<Route>, Vec<Neighbour>>;

#[derive(Debug)]
pub enum Device {
    Adapter(Node<Vec<Port>>),
    Switch(Box<Switch<Vectors>>),
    Router(TestRouter),
}

pub fn identity(node_type: NodeType, guid: u64) -> Identity {
    let mut description = [0; 64];
    let name = format!("node {guid:#x}");
    description[..name.len()].copy_from_slice(name.as_bytes());
    Identity {
        node_type,
        node_guid: guid,
        system_guid: guid,
        device: 0x5001,
        revision: 1,
        vendor: 0x1405,
        description,
    }
}

pub fn adapter(guid: u64, ports: u8) -> Node<Vec<Port>> {
    let ports = (1..=u64::from(ports))
        .map(|number| Port::new(&Profile::new(guid + number)))
        .collect();
    Node::new(identity(NodeType::ChannelAdapter, guid), ports).unwrap()
}

pub fn switch_of(guid: u64, ports: u8, vl_cap: u8) -> Switch<Vectors> {
    let profile = Profile {
        vl_cap,
        ..Profile::new(guid)
    };
    let mut all = vec![Port::of_switch(&profile)];
    all.extend((0..ports).map(|_| Port::new(&profile)));
    let count = all.len();
    let tables = Tables::<Vectors> {
        ports: all,
        linear: vec![7; 0xc000],
        multicast: vec![PortMask::OWN; 1024],
        lanes: match vl_cap {
            1 => Vec::new(),
            _ => vec![SlToVl::default(); count * count],
        },
    };
    Switch::new(identity(NodeType::Switch, guid), tables).unwrap()
}

pub fn switch(guid: u64, ports: u8) -> Switch<Vectors> {
    switch_of(guid, ports, 1)
}

pub fn no_counts(_port: u8) -> PortCounts {
    PortCounts::default()
}

/// A datagram of these headers.
pub fn outgoing(vl: u8, slid: u16, dlid: u16, destination: u32, qkey: u32) -> Outgoing {
    Outgoing {
        vl,
        sl: 0,
        dlid: Lid::new(dlid),
        slid: Lid::new(slid),
        global: None,
        transport: Transport {
            opcode: Opcode::datagram(false),
            solicited: false,
            migrated: false,
            pad: 0,
            pkey: Pkey::DEFAULT,
            destination: Qpn::new(destination).unwrap(),
            ack_request: false,
            psn: Psn::wrapping(0),
        },
        extension: Extension {
            deth: Some(Deth::new(qkey, Qpn::new(destination.min(1)).unwrap())),
            ..Extension::default()
        },
    }
}

pub fn build(outgoing: &Outgoing, payload: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0; payload.len() + 200];
    let length = outgoing.build(payload, &mut buffer, icrc::crc32).unwrap();
    buffer.truncate(length);
    buffer
}

/// A data packet for queue pair 77.
pub fn data(slid: u16, dlid: u16, pkey: u16, payload: &[u8]) -> Vec<u8> {
    let mut outgoing = outgoing(0, slid, dlid, 77, 0x1234);
    outgoing.transport.pkey = Pkey::new(pkey);
    build(&outgoing, payload)
}

/// Builds a packet with a global route.
pub fn global_data(slid: u16, dlid: u16, global: Global) -> Vec<u8> {
    let mut outgoing = outgoing(0, slid, dlid, 77, 0x1234);
    outgoing.global = Some(global);
    build(&outgoing, b"hello")
}

/// A packet at a port of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct At {
    pub device: usize,
    pub port: u8,
    pub packet: Vec<u8>,
}

/// Devices, cables, what is on them and what has come of it.
#[derive(Debug, Default)]
pub struct World {
    pub devices: Vec<Device>,
    pub cables: HashMap<(usize, u8), (usize, u8)>,
    /// Packets that are about to come in.
    arriving: VecDeque<At>,
    /// Data that adapters got.
    pub delivered: Vec<At>,
    /// Management datagrams that are for no agent, but for a manager.
    pub managed: Vec<At>,
    pub discards: Vec<(usize, Discard)>,
    pub events: Vec<(usize, Events)>,
    pub now: u64,
}

impl World {
    pub fn add(&mut self, device: Device) -> usize {
        self.devices.push(device);
        self.devices.len() - 1
    }

    pub fn add_adapter(&mut self, guid: u64) -> usize {
        self.add(Device::Adapter(adapter(guid, 1)))
    }

    pub fn add_switch(&mut self, guid: u64, ports: u8) -> usize {
        self.add(Device::Switch(Box::new(switch(guid, ports))))
    }

    pub fn node(&self, device: usize) -> &Node<Vec<Port>> {
        match &self.devices[device] {
            Device::Adapter(node) => node,
            Device::Switch(switch) => switch.node(),
            Device::Router(router) => router.node(),
        }
    }

    pub fn port(&self, device: usize, port: u8) -> &Port {
        self.node(device).port(port).unwrap()
    }

    pub fn carrier(&mut self, device: usize, port: u8, up: bool) -> Events {
        let now = self.now;
        let events = match &mut self.devices[device] {
            Device::Adapter(node) => node.carrier(port, up),
            Device::Switch(switch) => switch.carrier(port, up, now),
            Device::Router(router) => router.carrier(port, up, now),
        };
        self.events.push((device, events));
        events
    }

    pub fn connect(&mut self, one: (usize, u8), other: (usize, u8)) {
        self.cables.insert(one, other);
        self.cables.insert(other, one);
        self.carrier(one.0, one.1, true);
        self.carrier(other.0, other.1, true);
    }

    pub fn pull(&mut self, one: (usize, u8)) {
        let other = self.cables.remove(&one).unwrap();
        self.cables.remove(&other);
        self.carrier(one.0, one.1, false);
        self.carrier(other.0, other.1, false);
    }

    /// Sends a packet out of a port, and lets everything happen that follows from it.
    pub fn send(&mut self, device: usize, port: u8, packet: Vec<u8>) {
        self.transmit(device, port, packet);
        let mut steps = 0;
        while let Some(at) = self.arriving.pop_front() {
            self.arrive(at);
            steps += 1;
            assert!(steps < 10_000, "packets run in circles");
        }
    }

    fn transmit(&mut self, device: usize, port: u8, packet: Vec<u8>) {
        if let Some((device, port)) = self.cables.get(&(device, port)).copied() {
            self.arriving.push_back(At {
                device,
                port,
                packet,
            });
        }
    }

    /// Handles a packet at a port as the shell of its node does.
    fn arrive(&mut self, at: At) {
        let head = Head::parse(&at.packet).unwrap();
        assert!(head.is_intact(icrc::crc32), "a node has broken a packet");
        let own = match &self.devices[at.device] {
            Device::Adapter(_) if head.bth.destination().is_special() => true,
            Device::Adapter(_) => {
                self.delivered.push(at);
                return;
            }
            Device::Switch(switch) => match switch.forward(at.port, &head) {
                Ok(mask) => {
                    let ways: Vec<_> = mask
                        .filter(|port| *port != 0)
                        .map(|out| (out, switch.lane(at.port, out, &head)))
                        .collect();
                    for (out, lane) in ways {
                        self.copy(&at, out, lane);
                    }
                    mask.has(0)
                }
                Err(discard) => return self.discards.push((at.device, discard)),
            },
            Device::Router(router) => match router.forward(at.port, &head) {
                Ok(Hop::Own) => true,
                Ok(Hop::Out(out)) => {
                    let mut packet = at.packet.clone();
                    packet[..8].copy_from_slice(&out.lrh);
                    packet[15] = out.hop_limit;
                    self.transmit(at.device, out.port, packet);
                    false
                }
                Err(discard) => return self.discards.push((at.device, discard)),
            },
        };
        if own {
            self.receive(at);
        }
    }

    /// Passes a packet on, on another lane.
    fn copy(&mut self, at: &At, out: u8, lane: Result<u8, Discard>) {
        match lane {
            Ok(lane) => {
                let mut packet = at.packet.clone();
                packet[0] = (packet[0] & 0xf) | (lane << 4);
                self.transmit(at.device, out, packet);
            }
            Err(discard) => self.discards.push((at.device, discard)),
        }
    }

    fn receive(&mut self, at: At) {
        let packet = Packet::parse(&at.packet).unwrap();
        let mut out = [0; OUT_LEN];
        let (port, now) = (at.port, self.now);
        let received = match &mut self.devices[at.device] {
            Device::Adapter(node) => node.receive(port, &packet, now, &no_counts, &mut out),
            Device::Switch(switch) => switch.receive(port, &packet, now, &no_counts, &mut out),
            Device::Router(router) => router.receive(port, &packet, now, &no_counts, &mut out),
        };
        self.events.push((at.device, received.events));
        match (received.answer, received.discard) {
            (Some(answer), _) => {
                self.transmit(at.device, answer.port, out[..answer.len].to_vec());
            }
            (None, Some(Discard::NotHere)) => self.managed.push(at),
            (None, Some(discard)) => self.discards.push((at.device, discard)),
            (None, None) => {}
        }
    }

    /// Sends every trap that is due at this time.
    pub fn poll(&mut self) -> Option<u64> {
        let mut next = None;
        for device in 0..self.devices.len() {
            loop {
                let mut out = [0; OUT_LEN];
                let now = self.now;
                let poll = match &mut self.devices[device] {
                    Device::Adapter(node) => node.poll(now, &mut out),
                    Device::Switch(switch) => switch.poll(now, &mut out),
                    Device::Router(router) => router.poll(now, &mut out),
                };
                let Some(answer) = poll.send else {
                    next = [next, poll.next].into_iter().flatten().min();
                    break;
                };
                self.send(device, answer.port, out[..answer.len].to_vec());
            }
        }
        next
    }
}
