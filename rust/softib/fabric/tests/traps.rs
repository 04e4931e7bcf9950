// SPDX-License-Identifier: GPL-2.0-only

//! Traps: sent to the manager again and again until it answers, and not too often.

mod subnet;

use oxib_softib_fabric::{
    Cabled,
    Outcome,
    OUT_LEN, //
};
use oxib_wire::lid::Lid;
use oxib_wire::mad::{
    Header,
    Subject,
    CLASS_SUBNET_LID,
    METHOD_SET,
    METHOD_TRAP,
    METHOD_TRAP_REPRESS, //
};
use oxib_wire::packet::Packet;
use oxib_wire::smp::node::NodeType;
use oxib_wire::smp::notice::{
    Details,
    LocalChanges,
    Notice, //
};
use oxib_wire::smp::port::{
    capability,
    Physical,
    PortInfo,
    State, //
};
use oxib_wire::smp::{
    attribute,
    Smp, //
};
use subnet::alone::Alone;
use subnet::manager::Manager;
use subnet::{
    adapter,
    build,
    outgoing,
    Device,
    World, //
};

/// 4.096 µs, 18 times doubled.
const INTERVAL: u64 = 4096 << 18;

/// Manager host 0, host 1, switch 2.
fn star() -> (World, Manager) {
    let mut world = World::default();
    let hosts = [world.add_adapter(0x100), world.add_adapter(0x200)];
    let switch = world.add_switch(0xa000, 4);
    for (host, port) in hosts.iter().zip(1..) {
        world.connect((*host, 1), (switch, port));
    }
    let mut manager = Manager::new(0);
    manager.sweep(&mut world);
    // The trap that plugging the cables has raised.
    let traps = poll(&mut world);
    assert_eq!(traps.len(), 1);
    repress(&mut world, &traps[0]);
    world.discards.clear();
    (world, manager)
}

/// The traps that the manager gets when all are asked.
fn poll(world: &mut World) -> Vec<Smp> {
    world.poll();
    world
        .managed
        .drain(..)
        .map(|at| {
            assert_eq!((at.device, at.port), (0, 1));
            let packet = Packet::parse(&at.packet).unwrap();
            let smp = *Smp::from_bytes(packet.payload.try_into().unwrap());
            assert_eq!(smp.header().method(), METHOD_TRAP);
            assert_eq!(smp.header().class(), CLASS_SUBNET_LID);
            let notice: Notice = smp.get();
            assert_eq!(packet.head.lrh.slid(), notice.issuer());
            smp
        })
        .collect()
}

/// The manager has heard it.
fn repress(world: &mut World, trap: &Smp) {
    let notice: Notice = trap.get();
    let mut answer = Smp::new(
        Header::new(Subject {
            class: CLASS_SUBNET_LID,
            class_version: 1,
            method: METHOD_TRAP_REPRESS,
            tid: trap.header().tid(),
            attribute: attribute::NOTICE,
            modifier: 0,
        }),
        0,
    );
    answer.put(&notice);
    let own = world.port(0, 1).info().lid().get();
    let packet = build(
        &outgoing(15, own, notice.issuer().get(), 0, 0),
        &answer.bytes(),
    );
    world.send(0, 1, packet);
}

fn notices(traps: &[Smp]) -> Vec<Notice> {
    traps.iter().map(Smp::get).collect()
}

#[test]
fn a_switch_tells_of_its_links() {
    let (mut world, manager) = star();
    world.now = 10 * INTERVAL;
    assert!(poll(&mut world).is_empty());
    world.pull((2, 2));
    let traps = poll(&mut world);
    let [notice] = notices(&traps)[..] else {
        panic!("{traps:?}");
    };
    let lid = Lid::new(manager.lid_of(0xa000));
    assert_eq!(notice.details(), Some(Details::LinkState { lid }));
    assert_eq!(
        (notice.issuer(), notice.producer()),
        (lid, NodeType::Switch as u32)
    );
    assert!(notice.is_generic());
    // Nothing before its time; then the same again.
    world.now += INTERVAL - 1;
    assert!(poll(&mut world).is_empty());
    world.now += 1;
    let again = poll(&mut world);
    assert_eq!(again, traps);
    // An answer to something else does not count, the right one does.
    let mut other = again[0];
    let header = *other.header();
    *other.header_mut() = Header::new(Subject {
        class: header.class(),
        class_version: header.class_version(),
        method: header.method(),
        tid: header.tid() + 1,
        attribute: header.attribute(),
        modifier: 0,
    });
    repress(&mut world, &other);
    world.now += INTERVAL;
    assert_eq!(poll(&mut world).len(), 1);
    repress(&mut world, &traps[0]);
    world.now += 100 * INTERVAL;
    assert!(poll(&mut world).is_empty());
    assert_eq!(world.poll(), None);
}

#[test]
fn many_changes_are_few_traps() {
    let (mut world, _manager) = star();
    world.now = 10 * INTERVAL;
    let mut count = 0;
    for _ in 0..100 {
        world.pull((2, 2));
        count += poll(&mut world).len();
        world.connect((2, 2), (1, 1));
        count += poll(&mut world).len();
        world.now += INTERVAL / 100;
    }
    // At once, and, when an interval is over, the last.
    assert_eq!(count, 1);
    world.now += INTERVAL;
    assert_eq!(poll(&mut world).len(), 1);
}

/// A change after a trap was sent is told even if that trap is answered.
#[test]
fn an_old_answer_does_not_silence_news() {
    let (mut world, _manager) = star();
    world.now = 10 * INTERVAL;
    world.pull((2, 2));
    let first = poll(&mut world);
    world.connect((2, 2), (1, 1));
    repress(&mut world, &first[0]);
    world.now += INTERVAL;
    assert_eq!(poll(&mut world).len(), 1);
}

#[test]
fn traps_are_repeated_eight_times() {
    let (mut world, _manager) = star();
    world.now = 10 * INTERVAL;
    world.pull((2, 2));
    let mut count = 0;
    let mut next = Some(world.now);
    while let Some(at) = next {
        world.now = at;
        next = world.poll();
        count += world.managed.drain(..).count();
        assert!(count < 100);
    }
    assert_eq!(count, 8);
}

#[test]
fn an_adapter_tells_of_itself() {
    let (mut world, manager) = star();
    world.now = 10 * INTERVAL;
    let now = world.now;
    let lid = Lid::new(manager.lid_of(0x200));
    let Device::Adapter(node) = &mut world.devices[1] else {
        panic!("no adapter");
    };
    let before = node.port(1).unwrap().info().capability_mask();
    node.set_capability(1, capability::SM, 0, now);
    let traps = poll(&mut world);
    let changes = LocalChanges::new(lid, before | capability::SM, 0);
    let wanted = Some(Details::LocalChanges(changes));
    assert_eq!(notices(&traps)[0].details(), wanted);
    assert_eq!(
        notices(&traps)[0].producer(),
        NodeType::ChannelAdapter as u32
    );
    repress(&mut world, &traps[0]);

    let Device::Adapter(node) = &mut world.devices[1] else {
        panic!("no adapter");
    };
    // The same again is no news.
    node.set_capability(1, capability::SM, 0, now);
    let description = node.identity().description;
    node.set_description(description, now);
    world.now += INTERVAL;
    let now = world.now;
    assert!(poll(&mut world).is_empty());
    let Device::Adapter(node) = &mut world.devices[1] else {
        panic!("no adapter");
    };
    node.set_description([b'x'; 64], now);
    let traps = poll(&mut world);
    let Some(Details::LocalChanges(changes)) = notices(&traps)[0].details() else {
        panic!("{traps:?}");
    };
    assert_eq!(changes.flags(), LocalChanges::DESCRIPTION);
}

/// Before there is a manager nothing is sent; when it comes, it is told.
#[test]
fn a_manager_that_comes_late() {
    let mut world = World::default();
    let host = world.add_adapter(0x100);
    let switch = world.add_switch(0xa000, 4);
    world.connect((host, 1), (switch, 1));
    assert_eq!(world.poll(), None);
    assert!(world.managed.is_empty());
    let mut manager = Manager::new(host);
    manager.sweep(&mut world);
    let woken = |(device, events): &(usize, oxib_softib_fabric::Events)| {
        *device == switch
            && events
                .changes
                .contains(oxib_softib_fabric::events::Changes::TRAP)
    };
    // Once by the cable, once by the manager's address.
    assert!(world.events.iter().filter(|event| woken(event)).count() >= 2);
    assert_eq!(poll(&mut world).len(), 1);
}

/// Nine ports that nobody manages raise a trap before the tenth, which has a manager.
#[test]
fn ports_without_a_manager_do_not_crowd() {
    let mut alone = Alone {
        node: adapter(0x100, 10),
        time: 0,
    };
    alone.node.carrier(10, true);
    let mut info = *alone.node.port(10).unwrap().info();
    info.set_lid(Lid::new(7));
    info.set_sm_lid(Lid::new(5));
    info.set_state(State::NoChange);
    info.set_physical(Physical::NoChange);
    let mut smp = Alone::smp(METHOD_SET, attribute::PORT_INFO, 10);
    smp.put(&info);
    assert_eq!(alone.process_at(10, &smp).0, Outcome::Reply);
    assert_eq!(alone.node.port(10).unwrap().info().lid(), Lid::new(7));
    alone.node.set_description([b'x'; 64], 0);
    let mut out = [0; OUT_LEN];
    let sent = alone.node.poll(0, &mut out).send;
    assert_eq!(sent.map(|answer| answer.port), Some(10));
    assert_eq!(alone.node.poll(0, &mut out).send, None);
}

#[test]
fn a_wrong_m_key_is_told() {
    let (mut world, mut manager) = star();
    world.now = 10 * INTERVAL;
    let path = manager.nodes[2].path.clone();
    let mut info: PortInfo = manager.get(&mut world, &path, 1);
    let before = info;
    info.set_state(State::NoChange);
    info.set_physical(Physical::NoChange);
    info.set_m_key(0x55);
    info.set_m_key_protect(2);
    manager.set(&mut world, &path, 1, &info);
    let request = manager.directed(&path, 1, attribute::PORT_INFO, 1);
    assert_eq!(manager.ask(&mut world, request), None);
    assert_eq!(world.discards, [(1, oxib_softib_fabric::Discard::MKey)]);
    let traps = poll(&mut world);
    let Some(Details::BadMKey(_)) = notices(&traps)[0].details() else {
        panic!("{traps:?}");
    };
    assert_eq!(notices(&traps)[0].issuer(), before.lid());
    manager.m_key = 0x55;
    let found: PortInfo = manager.get(&mut world, &path, 1);
    assert_eq!(found.m_key_violations(), 1);
}
