// SPDX-License-Identifier: GPL-2.0-only

//! The attributes of a switch: what they read as, what can be set, what cannot.

mod subnet;

use oxib_wire::lid::Lid;
use oxib_wire::mad::{
    status,
    METHOD_GET, //
};
use oxib_wire::pkey::Pkey;
use oxib_wire::smp::forwarding::{
    Linear,
    Multicast,
    MulticastBlock, //
};
use oxib_wire::smp::lanes::{
    SlToVl,
    Turn,
    VlArbitration, //
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
    Attribute,
    DIRECTION, //
};
use subnet::manager::Manager;
use subnet::{
    Device,
    World, //
};

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
