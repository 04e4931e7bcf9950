// SPDX-License-Identifier: GPL-2.0-only

//! Forwarding of packets between subnets by routers.

mod subnet;

use oxib_softib_fabric::port::Profile;
use oxib_softib_fabric::router::{
    Neighbour,
    Route, //
};
use oxib_softib_fabric::{
    Discard,
    Port,
    Router, //
};
use oxib_wire::gid::Gid;
use oxib_wire::grh::Addresses;
use oxib_wire::lid::Lid;
use oxib_wire::packet::{
    Global,
    Packet, //
};
use oxib_wire::pkey::Pkey;
use oxib_wire::smp::node::NodeType;
use oxib_wire::smp::port::PortInfo;
use subnet::manager::Manager;
use subnet::{
    build,
    data,
    global_data,
    outgoing,
    Device,
    World, //
};

const PREFIX: [u64; 3] = [
    0xfec0_0000_0000_0001,
    0xfec0_0000_0000_0002,
    0xfec0_0000_0000_0003,
];
const LINK_LOCAL: u64 = 0xfe80_0000_0000_0000;

fn gid(prefix: u64, guid: u64) -> Gid {
    Gid::from_bytes(((u128::from(prefix) << 64) | u128::from(guid)).to_be_bytes())
}

fn router(guid: u64, routes: Vec<Route>, known: Vec<Neighbour>, algorithmic: bool) -> Device {
    let ports = [1, 2]
        .map(|number| Port::new(&Profile::new(guid + number)))
        .to_vec();
    let identity = subnet::identity(NodeType::Router, guid);
    Device::Router(Router::new(identity, ports, routes, known, algorithmic).unwrap())
}

/// Brings up what is at this port of a host, with a prefix.
fn bring_up(world: &mut World, host: usize, port: u8, prefix: u64) -> Manager {
    let mut manager = Manager::at(host, port);
    manager.sweep(world);
    for found in manager.nodes.clone() {
        let mut info: PortInfo = manager.get(world, &found.path, 0);
        info.set_gid_prefix(prefix);
        info.set_state(oxib_wire::smp::port::State::NoChange);
        info.set_physical(oxib_wire::smp::port::Physical::NoChange);
        manager.set(world, &found.path, 0, &info);
    }
    manager
}

/// Host 0 – router 2 – host 1: addresses 1 and 2 in each subnet, the router always 2.
fn two_subnets(known: Vec<Neighbour>, algorithmic: bool) -> World {
    let mut world = World::default();
    let hosts = [world.add_adapter(0x100), world.add_adapter(0x200)];
    let router = world.add(router(0xc000, Vec::new(), known, algorithmic));
    world.connect((hosts[0], 1), (router, 1));
    world.connect((hosts[1], 1), (router, 2));
    bring_up(&mut world, hosts[0], 1, PREFIX[0]);
    bring_up(&mut world, hosts[1], 1, PREFIX[1]);
    world
}

fn way(from: Gid, to: Gid, hop_limit: u8) -> Global {
    Global {
        traffic_class: 0x12,
        flow_label: 0x34567,
        hop_limit,
        addresses: Addresses {
            sgid: from,
            dgid: to,
        },
    }
}

#[test]
fn a_packet_crosses() {
    let known = vec![Neighbour {
        gid: gid(PREFIX[1], 0x201),
        lid: Lid::new(1),
    }];
    let mut world = two_subnets(known, false);
    let ends = (gid(PREFIX[0], 0x101), gid(PREFIX[1], 0x201));
    let mut sent = outgoing(0, 1, 2, 77, 0x1234);
    sent.sl = 5;
    sent.transport.pkey = Pkey::new(0x8123);
    sent.global = Some(way(ends.0, ends.1, 255));
    let sent = build(&sent, b"hello");
    world.send(0, 1, sent.clone());
    assert!(world.discards.is_empty(), "{:?}", world.discards);
    let [at] = &world.delivered[..] else {
        panic!("{:?}", world.delivered);
    };
    assert_eq!(at.device, 1);
    let packet = Packet::parse(&at.packet).unwrap();
    let link = packet.head.lrh.link();
    assert_eq!(
        (link.slid, link.dlid, link.sl),
        (Lid::new(2), Lid::new(1), 5)
    );
    assert_eq!(packet.transport.pkey, Pkey::new(0x8123));
    let grh = packet.head.grh.unwrap();
    assert_eq!(grh.route().hop_limit, 254);
    assert_eq!((grh.addresses().sgid, grh.addresses().dgid), ends);
    // All else is as it was sent, the CRC too.
    let mut expected = sent;
    expected[..8].copy_from_slice(&at.packet[..8]);
    expected[15] = 254;
    assert_eq!(at.packet, expected);
}

/// An alias GID with the local identifier in its low 16 bits.
#[test]
fn addresses_can_be_taken_from_the_gid() {
    let mut world = two_subnets(Vec::new(), true);
    let from = gid(PREFIX[0], 0x101);
    let to = gid(PREFIX[1], 0x1405_00ff_fe00_0001);
    world.send(0, 1, global_data(1, 2, way(from, to, 2)));
    assert_eq!(world.delivered.len(), 1);
    assert_eq!(world.delivered[0].device, 1);
}

#[test]
fn what_does_not_cross() {
    let from = gid(PREFIX[0], 0x101);
    let to = gid(PREFIX[1], 1);
    let group = Gid::from_bytes([0xff; 16]);
    let table = [
        (way(from, to, 1), Discard::HopLimit),
        (way(from, to, 0), Discard::HopLimit),
        (way(gid(LINK_LOCAL, 0x101), to, 9), Discard::LinkLocal),
        (way(from, gid(LINK_LOCAL, 0x201), 9), Discard::LinkLocal),
        (way(from, group, 9), Discard::Multicast),
        (way(from, gid(PREFIX[2], 1), 9), Discard::NoSubnet),
        (way(from, gid(PREFIX[0], 1), 9), Discard::SameSubnet),
        // The lowest 16 bits are no address of a port.
        (way(from, gid(PREFIX[1], 0), 9), Discard::NoNeighbour),
        (way(from, gid(PREFIX[1], 0xc001), 9), Discard::NoNeighbour),
    ];
    for (global, cause) in table {
        let mut world = two_subnets(Vec::new(), true);
        world.send(0, 1, global_data(1, 2, global));
        assert_eq!(world.discards, [(2, cause)]);
        assert!(world.delivered.is_empty());
    }
    // The router has no neighbour of that address.
    let mut world = two_subnets(Vec::new(), false);
    world.send(0, 1, global_data(1, 2, way(from, to, 9)));
    assert_eq!(world.discards, [(2, Discard::NoNeighbour)]);
    // Not for the router, to a group, without a global route.
    let mut world = two_subnets(Vec::new(), true);
    world.send(0, 1, global_data(1, 3, way(from, to, 9)));
    world.send(0, 1, global_data(1, 0xc001, way(from, to, 9)));
    world.send(0, 1, data(1, 2, 0xffff, b"x"));
    let causes: Vec<_> = world.discards.iter().map(|(_, cause)| *cause).collect();
    let wanted = [
        Discard::Destination,
        Discard::Multicast,
        Discard::NoGlobalRoute,
    ];
    assert_eq!(causes, wanted);
    // The other side is not up.
    world.discards.clear();
    world.pull((1, 1));
    world.send(0, 1, global_data(1, 2, way(from, to, 9)));
    assert_eq!(world.discards, [(2, Discard::OutNotActive)]);
}

/// Three subnets in a row, by two routers: each takes one off the hop limit.
#[test]
fn over_two_routers() {
    let mut world = World::default();
    let hosts = [world.add_adapter(0x100), world.add_adapter(0x200)];
    let to_far = |prefix, port| Route {
        prefix,
        port,
        router: Lid::new(3),
    };
    let to_near = |prefix, port| Route {
        prefix,
        port,
        router: Lid::new(4),
    };
    let middle = {
        let node = subnet::adapter(0x300, 1);
        world.add(Device::Adapter(node))
    };
    let switch = world.add_switch(0xa000, 4);
    let near = world.add(router(0xc000, vec![to_far(PREFIX[2], 2)], Vec::new(), true));
    let far = world.add(router(
        0xd000,
        vec![to_near(PREFIX[0], 1)],
        Vec::new(),
        true,
    ));
    world.connect((hosts[0], 1), (near, 1));
    world.connect((middle, 1), (switch, 1));
    world.connect((near, 2), (switch, 3));
    world.connect((far, 1), (switch, 2));
    world.connect((far, 2), (hosts[1], 1));
    bring_up(&mut world, hosts[0], 1, PREFIX[0]);
    let manager = bring_up(&mut world, middle, 1, PREFIX[1]);
    bring_up(&mut world, hosts[1], 1, PREFIX[2]);
    assert_eq!((manager.lid_of(0xd000), manager.lid_of(0xc000)), (3, 4));
    let ends = (gid(PREFIX[0], 1), gid(PREFIX[2], 1));
    for (from, to, host, limit, arrives) in [
        (ends.0, ends.1, 0, 3, true),
        (ends.1, ends.0, 1, 3, true),
        (ends.0, ends.1, 0, 2, false),
    ] {
        world.send(host, 1, global_data(1, 2, way(from, to, limit)));
        let delivered = std::mem::take(&mut world.delivered);
        assert_eq!(
            delivered.len(),
            usize::from(arrives),
            "{:?}",
            world.discards
        );
        if let [at] = &delivered[..] {
            assert_eq!(at.device, 1 - host);
            let packet = Packet::parse(&at.packet).unwrap();
            assert_eq!(packet.head.grh.unwrap().route().hop_limit, limit - 2);
        }
    }
    assert_eq!(world.discards, [(far, Discard::HopLimit)]);
}
