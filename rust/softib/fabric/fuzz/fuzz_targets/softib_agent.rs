// SPDX-License-Identifier: GPL-2.0-only

//! Any datagrams, one after another, for the agents of an adapter and of a switch: what they
//! answer is a response, and no port is ever given what it cannot have.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_softib_fabric::counters::PortCounts;
use oxib_softib_fabric::node::Identity;
use oxib_softib_fabric::port::Profile;
use oxib_softib_fabric::{
    Node,
    Outcome,
    Port, //
};
use oxib_wire::lid::Lid;
use oxib_wire::smp::node::NodeType;
use oxib_wire::smp::{
    Smp,
    LEN, //
};

const PORTS: u8 = 3;

fn node(node_type: NodeType) -> Node<Vec<Port>> {
    let identity = Identity {
        node_type,
        node_guid: 1,
        system_guid: 1,
        device: 0,
        revision: 0,
        vendor: 0,
        description: [0; 64],
    };
    let profile = Profile {
        vl_cap: 3,
        ..Profile::new(1)
    };
    let count = PORTS + u8::from(node_type == NodeType::Switch);
    let ports = (0..count).map(|_| Port::new(&profile)).collect();
    let mut node = Node::new(identity, ports).unwrap();
    for port in 1..=PORTS {
        node.carrier(port, true);
    }
    node
}

fn check(node: &Node<Vec<Port>>) {
    for port in 1..=PORTS {
        let info = node.port(port).unwrap().info();
        assert!(info.lid() == Lid::ZERO || info.lid().is_unicast());
        assert!(info.sm_lid() == Lid::ZERO || info.sm_lid().is_unicast());
        assert!(info.neighbor_mtu().bytes().is_some());
        assert!(info.operational_vls() <= info.vl_cap());
        assert!(info.width_enabled() & !info.width_supported() == 0);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let counters = |_port: u8| PortCounts::default();
    for node_type in [NodeType::ChannelAdapter, NodeType::Switch] {
        let mut node = node(node_type);
        for (request, now) in bytes.chunks_exact(LEN + 1).zip(0..) {
            let (port, request) = request.split_first().unwrap();
            let request = request.first_chunk().unwrap();
            let mut answer = [0; LEN];
            let done = node.process(*port, request, Lid::new(1), now, &counters, &mut answer);
            if done.outcome == Outcome::Reply {
                let (asked, told) = (Smp::from_bytes(request), Smp::from_bytes(&answer));
                assert_eq!(told.header().method(), 0x81);
                assert_eq!(told.header().tid(), asked.header().tid());
                assert_eq!(told.header().attribute(), asked.header().attribute());
            }
            check(&node);
        }
    }
});
