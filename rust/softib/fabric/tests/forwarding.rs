// SPDX-License-Identifier: GPL-2.0-only

//! Ports by which a switch passes packets on, and causes for which it drops them.

mod subnet;

use oxib_softib_fabric::switch::PortMask;
use oxib_softib_fabric::Discard;
use oxib_wire::cm::mtu::Mtu;
use oxib_wire::packet::{
    Global,
    Head, //
};
use oxib_wire::pkey::Pkey;
use oxib_wire::smp::forwarding::{
    Linear,
    Multicast,
    MulticastBlock, //
};
use oxib_wire::smp::lanes::SlToVl;
use oxib_wire::smp::partition::PKeyTable;
use oxib_wire::smp::port::{
    Physical,
    PortInfo,
    State, //
};
use oxib_wire::smp::switch::SwitchInfo;
use subnet::manager::Manager;
use subnet::{
    build,
    data,
    outgoing,
    Device,
    World, //
};

/// The switch is device 0; a host at each of its ports 1 to 6 has the address 10 and its port, the
/// switch itself has 9. The groups 0xc001 and 0xc002 are all ports, and those of odd number.
fn star(vl_cap: u8) -> (World, Manager) {
    let mut world = World::default();
    let switch = subnet::switch_of(0xa000, 8, vl_cap);
    world.add(Device::Switch(Box::new(switch)));
    for port in 1..=6 {
        let profile = oxib_softib_fabric::port::Profile {
            vl_cap,
            ..oxib_softib_fabric::port::Profile::new(u64::from(port) << 8)
        };
        let node = oxib_softib_fabric::Node::new(
            subnet::identity(
                oxib_wire::smp::node::NodeType::ChannelAdapter,
                u64::from(port) << 8,
            ),
            vec![oxib_softib_fabric::Port::new(&profile)],
        );
        let host = world.add(Device::Adapter(node.unwrap()));
        world.connect((0, port), (host, 1));
    }
    let mut manager = Manager::new(1);
    manager.discover(&mut world);
    for found in &mut manager.nodes {
        found.lid = match found.is_switch() {
            true => 9,
            false => 10 + (found.info.node_guid() >> 8) as u16,
        };
    }
    manager.address(&mut world);
    manager.bring(&mut world, State::Armed);
    manager.bring(&mut world, State::Active);
    let mut info: SwitchInfo = manager.get(&mut world, &[1], 0);
    info.set_linear_top(30);
    manager.set(&mut world, &[1], 0, &info);
    let mut linear = Linear([0xff; 64]);
    linear.0[9] = 0;
    for port in 1..=6 {
        linear.0[10 + usize::from(port)] = port;
    }
    // A port without a cable, one that there is not, one above the top.
    linear.0[20] = 7;
    linear.0[21] = 60;
    linear.0[31] = 1;
    manager.set(&mut world, &[1], 0, &linear);
    let mut groups = [0; 32];
    groups[1] = 0b111_1110;
    groups[2] = 0b010_1010;
    groups[3] = 0b000_0010;
    // Itself and a port without a cable.
    groups[4] = 0b1000_0001;
    let part = MulticastBlock {
        position: 0,
        block: 0,
    };
    manager.set(&mut world, &[1], part.modifier(), &Multicast::new(groups));
    (world, manager)
}

fn forward(world: &World, in_port: u8, packet: &[u8]) -> Result<PortMask, Discard> {
    let Device::Switch(switch) = &world.devices[0] else {
        panic!("no switch");
    };
    switch.forward(in_port, &Head::parse(packet).unwrap())
}

fn ports(ports: &[u8]) -> PortMask {
    ports
        .iter()
        .fold(PortMask::NONE, |mask, port| mask.with(*port))
}

#[test]
fn tables_decide() {
    let (world, _manager) = star(1);
    let table = [
        (12, Ok(ports(&[2]))),
        (16, Ok(ports(&[6]))),
        (9, Ok(PortMask::OWN)),
        (0, Err(Discard::Destination)),
        (0xffff, Err(Discard::Destination)),
        // Back to where it came from.
        (11, Err(Discard::Turn)),
        // No entry; beyond the top; beyond the table.
        (17, Err(Discard::NoRoute)),
        (31, Err(Discard::NoRoute)),
        (0xbfff, Err(Discard::NoRoute)),
        (20, Err(Discard::OutNotActive)),
        (21, Err(Discard::NoRoute)),
        // Groups, never back to where they come from.
        (0xc001, Ok(ports(&[2, 3, 4, 5, 6]))),
        (0xc002, Ok(ports(&[3, 5]))),
        (0xc003, Err(Discard::NoRoute)),
        (0xc004, Err(Discard::OutNotActive)),
        (0xc000, Err(Discard::NoRoute)),
        // Beyond the table, and no default port.
        (0xfffe, Err(Discard::NoRoute)),
    ];
    for (dlid, wanted) in table {
        let packet = data(11, dlid, 0xffff, b"x");
        assert_eq!(forward(&world, 1, &packet), wanted, "to {dlid:#x}");
    }
    let packet = data(11, 12, 0xffff, b"x");
    for port in [0, 9, 255] {
        assert_eq!(forward(&world, port, &packet), Err(Discard::NoPort));
    }
    assert_eq!(forward(&world, 8, &packet), Err(Discard::LinkDown));
}

#[test]
fn default_ports_of_groups() {
    let (mut world, mut manager) = star(1);
    let mut info: SwitchInfo = manager.get(&mut world, &[1], 0);
    info.set_default_multicast_primary(3);
    info.set_default_multicast_other(4);
    manager.set(&mut world, &[1], 0, &info);
    let packet = data(11, 0xd000, 0xffff, b"x");
    assert_eq!(forward(&world, 1, &packet), Ok(ports(&[3])));
    assert_eq!(forward(&world, 3, &packet), Ok(ports(&[4])));
    // One that has an entry goes by that.
    let packet = data(11, 0xc000, 0xffff, b"x");
    assert_eq!(forward(&world, 1, &packet), Err(Discard::NoRoute));
}

/// The lane and the queue pair of subnet management go together, without a global route.
#[test]
fn the_lane_of_management_is_for_management() {
    let (world, _manager) = star(1);
    let smp = [0; 256];
    let mut global = outgoing(15, 11, 12, 0, 0);
    global.global = Some(Global {
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 1,
        addresses: oxib_wire::grh::Addresses {
            sgid: oxib_wire::gid::Gid::ZERO,
            dgid: oxib_wire::gid::Gid::ZERO,
        },
    });
    let table = [
        (build(&outgoing(15, 11, 12, 0, 0), &smp), Ok(ports(&[2]))),
        (
            build(&outgoing(15, 0xffff, 0xffff, 0, 0), &smp),
            Ok(PortMask::OWN),
        ),
        (build(&outgoing(0, 11, 12, 0, 0), &smp), Err(Discard::Lane)),
        (build(&outgoing(15, 11, 12, 1, 0), &smp), Err(Discard::Lane)),
        (
            build(&outgoing(15, 11, 12, 77, 0), &smp),
            Err(Discard::Lane),
        ),
        (build(&global, &smp), Err(Discard::Lane)),
        (
            build(&outgoing(15, 11, 0xc001, 0, 0), &smp),
            Err(Discard::Destination),
        ),
    ];
    for (packet, wanted) in table {
        assert_eq!(forward(&world, 1, &packet), wanted);
    }
}

/// Enforcement on either side of the switch: a port has the keys of the host at its end.
#[test]
fn partitions_are_enforced() {
    let (mut world, mut manager) = star(1);
    let key = |key: u16| {
        let mut keys = [Pkey::new(0); 32];
        keys[0] = Pkey::new(key);
        PKeyTable::new(keys)
    };
    for (port, own) in [(1, 0x8001), (2, 0x0001), (3, 0x8002)] {
        manager.set(&mut world, &[1], port << 16, &key(own));
    }
    let enforce = |world: &mut World, manager: &mut Manager, port: u32, inbound, outbound| {
        let mut info: PortInfo = manager.get(world, &[1], port);
        info.set_state(State::NoChange);
        info.set_physical(Physical::NoChange);
        info.set_inbound_enforcement(inbound);
        info.set_outbound_enforcement(outbound);
        manager.set(world, &[1], port, &info);
    };
    let to = |dlid, pkey| data(11, dlid, pkey, b"x");
    // Without enforcement the tables mean nothing.
    assert_eq!(forward(&world, 1, &to(12, 0x8007)), Ok(ports(&[2])));
    enforce(&mut world, &mut manager, 1, true, false);
    assert_eq!(
        forward(&world, 1, &to(12, 0x8007)),
        Err(Discard::PartitionIn)
    );
    assert_eq!(forward(&world, 2, &to(11, 0x8007)), Ok(ports(&[1])));
    // By the name of the partition, whatever the membership.
    assert_eq!(forward(&world, 1, &to(12, 0x8001)), Ok(ports(&[2])));
    assert_eq!(forward(&world, 1, &to(12, 0x0001)), Ok(ports(&[2])));
    enforce(&mut world, &mut manager, 2, false, true);
    enforce(&mut world, &mut manager, 3, false, true);
    assert_eq!(forward(&world, 1, &to(12, 0x8001)), Ok(ports(&[2])));
    assert_eq!(
        forward(&world, 1, &to(13, 0x8001)),
        Err(Discard::PartitionOut)
    );
    // Of a group those ports are left out.
    let group = forward(&world, 1, &to(0xc001, 0x8001));
    assert_eq!(group, Ok(ports(&[2, 4, 5, 6])));
    // Subnet management is in no partition.
    let mut smp = outgoing(15, 11, 13, 0, 0);
    smp.transport.pkey = Pkey::new(0x8007);
    assert_eq!(forward(&world, 1, &build(&smp, &[0; 256])), Ok(ports(&[3])));
}

#[test]
fn no_packet_is_larger_than_its_link() {
    let (mut world, mut manager) = star(1);
    let mut info: PortInfo = manager.get(&mut world, &[1], 2);
    info.set_state(State::NoChange);
    info.set_physical(Physical::NoChange);
    info.set_neighbor_mtu(Mtu::new(3));
    manager.set(&mut world, &[1], 2, &info);
    let sized = |length: usize, dlid| data(11, dlid, 0xffff, &vec![0; length]);
    assert_eq!(forward(&world, 1, &sized(1024, 12)), Ok(ports(&[2])));
    assert_eq!(forward(&world, 1, &sized(2048, 12)), Err(Discard::Mtu));
    assert_eq!(forward(&world, 1, &sized(4096, 13)), Ok(ports(&[3])));
    let group = forward(&world, 1, &sized(4096, 0xc001));
    assert_eq!(group, Ok(ports(&[3, 4, 5, 6])));
}

/// With four lanes: the level decides, by the pair of ports.
#[test]
fn levels_become_lanes() {
    let (mut world, mut manager) = star(3);
    let map = SlToVl([0x01, 0x23, 0x4f, 0, 0, 0, 0, 0]);
    manager.set(&mut world, &[1], 0x0102, &map);
    let lane = |sl: u8, in_port, out_port| {
        let mut packet = outgoing(0, 11, 12, 77, 0);
        packet.sl = sl;
        let packet = build(&packet, b"x");
        let Device::Switch(switch) = &world.devices[0] else {
            panic!("no switch");
        };
        switch.lane(in_port, out_port, &Head::parse(&packet).unwrap())
    };
    let found: Vec<_> = (0..6).map(|sl| lane(sl, 1, 2)).collect();
    let none = Err(Discard::NoLane);
    // There is no fifth lane, and the special one is no lane for data.
    assert_eq!(found, [Ok(0), Ok(1), Ok(2), Ok(3), none, none]);
    assert_eq!(lane(3, 2, 1), Ok(0));
    let smp = build(&outgoing(15, 11, 12, 0, 0), &[0; 256]);
    let Device::Switch(switch) = &world.devices[0] else {
        panic!("no switch");
    };
    assert_eq!(switch.lane(1, 2, &Head::parse(&smp).unwrap()), Ok(15));
}

#[test]
fn masks() {
    let mask = ports(&[0, 5, 63]).without(5).with(64).with(255);
    assert_eq!(mask.collect::<Vec<_>>(), [0, 63]);
    assert_eq!(mask.count(), 2);
    assert!(mask.has(63) && !mask.has(5) && !mask.has(64));
    assert!(PortMask::of(200).is_empty());
}

#[test]
fn tables_of_wrong_lengths() {
    use oxib_softib_fabric::port::Profile;
    use oxib_softib_fabric::switch::Tables;
    use oxib_softib_fabric::{
        Port,
        Switch, //
    };
    use oxib_wire::smp::node::NodeType;
    let make = |node_type, ports: usize, linear: usize, multicast: usize, lanes: usize| {
        let tables = Tables::<subnet::Vectors> {
            ports: vec![Port::new(&Profile::new(1)); ports],
            linear: vec![0; linear],
            multicast: vec![PortMask::NONE; multicast],
            lanes: vec![SlToVl::default(); lanes],
        };
        Switch::new(subnet::identity(node_type, 1), tables).is_some()
    };
    let switch = NodeType::Switch;
    assert!(make(switch, 2, 64, 32, 0) && make(switch, 64, 0xc000, 0x3fe0, 64 * 64));
    assert!(!make(NodeType::Router, 2, 64, 32, 0));
    let bad = [
        (0, 64, 32, 0),
        (1, 64, 32, 0),
        (65, 64, 32, 0),
        (2, 65, 32, 0),
        (2, 0xc040, 32, 0),
        (2, 64, 31, 0),
        (2, 64, 0x4000, 0),
        (2, 64, 32, 3),
    ];
    for (ports, linear, multicast, lanes) in bad {
        assert!(!make(switch, ports, linear, multicast, lanes));
    }
}
