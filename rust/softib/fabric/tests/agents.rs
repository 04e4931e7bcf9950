// SPDX-License-Identifier: GPL-2.0-only

//! The attributes that an adapter has as a node: what they read as, what can be set, what cannot.
//! And datagrams that its agent does not answer.

mod subnet;

use oxib_softib_fabric::events::Changes;
use oxib_softib_fabric::{
    Events,
    Outcome, //
};
use oxib_wire::mad::{
    status,
    CLASS_CM,
    CLASS_SUBNET_DIRECTED,
    METHOD_GET,
    METHOD_GET_RESP,
    METHOD_SEND,
    METHOD_SET,
    METHOD_TRAP,
    METHOD_TRAP_REPRESS, //
};
use oxib_wire::pkey::Pkey;
use oxib_wire::smp::guid::GuidInfo;
use oxib_wire::smp::led::LedInfo;
use oxib_wire::smp::node::{
    NodeDescription,
    NodeInfo, //
};
use oxib_wire::smp::partition::PKeyTable;
use oxib_wire::smp::port::{
    capability,
    Physical,
    PortInfo,
    State, //
};
use oxib_wire::smp::{
    attribute,
    Smp,
    DIRECTION, //
};
use subnet::alone::Alone;

#[test]
fn what_a_node_is() {
    let mut alone = Alone::new();
    let info: NodeInfo = alone.get(0);
    assert_eq!(
        (info.node_type(), info.ports(), info.local_port()),
        (1, 2, 1)
    );
    assert_eq!((info.node_guid(), info.port_guid()), (0x100, 0x101));
    assert_eq!((info.system_guid(), info.partitions()), (0x100, 32));
    assert_eq!((info.device(), info.vendor()), (0x5001, 0x1405));
    let description: NodeDescription = alone.get(0);
    assert!(description.0.starts_with(b"node 0x100\0"));
    for attribute in [attribute::NODE_INFO, attribute::NODE_DESCRIPTION] {
        let smp = Alone::smp(METHOD_SET, attribute, 0);
        assert_eq!(alone.ask(&smp).0, status::BAD_ATTRIBUTE);
    }
}

#[test]
fn what_no_adapter_has() {
    let mut alone = Alone::new();
    for attribute in [
        attribute::SWITCH_INFO,
        attribute::LINEAR_FORWARDING,
        attribute::MULTICAST_FORWARDING,
        // With one data lane there is nothing to map or to arbitrate.
        attribute::SL_TO_VL,
        attribute::NOTICE,
        attribute::SM_INFO,
        0x0013,
        0xff00,
    ] {
        let smp = Alone::smp(METHOD_GET, attribute, 0);
        assert_eq!(alone.ask(&smp).0, status::BAD_ATTRIBUTE, "{attribute:#x}");
    }
    let smp = Alone::smp(METHOD_GET, attribute::VL_ARBITRATION, 0x0001_0001);
    assert_eq!(alone.ask(&smp).0, status::BAD_ATTRIBUTE);
}

#[test]
fn versions_and_methods() {
    let mut alone = Alone::new();
    let smp = Alone::smp(METHOD_SEND, attribute::NODE_INFO, 0);
    assert_eq!(alone.ask(&smp).0, status::BAD_METHOD);
    let mut bytes = Alone::smp(METHOD_GET, attribute::NODE_INFO, 0).bytes();
    bytes[2] = 2;
    assert_eq!(alone.ask(Smp::from_bytes(&bytes)).0, status::BAD_VERSION);
    bytes[0] = 2;
    assert_eq!(alone.process(Smp::from_bytes(&bytes)).0, Outcome::Consumed);
}

/// Disposition of a datagram that the agent does not answer.
#[test]
fn what_is_for_others() {
    let mut alone = Alone::new();
    let table = [
        (METHOD_GET_RESP, attribute::NODE_INFO, Outcome::Agents),
        (METHOD_TRAP, attribute::NOTICE, Outcome::Agents),
        (METHOD_TRAP_REPRESS, attribute::NOTICE, Outcome::Consumed),
        (METHOD_GET, attribute::SM_INFO, Outcome::Reply),
    ];
    for (method, attribute, outcome) in table {
        assert_eq!(alone.process(&Alone::smp(method, attribute, 0)).0, outcome);
    }
    // With a subnet manager on the port its attribute is its own.
    alone.node.set_capability(1, capability::SM, 0, 0);
    for method in [METHOD_GET, METHOD_SET] {
        let smp = Alone::smp(method, attribute::SM_INFO, 0);
        assert_eq!(alone.process(&smp).0, Outcome::Agents);
    }
    let mut bytes = Alone::smp(METHOD_GET, 1, 0).bytes();
    bytes[1] = CLASS_CM;
    assert_eq!(alone.process(Smp::from_bytes(&bytes)).0, Outcome::Agents);
}

#[test]
fn answers_on_directed_routes_are_marked() {
    let mut alone = Alone::new();
    let mut bytes = Alone::smp(METHOD_GET, attribute::NODE_INFO, 0).bytes();
    bytes[1] = CLASS_SUBNET_DIRECTED;
    bytes[6..8].copy_from_slice(&[2, 1]);
    let (outcome, answer, _events) = alone.process(Smp::from_bytes(&bytes));
    assert_eq!(outcome, Outcome::Reply);
    assert_eq!(answer.header().status(), DIRECTION);
    // A consumer that keeps the rules of the route moves the pointer.
    assert_eq!((answer.hop_pointer(), answer.hop_count()), (2, 1));
}

#[test]
fn partitions() {
    let mut alone = Alone::new();
    let table: PKeyTable = alone.get(0);
    assert_eq!(table.keys()[..2], [Pkey::DEFAULT, Pkey::new(0)]);
    let mut keys = table.keys();
    keys[1] = Pkey::new(0x8001);
    keys[31] = Pkey::new(0x0002);
    let (status, events) = alone.set(0, &PKeyTable::new(keys));
    assert_eq!((status, events), (0, Events::new(1, Changes::PKEY)));
    assert_eq!(alone.get::<PKeyTable>(0).keys(), keys);
    assert_eq!(alone.node.port(1).unwrap().pkeys(), keys);
    assert_eq!(alone.node.port(2).unwrap().pkeys()[1], Pkey::new(0));
    let (status, events) = alone.set(0, &PKeyTable::new(keys));
    assert_eq!((status, events.changes), (0, Changes::NONE));
    let port = alone.node.port(1).unwrap();
    let table = [
        (0x8001, true),
        (0x0001, true),
        (0x8002, true),
        (0x8003, false),
        (0x8000, false),
    ];
    for (key, is_in) in table {
        assert_eq!(port.is_in_partition(Pkey::new(key)), is_in);
    }
    assert_eq!(alone.set(1, &PKeyTable::new(keys)).0, status::BAD_FIELD);
}

#[test]
fn guids() {
    let mut alone = Alone::new();
    let mut guids = alone.get::<GuidInfo>(0).guids();
    assert_eq!(guids, [0x101, 0, 0, 0, 0, 0, 0, 0]);
    guids[0] = 0xdead;
    guids[7] = 0x107;
    let (status, events) = alone.set(0, &GuidInfo::new(guids));
    assert_eq!((status, events), (0, Events::new(1, Changes::GID)));
    guids[0] = 0x101;
    assert_eq!(alone.get::<GuidInfo>(0).guids(), guids);
    // The second block is the last.
    let second = [0x108, 0, 0, 0, 0, 0, 0, 0x10f];
    assert_eq!(alone.set(1, &GuidInfo::new(second)).0, 0);
    let port = alone.node.port(1).unwrap();
    let found: Vec<_> = (0..20).filter(|index| port.gid(*index).is_some()).collect();
    assert_eq!(found, [0, 7, 8, 15]);
    assert!(port.owns_gid(&port.gid(8).unwrap()));
    assert_eq!(alone.set(2, &GuidInfo::new(second)).0, status::BAD_FIELD);
    assert_eq!(
        alone.set(u32::MAX, &GuidInfo::new(second)).0,
        status::BAD_FIELD
    );
}

#[test]
fn light() {
    let mut alone = Alone::new();
    let mut led: LedInfo = alone.get(1);
    assert!(!led.is_on());
    led.set_on(true);
    assert_eq!(alone.set(1, &led).0, 0);
    assert!(alone.get::<LedInfo>(1).is_on());
}

/// With an M_Key: what it takes to read and to write, by the degree of protection.
#[test]
fn m_key() {
    // Protection; with a wrong key: whether reading is served, whether the key is seen.
    let table = [
        (0, true, true),
        (1, true, false),
        (2, false, false),
        (3, false, false),
    ];
    for (protect, reads, sees) in table {
        let mut alone = Alone::new();
        alone.node.carrier(1, true);
        let mut info: PortInfo = alone.get(1);
        info.set_physical(Physical::NoChange);
        info.set_state(State::NoChange);
        info.set_m_key(0x1234);
        info.set_m_key_protect(protect);
        info.set_m_key_lease(10);
        assert_eq!(alone.set(1, &info).0, 0);
        let with_key = |method, key| {
            let mut smp = Alone::smp(method, attribute::PORT_INFO, 1);
            smp.set_m_key(key);
            smp.put(&info);
            smp
        };
        // A wrong key, for the first time at 5 s.
        alone.time = 5_000_000_000;
        let (outcome, _answer, events) = alone.process(&with_key(METHOD_SET, 0x9999));
        assert_eq!(outcome, Outcome::Refused);
        assert!(events.changes.contains(Changes::TRAP));
        let (outcome, answer, _events) = alone.process(&with_key(METHOD_GET, 0));
        assert_eq!(outcome == Outcome::Reply, reads);
        if reads {
            let seen = answer.get::<PortInfo>().m_key();
            assert_eq!(seen, if sees { 0x1234 } else { 0 });
        }
        assert_eq!(alone.info().m_key_violations(), 2 - u16::from(reads));
        // The right one, which ends the lease.
        let (outcome, answer, _events) = alone.process(&with_key(METHOD_GET, 0x1234));
        assert_eq!(outcome, Outcome::Reply);
        assert_eq!(answer.get::<PortInfo>().m_key(), 0x1234);
        alone.time = 60_000_000_000;
        let (outcome, ..) = alone.process(&with_key(METHOD_GET, 0));
        assert_eq!(outcome == Outcome::Reply, reads);
        // Ten seconds after the last wrong one the key can be read, so that a manager that has lost
        // it can take over.
        let (outcome, ..) = alone.process(&with_key(METHOD_SET, 1));
        assert_eq!(outcome, Outcome::Refused);
        alone.time = 70_000_000_000;
        let (outcome, answer, _events) = alone.process(&with_key(METHOD_GET, 0));
        assert_eq!(outcome, Outcome::Reply);
        assert_eq!(answer.get::<PortInfo>().m_key(), 0x1234);
    }
}

/// A request that names another port needs the M_Key of that one as well: it may be in another
/// subnet.
#[test]
fn m_key_of_the_port_that_is_named() {
    // Protection; with a wrong key: whether reading is served, whether the key is seen.
    let table = [(0, true, true), (1, true, false), (2, false, false)];
    for (protect, reads, sees) in table {
        let mut alone = Alone::new();
        let mut info = *alone.node.port(2).unwrap().info();
        info.set_physical(Physical::NoChange);
        info.set_state(State::NoChange);
        info.set_m_key(0x1234);
        info.set_m_key_protect(protect);
        let mut smp = Alone::smp(METHOD_SET, attribute::PORT_INFO, 2);
        smp.put(&info);
        let (outcome, answer, _events) = alone.process_at(2, &smp);
        let status = answer.header().status();
        assert_eq!((outcome, status), (Outcome::Reply, status::OK));
        // By port 1, which has no key.
        let mut smp = Alone::smp(METHOD_GET, attribute::PORT_INFO, 0x8000_0002);
        let (outcome, answer, events) = alone.process(&smp);
        if reads {
            assert_eq!(outcome, Outcome::Reply);
            let seen = answer.get::<PortInfo>().m_key();
            assert_eq!(seen, if sees { 0x1234 } else { 0 });
        } else {
            assert_eq!(outcome, Outcome::Refused);
            assert_eq!(events, Events::new(2, Changes::TRAP));
        }
        let violations = |alone: &Alone, port| {
            let info = alone.node.port(port).unwrap().info();
            info.m_key_violations()
        };
        assert_eq!(violations(&alone, 2), u16::from(!reads));
        let led = Alone::smp(METHOD_GET, attribute::LED_INFO, 2);
        assert_eq!(alone.process(&led).0 == Outcome::Reply, reads);
        smp.set_m_key(0x1234);
        let (outcome, answer, _events) = alone.process(&smp);
        assert_eq!(outcome, Outcome::Reply);
        assert_eq!(answer.get::<PortInfo>().m_key(), 0x1234);
        assert_eq!(violations(&alone, 1), 0);
    }
}
