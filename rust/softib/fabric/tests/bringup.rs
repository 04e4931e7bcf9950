// SPDX-License-Identifier: GPL-2.0-only

//! A subnet from the plugging of its cables to packets between its hosts.

mod subnet;

use oxib_softib_fabric::events::Changes;
use oxib_softib_fabric::Discard;
use oxib_wire::mad::METHOD_GET;
use oxib_wire::smp::attribute;
use oxib_wire::smp::node::{
    NodeInfo,
    NodeType, //
};
use oxib_wire::smp::port::{
    Physical,
    PortInfo,
    State, //
};
use oxib_wire::smp::switch::SwitchInfo;
use subnet::manager::{
    Manager,
    GROUP, //
};
use subnet::{
    data,
    Device,
    World, //
};

const HOST: [u64; 3] = [0x100, 0x200, 0x300];
const SWITCH: [u64; 2] = [0xa000, 0xb000];

/// Host 0 – switch 3 – switch 4 – host 1, and host 2 at switch 4 too.
fn two_switches() -> World {
    let mut world = World::default();
    let hosts = HOST.map(|guid| world.add_adapter(guid));
    let switches = SWITCH.map(|guid| world.add_switch(guid, 5));
    world.connect((hosts[0], 1), (switches[0], 2));
    world.connect((switches[0], 5), (switches[1], 1));
    world.connect((switches[1], 3), (hosts[1], 1));
    world.connect((switches[1], 4), (hosts[2], 1));
    world
}

#[test]
fn manager_finds_every_node_and_brings_up_every_port() {
    let mut world = two_switches();
    let mut manager = Manager::new(0);
    manager.discover(&mut world);
    let found: Vec<_> = manager
        .nodes
        .iter()
        .map(|found| (found.info.node_guid(), found.path.clone(), found.entry))
        .collect();
    let wanted: [(u64, Vec<u8>, u8); 5] = [
        (HOST[0], vec![], 1),
        (SWITCH[0], vec![1], 2),
        (SWITCH[1], vec![1, 5], 1),
        (HOST[1], vec![1, 5, 3], 1),
        (HOST[2], vec![1, 5, 4], 1),
    ];
    assert_eq!(found, wanted);
    let info: NodeInfo = manager.get(&mut world, &[1, 5], 0);
    assert_eq!(info.node_type(), NodeType::Switch as u8);
    assert_eq!((info.ports(), info.port_guid()), (5, SWITCH[1]));
    let info: NodeInfo = manager.get(&mut world, &[1, 5, 3], 0);
    assert_eq!((info.ports(), info.port_guid()), (1, HOST[1] + 1));

    manager.address(&mut world);
    manager.route(&mut world);
    for state in [State::Armed, State::Active] {
        manager.bring(&mut world, state);
        for (device, port) in world.cables.keys() {
            assert_eq!(world.port(*device, *port).info().state(), state);
        }
    }
    // The ports without a cable are left alone.
    assert_eq!(world.port(3, 1).info().state(), State::Down);
    assert!(world.discards.is_empty(), "{:?}", world.discards);
}

/// A link that must be set to something else than it is preset to is taken down by OpenSM.
#[test]
fn links_are_preset() {
    let world = two_switches();
    for (device, port) in world.cables.keys() {
        let info = world.port(*device, *port).info();
        assert_eq!(info.neighbor_mtu(), info.mtu_cap());
        assert_eq!(info.operational_vls(), info.vl_cap());
        assert_eq!(info.width_enabled(), info.width_supported());
        assert_eq!(info.speed_enabled(), info.speed_supported());
        assert_eq!(info.state(), State::Init);
        assert_eq!(info.physical(), Physical::LinkUp);
    }
}

#[test]
fn hosts_learn_what_has_changed() {
    let mut world = two_switches();
    let mut manager = Manager::new(0);
    manager.sweep(&mut world);
    let seen = |change: Changes| {
        let at_host = |(device, events): &&(usize, oxib_softib_fabric::Events)| {
            *device == 1 && events.port == 1 && events.changes.contains(change)
        };
        world.events.iter().filter(at_host).count()
    };
    // Once for the link, armed and active.
    assert_eq!(seen(Changes::STATE), 3);
    assert_eq!(seen(Changes::LID), 1);
    assert_eq!(seen(Changes::SM), 1);
    assert_eq!(seen(Changes::REREGISTER), 1);
    assert_eq!(seen(Changes::GID), 0);
    assert_eq!(seen(Changes::PKEY), 0);
}

#[test]
fn packets_reach_their_port_and_no_other() {
    let mut world = two_switches();
    let mut manager = Manager::new(0);
    manager.sweep(&mut world);
    let lids = HOST.map(|guid| manager.lid_of(guid));
    for (from, slid) in lids.iter().enumerate() {
        for (to, dlid) in lids.iter().enumerate() {
            if from == to {
                continue;
            }
            let packet = data(*slid, *dlid, 0xffff, b"to one");
            world.send(from, 1, packet.clone());
            let delivered = std::mem::take(&mut world.delivered);
            assert_eq!(delivered.len(), 1);
            assert_eq!((delivered[0].device, &delivered[0].packet), (to, &packet));
        }
        world.send(from, 1, data(*slid, GROUP, 0xffff, b"to all"));
        let mut reached: Vec<_> = world.delivered.drain(..).map(|at| at.device).collect();
        reached.sort_unstable();
        let others: Vec<_> = (0..lids.len()).filter(|host| *host != from).collect();
        assert_eq!(reached, others);
    }
    assert!(world.discards.is_empty(), "{:?}", world.discards);
}

#[test]
fn only_management_passes_ports_that_are_not_active() {
    let mut world = two_switches();
    let mut manager = Manager::new(0);
    manager.discover(&mut world);
    manager.address(&mut world);
    manager.route(&mut world);
    let lids = HOST.map(|guid| manager.lid_of(guid));
    for state in [State::Init, State::Armed] {
        if state == State::Armed {
            manager.bring(&mut world, state);
        }
        world.send(0, 1, data(lids[0], lids[1], 0xffff, b"early"));
        assert_eq!(world.discards.pop(), Some((3, Discard::NotActive)));
        // By local identifiers too.
        let answer = manager.ask_lid(&mut world, lids[1], METHOD_GET, attribute::PORT_INFO, 1);
        let info: PortInfo = answer.unwrap().get();
        assert_eq!((info.lid().get(), info.state()), (lids[1], state));
    }
    manager.bring(&mut world, State::Active);
    // One port is taken back: packets come as far as there.
    world.pull((4, 3));
    world.connect((4, 3), (1, 1));
    world.send(0, 1, data(lids[0], lids[1], 0xffff, b"late"));
    assert_eq!(world.discards.pop(), Some((4, Discard::OutNotActive)));
    assert!(world.delivered.is_empty());
}

#[test]
fn agents_of_switches_answer_by_local_identifiers() {
    let mut world = two_switches();
    let mut manager = Manager::new(0);
    manager.sweep(&mut world);
    for guid in SWITCH {
        let lid = manager.lid_of(guid);
        let answer = manager.ask_lid(&mut world, lid, METHOD_GET, attribute::NODE_INFO, 0);
        let info: NodeInfo = answer.unwrap().get();
        assert_eq!(info.node_guid(), guid);
    }
}

#[test]
fn a_pulled_cable_is_seen() {
    let mut world = two_switches();
    let mut manager = Manager::new(0);
    manager.sweep(&mut world);
    let change = |manager: &mut Manager, world: &mut World| {
        let info: SwitchInfo = manager.get(world, &[1, 5], 0);
        info.port_state_change()
    };
    assert!(!change(&mut manager, &mut world));
    world.pull((4, 4));
    assert!(change(&mut manager, &mut world));
    let info: PortInfo = manager.get(&mut world, &[1, 5], 4);
    assert_eq!(
        (info.state(), info.physical()),
        (State::Down, Physical::Polling)
    );
    manager.sweep(&mut world);
    assert_eq!(manager.nodes.len(), 4);
    assert!(!change(&mut manager, &mut world));
    // And put back.
    world.connect((4, 4), (2, 1));
    assert!(change(&mut manager, &mut world));
    manager.sweep(&mut world);
    assert_eq!(manager.nodes.len(), 5);
    assert!(world.port(2, 1).is_active());
}

/// A way of as many switches as a path has room for; one more cannot be written.
#[test]
fn sixty_three_hops() {
    let mut world = World::default();
    let host = world.add_adapter(HOST[0]);
    let switches: Vec<_> = (0..63)
        .map(|index| world.add_switch(0x1000 + index, 2))
        .collect();
    world.connect((host, 1), (switches[0], 1));
    for pair in switches.windows(2) {
        world.connect((pair[0], 2), (pair[1], 1));
    }
    let mut manager = Manager::new(host);
    let mut path = vec![1];
    path.extend([2; 62]);
    let info: NodeInfo = manager.get(&mut world, &path, 0);
    assert_eq!(info.node_guid(), 0x1000 + 62);
    let mut request = manager.directed(&path, METHOD_GET, attribute::NODE_INFO, 0);
    request.set_hop_count(64);
    assert_eq!(manager.ask(&mut world, request), None);
    assert_eq!(world.discards, [(switches[0], Discard::HopCount)]);
}

#[test]
fn two_adapters_without_a_switch() {
    let mut world = World::default();
    let hosts = [world.add_adapter(HOST[0]), world.add_adapter(HOST[1])];
    world.connect((hosts[0], 1), (hosts[1], 1));
    let mut manager = Manager::new(hosts[0]);
    manager.sweep(&mut world);
    assert_eq!(manager.nodes.len(), 2);
    assert!(world.port(hosts[0], 1).is_active() && world.port(hosts[1], 1).is_active());
    world.send(hosts[0], 1, data(1, 2, 0xffff, b"straight"));
    assert_eq!(world.delivered.len(), 1);
}

/// Each port of a router belongs to its own subnet and is found as such.
#[test]
fn a_router_is_found_in_both_its_subnets() {
    let mut world = World::default();
    let hosts = [world.add_adapter(HOST[0]), world.add_adapter(HOST[1])];
    let router = world.add(Device::Router(subnet_router()));
    world.connect((hosts[0], 1), (router, 1));
    world.connect((hosts[1], 1), (router, 2));
    for (host, port) in [(hosts[0], 1), (hosts[1], 2)] {
        let mut manager = Manager::new(host);
        manager.sweep(&mut world);
        let found = &manager.nodes[1];
        assert_eq!(found.info.node_type(), NodeType::Router as u8);
        assert_eq!((found.entry, found.info.ports()), (port, 2));
        assert!(world.port(router, port).is_active());
    }
}

fn subnet_router() -> subnet::TestRouter {
    use oxib_softib_fabric::port::Profile;
    use oxib_softib_fabric::{
        Port,
        Router, //
    };
    let ports = [1, 2]
        .map(|number| Port::new(&Profile::new(0xc000 + number)))
        .to_vec();
    let identity = subnet::identity(NodeType::Router, 0xc000);
    Router::new(identity, ports, Vec::new(), Vec::new(), true).unwrap()
}
