// SPDX-License-Identifier: GPL-2.0-only

//! Any frames, one after another, at any ports of a switch and of a router: each goes out by ports
//! that there are, is answered by a whole packet, or is dropped for a cause.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_softib_fabric::counters::PortCounts;
use oxib_softib_fabric::node::Identity;
use oxib_softib_fabric::port::Profile;
use oxib_softib_fabric::router::{
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
    Hop,
    Port,
    Received,
    Router,
    Switch,
    OUT_LEN, //
};
use oxib_wire::icrc;
use oxib_wire::lid::Lid;
use oxib_wire::packet::{
    Head,
    Packet, //
};
use oxib_wire::smp::lanes::SlToVl;
use oxib_wire::smp::node::NodeType;

const PORTS: u8 = 3;

struct Vectors;

impl Storage for Vectors {
    type Ports = Vec<Port>;
    type Linear = Vec<u8>;
    type Multicast = Vec<PortMask>;
    type Lanes = Vec<SlToVl>;
}

fn identity(node_type: NodeType) -> Identity {
    Identity {
        node_type,
        node_guid: 1,
        system_guid: 1,
        device: 0,
        revision: 0,
        vendor: 0,
        description: [0; 64],
    }
}

fn switch() -> Switch<Vectors> {
    let profile = Profile {
        vl_cap: 3,
        ..Profile::new(1)
    };
    let mut ports = vec![Port::of_switch(&profile)];
    ports.extend((0..PORTS).map(|_| Port::new(&profile)));
    let count = ports.len();
    let tables = Tables::<Vectors> {
        ports,
        linear: vec![0; 256],
        multicast: vec![PortMask::NONE; 64],
        lanes: vec![SlToVl::default(); count * count],
    };
    Switch::new(identity(NodeType::Switch), tables).unwrap()
}

fn router() -> Router<Vec<Port>, Vec<Route>, Vec<Neighbour>> {
    let ports = (0..PORTS).map(|_| Port::new(&Profile::new(1))).collect();
    let route = Route {
        prefix: 0,
        port: 2,
        router: Lid::new(3),
    };
    let identity = identity(NodeType::Router);
    Router::new(identity, ports, vec![route], Vec::new(), true).unwrap()
}

fn check(received: &Received, out: &[u8]) {
    if let Some(answer) = received.answer {
        assert!((1..=PORTS).contains(&answer.port));
        let sent = Packet::parse(&out[..answer.len]).unwrap();
        assert!(sent.head.is_intact(icrc::crc32));
    }
}

/// Cuts the next frame off the input: a byte with the port, a byte with the length in words of
/// four bytes, and the frame.
fn next<'a>(bytes: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (port, rest) = bytes.split_first()?;
    let (words, rest) = rest.split_first()?;
    let (frame, rest) = rest.split_at_checked(usize::from(*words) * 4)?;
    *bytes = rest;
    Some((*port, frame))
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes;
    let counters = |_port: u8| PortCounts::default();
    let mut out = [0; OUT_LEN];
    let (mut switch, mut router) = (switch(), router());
    for port in 1..=PORTS {
        switch.carrier(port, true, 0);
        router.carrier(port, true, 0);
    }
    let mut now = 0;
    while let Some((port, frame)) = next(&mut bytes) {
        now += 1;
        let Ok(head) = Head::parse(frame) else {
            continue;
        };
        let way = switch.forward(port, &head);
        if let Ok(mask) = way {
            assert!((1..=PORTS).contains(&port) && !mask.is_empty());
            for to in mask {
                assert!(to <= PORTS && (to == 0 || to != port));
                let _ = switch.lane(port, to, &head);
            }
        }
        let Ok(packet) = Packet::of(head) else {
            continue;
        };
        if way.is_ok_and(|mask| mask.has(0)) {
            let received = switch.receive(port, &packet, now, &counters, &mut out);
            check(&received, &out);
        }
        match router.forward(port, &head) {
            Ok(Hop::Own) => {
                let received = router.receive(port, &packet, now, &counters, &mut out);
                check(&received, &out);
            }
            Ok(Hop::Out(way)) => assert!((1..=PORTS).contains(&way.port) && way.port != port),
            Err(_cause) => {}
        }
        while switch.poll(now, &mut out).send.is_some() {}
        while router.poll(now, &mut out).send.is_some() {}
    }
});
