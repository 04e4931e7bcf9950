// SPDX-License-Identifier: GPL-2.0-only

//! Each attribute of each kind of node: what it reads as, what can be set, what cannot.

mod subnet;

use oxib_softib_fabric::counters::PortCounts;
use oxib_softib_fabric::events::{
    Changes,
    LinkCommand, //
};
use oxib_softib_fabric::Events;
use oxib_softib_fabric::Outcome;
use oxib_wire::cm::mtu::Mtu;
use oxib_wire::lid::Lid;
use oxib_wire::mad::{
    status,
    Header,
    Subject,
    CLASS_CM,
    CLASS_SUBNET_DIRECTED,
    CLASS_SUBNET_LID,
    METHOD_GET,
    METHOD_GET_RESP,
    METHOD_SEND,
    METHOD_SET,
    METHOD_TRAP,
    METHOD_TRAP_REPRESS, //
};
use oxib_wire::pkey::Pkey;
use oxib_wire::smp::forwarding::{
    Linear,
    Multicast,
    MulticastBlock, //
};
use oxib_wire::smp::guid::GuidInfo;
use oxib_wire::smp::lanes::{
    SlToVl,
    Turn,
    VlArbitration, //
};
use oxib_wire::smp::led::LedInfo;
use oxib_wire::smp::node::{
    NodeDescription,
    NodeInfo, //
};
use oxib_wire::smp::notice::Notice;
use oxib_wire::smp::partition::PKeyTable;
use oxib_wire::smp::port::{
    capability,
    Physical,
    PortInfo,
    State, //
};
use oxib_wire::smp::sm::SmInfo;
use oxib_wire::smp::switch::SwitchInfo;
use oxib_wire::smp::{
    attribute,
    Attribute,
    Smp,
    DIRECTION,
    LEN, //
};
use oxib_wire::{
    mad,
    pma, //
};
use subnet::manager::Manager;
use subnet::{
    adapter,
    no_counts,
    Device,
    World, //
};

/// An adapter alone, asked by itself.
struct Alone(oxib_softib_fabric::Node<Vec<oxib_softib_fabric::Port>>, u64);

impl Alone {
    fn new() -> Alone {
        Alone(adapter(0x100, 2), 0)
    }

    fn smp(method: u8, attribute: u16, modifier: u32) -> Smp {
        let subject = Subject {
            class: CLASS_SUBNET_LID,
            class_version: 1,
            method,
            tid: 7,
            attribute,
            modifier,
        };
        Smp::new(Header::new(subject), 0)
    }

    fn process(&mut self, smp: &Smp) -> (Outcome, Smp, Events) {
        let mut answer = [0; LEN];
        let slid = Lid::new(3);
        let done = self
            .0
            .process(1, &smp.bytes(), slid, self.1, &no_counts, &mut answer);
        (done.outcome, *Smp::from_bytes(&answer), done.events)
    }

    fn ask(&mut self, smp: &Smp) -> (u16, Smp, Events) {
        let (outcome, answer, events) = self.process(smp);
        assert_eq!(outcome, Outcome::Reply);
        assert_eq!(answer.header().method(), METHOD_GET_RESP);
        assert_eq!(answer.header().tid(), 7);
        (answer.header().status(), answer, events)
    }

    fn get<A: Attribute>(&mut self, modifier: u32) -> A {
        let (status, answer, _events) = self.ask(&Self::smp(METHOD_GET, A::ID, modifier));
        assert_eq!(status, 0);
        answer.get()
    }

    fn set<A: Attribute>(&mut self, modifier: u32, value: &A) -> (u16, Events) {
        let mut smp = Self::smp(METHOD_SET, A::ID, modifier);
        smp.put(value);
        let (status, _answer, events) = self.ask(&smp);
        (status, events)
    }

    fn info(&self) -> PortInfo {
        *self.0.port(1).unwrap().info()
    }
}

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
    alone.0.set_capability(1, capability::SM, 0, 0);
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
fn a_port_is_read() {
    let mut alone = Alone::new();
    let info: PortInfo = alone.get(0);
    assert_eq!((info.local_port(), info.lid()), (1, Lid::ZERO));
    assert_eq!(info.gid_prefix(), 0xfe80 << 48);
    let wanted = capability::TRAP
        | capability::SYSTEM_IMAGE_GUID
        | capability::CLIENT_REREGISTRATION
        | capability::CAPABILITY_MASK_NOTICE;
    assert_eq!(info.capability_mask() & wanted, wanted);
    assert_eq!(info.capability_mask() & capability::SM, 0);
    // The other port, and with the bit that only says what the manager knows.
    let other: PortInfo = alone.get(0x8000_0002);
    assert_eq!(other.state(), State::Down);
    for modifier in [3, 255, 256] {
        let smp = Alone::smp(METHOD_GET, attribute::PORT_INFO, modifier);
        assert_eq!(alone.ask(&smp).0, status::BAD_FIELD);
    }
}

#[test]
fn a_port_is_set() {
    let mut alone = Alone::new();
    assert!(alone.0.carrier(1, true).changes.contains(Changes::STATE));
    let mut info: PortInfo = alone.get(1);
    info.set_lid(Lid::new(0x11));
    info.set_lmc(2);
    info.set_sm_lid(Lid::new(5));
    info.set_sm_sl(1);
    info.set_gid_prefix(0xfec0_0000_0000_0001);
    info.set_state(State::Armed);
    info.set_physical(Physical::NoChange);
    info.set_client_reregister(true);
    info.set_subnet_timeout(20);
    info.set_neighbor_mtu(Mtu::new(4));
    let (status, events) = alone.set(1, &info);
    assert_eq!((status, events.port, events.link), (0, 1, None));
    let all = [
        Changes::LID,
        Changes::SM,
        Changes::GID,
        Changes::STATE,
        Changes::REREGISTER,
    ];
    for change in all {
        assert!(events.changes.contains(change), "{change:?}");
    }
    assert!(!events.changes.contains(Changes::PKEY));
    let port = alone.0.port(1).unwrap();
    assert_eq!(port.info().subnet_timeout(), 20);
    assert_eq!(port.info().neighbor_mtu(), Mtu::new(4));
    let own: Vec<_> = (0..32)
        .filter(|lid| port.owns_lid(Lid::new(*lid)))
        .collect();
    assert_eq!(own, [0x10, 0x11, 0x12, 0x13]);
    let gid = port.gid(0).unwrap().to_string();
    assert_eq!(gid, "fec0:0000:0000:0001:0000:0000:0000:0101");
    // The request of reregistration is not remembered, and the same again changes nothing.
    let mut again: PortInfo = alone.get(1);
    assert!(!again.client_reregister());
    again.set_physical(Physical::NoChange);
    let (status, events) = alone.set(1, &again);
    assert_eq!((status, events.changes), (0, Changes::NONE));
    // A port is set only by itself.
    assert_eq!(alone.set(2, &again).0, status::BAD_FIELD);
}

/// Makes a request wrong in one field.
type Spoil = fn(&mut PortInfo);

#[test]
fn what_a_port_cannot_be_set_to() {
    let mut alone = Alone::new();
    alone.0.carrier(1, true);
    let mut good: PortInfo = alone.get(1);
    good.set_lid(Lid::new(0x10));
    good.set_physical(Physical::NoChange);
    good.set_state(State::NoChange);
    assert_eq!(alone.set(1, &good).0, 0);
    let before = alone.info();
    let bad: [(&str, Spoil); 14] = [
        ("reserved LID", |info| info.set_lid(Lid::ZERO)),
        ("multicast LID", |info| info.set_lid(Lid::new(0xc000))),
        ("permissive LID", |info| info.set_lid(Lid::PERMISSIVE)),
        ("multicast SM LID", |info| info.set_sm_lid(Lid::new(0xc000))),
        ("MTU 0", |info| info.set_neighbor_mtu(Mtu::new(0))),
        ("MTU 6", |info| info.set_neighbor_mtu(Mtu::new(6))),
        ("more lanes", |info| info.set_operational_vls(2)),
        ("12X", |info| info.set_width_enabled(8)),
        ("more speeds", |info| info.set_speed_enabled(8)),
        ("default of training", |info| {
            info.set_down_default(Physical::Training)
        }),
        ("to Init", |info| info.set_state(State::Init)),
        ("Init to Active", |info| info.set_state(State::Active)),
        ("reserved state", |info| info.set_state(State::Reserved(9))),
        ("to training", |info| info.set_physical(Physical::Training)),
    ];
    for (what, spoil) in bad {
        let mut info = good;
        // Would be seen if anything of the request was done.
        info.set_sm_sl(9);
        info.set_hoq_life(9);
        spoil(&mut info);
        let (status, events) = alone.set(1, &info);
        assert_eq!(
            (status, events),
            (status::BAD_FIELD, Events::default()),
            "{what}"
        );
        assert_eq!(alone.info(), before, "{what}");
    }
}

/// From each state to each other: what may be asked for, and what comes of it.
#[test]
fn states_of_a_port() {
    let table = [
        (State::Init, State::Armed, Some(State::Armed)),
        (State::Armed, State::Active, Some(State::Active)),
        (State::Armed, State::Armed, Some(State::Armed)),
        (State::Active, State::Active, Some(State::Active)),
        (State::Init, State::Active, None),
        (State::Active, State::Armed, None),
        (State::Init, State::Down, Some(State::Down)),
        (State::Armed, State::Down, Some(State::Down)),
        (State::Active, State::Down, Some(State::Down)),
        (State::Down, State::Armed, None),
        (State::Down, State::Active, None),
        (State::Init, State::Init, None),
    ];
    for (from, to, becomes) in table {
        let mut alone = Alone::new();
        bring(&mut alone, from);
        let mut info: PortInfo = alone.get(1);
        info.set_physical(Physical::NoChange);
        info.set_state(to);
        let (status, events) = alone.set(1, &info);
        assert_eq!(status == 0, becomes.is_some(), "{from:?} to {to:?}");
        let now = alone.info().state();
        assert_eq!(now, becomes.unwrap_or(from));
        assert_eq!(events.changes.contains(Changes::STATE), now != from);
        let link = (to == State::Down).then_some(LinkCommand::Down);
        assert_eq!(events.link, link);
    }
}

fn bring(alone: &mut Alone, state: State) {
    if state == State::Down {
        return;
    }
    alone.0.carrier(1, true);
    for step in [State::Armed, State::Active] {
        if alone.info().state() == state {
            return;
        }
        let mut info: PortInfo = alone.get(1);
        info.set_physical(Physical::NoChange);
        info.set_state(step);
        assert_eq!(alone.set(1, &info).0, 0);
    }
}

/// Sequence that `ibportstate` runs: disable, enable, reset.
#[test]
fn links_are_taken_down_and_up() {
    let mut alone = Alone::new();
    bring(&mut alone, State::Active);
    let mut info: PortInfo = alone.get(1);
    info.set_state(State::Down);
    info.set_physical(Physical::Disabled);
    let (status, events) = alone.set(1, &info);
    assert_eq!((status, events.link), (0, Some(LinkCommand::Disable)));
    assert_eq!(alone.info().physical(), Physical::Disabled);
    // However well the cable is: it stays down until it is enabled.
    assert!(alone.0.carrier(1, true).changes.is_none());
    assert_eq!(alone.info().state(), State::Down);
    let mut info: PortInfo = alone.get(1);
    info.set_state(State::NoChange);
    info.set_physical(Physical::Polling);
    let (status, events) = alone.set(1, &info);
    assert_eq!((status, events.link), (0, Some(LinkCommand::Enable)));
    alone.0.carrier(1, true);
    assert_eq!(alone.info().state(), State::Init);
    let mut info: PortInfo = alone.get(1);
    info.set_state(State::Down);
    info.set_physical(Physical::Polling);
    let (status, events) = alone.set(1, &info);
    assert_eq!((status, events.link), (0, Some(LinkCommand::Down)));
}

#[test]
fn violations_are_cleared_and_not_made() {
    let mut alone = Alone::new();
    alone.0.carrier(1, true);
    let culprit = culprit();
    for _ in 0..3 {
        alone.0.bad_p_key(1, &culprit, 0);
    }
    alone.0.bad_q_key(1, &culprit, 0);
    let mut info: PortInfo = alone.get(1);
    assert_eq!((info.p_key_violations(), info.q_key_violations()), (3, 1));
    info.set_physical(Physical::NoChange);
    info.set_state(State::NoChange);
    info.set_p_key_violations(77);
    info.set_q_key_violations(0);
    assert_eq!(alone.set(1, &info).0, 0);
    let info: PortInfo = alone.get(1);
    assert_eq!((info.p_key_violations(), info.q_key_violations()), (3, 0));
}

fn culprit() -> oxib_wire::smp::notice::Culprit {
    use oxib_wire::gid::Gid;
    use oxib_wire::qpn::Qpn;
    oxib_wire::smp::notice::Culprit {
        slid: Lid::new(4),
        dlid: Lid::new(5),
        key: 0x8001,
        sl: 0,
        source: Qpn::new(9).unwrap(),
        destination: Qpn::new(10).unwrap(),
        sgid: Gid::ZERO,
        dgid: Gid::ZERO,
    }
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
    assert_eq!(alone.0.port(1).unwrap().pkeys(), keys);
    assert_eq!(alone.0.port(2).unwrap().pkeys()[1], Pkey::new(0));
    let (status, events) = alone.set(0, &PKeyTable::new(keys));
    assert_eq!((status, events.changes), (0, Changes::NONE));
    let port = alone.0.port(1).unwrap();
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
    let port = alone.0.port(1).unwrap();
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
        alone.0.carrier(1, true);
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
        alone.1 = 5_000_000_000;
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
        alone.1 = 60_000_000_000;
        let (outcome, ..) = alone.process(&with_key(METHOD_GET, 0));
        assert_eq!(outcome == Outcome::Reply, reads);
        // Ten seconds after the last wrong one the key can be read, so that a manager that has lost
        // it can take over.
        let (outcome, ..) = alone.process(&with_key(METHOD_SET, 1));
        assert_eq!(outcome, Outcome::Refused);
        alone.1 = 70_000_000_000;
        let (outcome, answer, _events) = alone.process(&with_key(METHOD_GET, 0));
        assert_eq!(outcome, Outcome::Reply);
        assert_eq!(answer.get::<PortInfo>().m_key(), 0x1234);
    }
}

/// A host and a switch, and a manager on the host.
fn host_and_switch(vl_cap: u8) -> (World, Manager) {
    let mut world = World::default();
    let host = world.add_adapter(0x100);
    let switch = subnet::switch_of(0xa000, 36, vl_cap);
    let switch = world.add(Device::Switch(Box::new(switch)));
    world.connect((host, 1), (switch, 4));
    (world, Manager::new(host))
}

#[test]
fn what_a_switch_can_do() {
    let (mut world, mut manager) = host_and_switch(1);
    let mut info: SwitchInfo = manager.get(&mut world, &[1], 0);
    assert_eq!((info.linear_cap(), info.random_cap()), (0xc000, 0));
    assert_eq!((info.multicast_cap(), info.enforcement_cap()), (1024, 32));
    assert!(info.inbound_enforcement_cap() && info.outbound_enforcement_cap());
    assert!(!info.enhanced_port0() && info.port_state_change());
    assert_eq!(info.default_multicast_primary(), 0xff);
    info.set_linear_top(0xbfff);
    info.set_port_state_change(false);
    info.set_life_time_value(9);
    info.set_linear_cap(1);
    manager.set(&mut world, &[1], 0, &info);
    let found: SwitchInfo = manager.get(&mut world, &[1], 0);
    assert_eq!((found.linear_top(), found.linear_cap()), (0xbfff, 0xc000));
    assert_eq!(found.life_time_value(), 9);
    // A zero does not clear it, a one does.
    assert!(found.port_state_change());
    manager.set(&mut world, &[1], 0, &found);
    assert!(!manager
        .get::<SwitchInfo>(&mut world, &[1], 0)
        .port_state_change());
    info.set_linear_top(0xc000);
    let status = manager.try_set(&mut world, &[1], 0, &info);
    assert_eq!(status, status::BAD_FIELD);
}

#[test]
fn forwarding_tables() {
    let (mut world, mut manager) = host_and_switch(1);
    let mut block: Linear = manager.get(&mut world, &[1], 0x2ff);
    assert_eq!(block, Linear([0xff; 64]));
    block.0[63] = 4;
    manager.set(&mut world, &[1], 0x2ff, &block);
    assert_eq!(manager.get::<Linear>(&mut world, &[1], 0x2ff), block);
    assert_eq!(
        manager.get::<Linear>(&mut world, &[1], 0x2fe),
        Linear([0xff; 64])
    );
    let status = manager.try_set(&mut world, &[1], 0x300, &block);
    assert_eq!(status, status::BAD_FIELD);

    let part = |position, block| MulticastBlock { position, block }.modifier();
    let mut ports = [0; 32];
    ports[5] = 0x8001;
    for position in 0..3 {
        ports[6] = u16::from(position);
        let value = Multicast::new(ports);
        manager.set(&mut world, &[1], part(position, 31), &value);
    }
    for position in 0..3 {
        let found: Multicast = manager.get(&mut world, &[1], part(position, 31));
        assert_eq!(
            (found.ports()[5], found.ports()[6]),
            (0x8001, position.into())
        );
    }
    for modifier in [part(0, 32), part(3, 0), part(15, 0)] {
        let status = manager.try_set(&mut world, &[1], modifier, &Multicast::new(ports));
        assert_eq!(status, status::BAD_FIELD);
    }
}

#[test]
fn ports_of_a_switch() {
    let (mut world, mut manager) = host_and_switch(1);
    let own: PortInfo = manager.get(&mut world, &[1], 0);
    assert_eq!(
        (own.state(), own.physical()),
        (State::Active, Physical::LinkUp)
    );
    assert_eq!(own.local_port(), 4);
    let mut info: PortInfo = manager.get(&mut world, &[1], 4);
    assert_eq!(info.state(), State::Init);
    // An address at a port to the outside means nothing, and is not kept.
    info.set_lid(Lid::new(0xffff));
    info.set_inbound_enforcement(true);
    info.set_state(State::Armed);
    info.set_physical(Physical::NoChange);
    manager.set(&mut world, &[1], 4, &info);
    let found: PortInfo = manager.get(&mut world, &[1], 4);
    assert_eq!((found.lid(), found.state()), (Lid::ZERO, State::Armed));
    assert!(found.inbound_enforcement() && !found.outbound_enforcement());
    let status = manager.try_set(&mut world, &[1], 37, &info);
    assert_eq!(status, status::BAD_FIELD);

    let mut keys = [Pkey::new(0); 32];
    keys[0] = Pkey::new(0x8001);
    manager.set(&mut world, &[1], 36 << 16, &PKeyTable::new(keys));
    let found: PKeyTable = manager.get(&mut world, &[1], 36 << 16);
    assert_eq!(found.keys(), keys);
    assert_eq!(
        manager.get::<PKeyTable>(&mut world, &[1], 0).keys()[0],
        Pkey::DEFAULT
    );
    let status = manager.try_set(&mut world, &[1], 37 << 16, &PKeyTable::new(keys));
    assert_eq!(status, status::BAD_FIELD);
}

#[test]
fn lanes() {
    let (mut world, mut manager) = host_and_switch(3);
    let map = SlToVl([0x01, 0x23, 0x01, 0x23, 0x01, 0x23, 0x01, 0x23]);
    manager.set(&mut world, &[1], 0x0405, &map);
    assert_eq!(manager.get::<SlToVl>(&mut world, &[1], 0x0405), map);
    assert_eq!(
        manager.get::<SlToVl>(&mut world, &[1], 0x0504),
        SlToVl::default()
    );
    let info: PortInfo = manager.get(&mut world, &[1], 4);
    assert_ne!(info.capability_mask() & capability::SL_MAPPING, 0);
    for modifier in [0x2505, 0x0525, 0x0100_0405] {
        let status = manager.try_set(&mut world, &[1], modifier, &map);
        assert_eq!(status, status::BAD_FIELD);
    }
    let mut table = VlArbitration::default();
    table.0[31] = Turn { lane: 3, weight: 9 };
    for half in [1, 3] {
        table.0[0].weight = half;
        manager.set(&mut world, &[1], (u32::from(half) << 16) | 4, &table);
    }
    for half in [1, 3] {
        let found: VlArbitration = manager.get(&mut world, &[1], (u32::from(half) << 16) | 4);
        assert_eq!((found.0[0].weight, found.0[31].lane), (half, 3));
    }
    let status = manager.try_set(&mut world, &[1], (2 << 16) | 4, &table);
    assert_eq!(status, status::BAD_FIELD);
}

#[test]
fn a_switch_has_no_manager() {
    let (mut world, mut manager) = host_and_switch(1);
    let status = manager.try_set(&mut world, &[1], 0, &SmInfo::default());
    assert_eq!(status, status::BAD_ATTRIBUTE);
    let request = manager.directed(&[1], METHOD_GET, Notice::ID, 0);
    let answer = manager.ask(&mut world, request).unwrap();
    assert_eq!(answer.header().status() & !DIRECTION, status::BAD_ATTRIBUTE);
}

/// Counters: what is read is what was counted since it was cleared, and stops at what fits.
#[test]
fn counters() {
    let mut node = adapter(0x100, 2);
    let mut counts = PortCounts {
        transmit_data: 1 << 40,
        receive_packets: 100,
        link_downed: 300,
        vl15_dropped: 7,
        ..PortCounts::default()
    };
    let mut ask = |counts: PortCounts, method, attribute, port: u8, select: u16| {
        let subject = Subject {
            class: mad::CLASS_PERFORMANCE,
            class_version: 1,
            method,
            tid: 1,
            attribute,
            modifier: 0,
        };
        let mut bytes = Smp::new(Header::new(subject), 0).bytes();
        bytes[65] = port;
        bytes[66..68].copy_from_slice(&select.to_be_bytes());
        let mut answer = [0; LEN];
        let read = |number: u8| {
            if number == 2 {
                counts
            } else {
                PortCounts::default()
            }
        };
        let done = node.process(1, &bytes, Lid::new(1), 0, &read, &mut answer);
        assert_eq!(done.outcome, Outcome::Reply);
        *pma::Performance::from_bytes(&answer)
    };
    let narrow = pma::attribute::PORT_COUNTERS;
    let wide = pma::attribute::PORT_COUNTERS_EXTENDED;
    let read: pma::PortCounters = ask(counts, METHOD_GET, narrow, 2, 0).get();
    assert_eq!(
        (read.transmit_data(), read.receive_packets()),
        (u32::MAX, 100)
    );
    assert_eq!((read.link_downed(), read.vl15_dropped()), (255, 7));
    let read: pma::PortCountersExtended = ask(counts, METHOD_GET, wide, 2, 0).get();
    assert_eq!(
        (read.transmit_data(), read.receive_packets()),
        (1 << 40, 100)
    );
    // The data and the drops of the special lane are cleared, the packets are not.
    let read: pma::PortCounters = ask(counts, METHOD_SET, narrow, 2, (1 << 12) | (1 << 11)).get();
    assert_eq!((read.transmit_data(), read.vl15_dropped()), (0, 0));
    counts.transmit_data += 5;
    counts.receive_packets += 1;
    let read: pma::PortCountersExtended = ask(counts, METHOD_GET, wide, 2, 0).get();
    assert_eq!((read.transmit_data(), read.receive_packets()), (5, 101));
    let read: pma::PortCountersExtended = ask(counts, METHOD_SET, wide, 2, 0xff).get();
    assert_eq!((read.transmit_data(), read.receive_packets()), (0, 0));
    let read: pma::PortCounters = ask(counts, METHOD_GET, narrow, 1, 0).get();
    assert_eq!((read.port_select(), read.link_downed()), (1, 0));
    // Not all ports of an adapter at once, and none that there is not.
    for port in [0, 3, 0xff] {
        let status = ask(counts, METHOD_GET, narrow, port, 0).header().status();
        assert_eq!(status, status::BAD_FIELD);
    }
    let class: pma::ClassPortInfo = ask(counts, METHOD_GET, 1, 0, 0).get();
    assert_eq!(class.capability_mask(), pma::capability::EXTENDED_WIDTH);
    assert_eq!(
        ask(counts, METHOD_GET, 0x10, 1, 0).header().status(),
        status::BAD_ATTRIBUTE
    );
    assert_eq!(
        ask(counts, METHOD_SEND, narrow, 1, 0).header().status(),
        status::BAD_METHOD
    );
}
