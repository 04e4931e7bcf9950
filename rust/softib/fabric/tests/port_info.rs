// SPDX-License-Identifier: GPL-2.0-only

//! The attributes of an adapter's port, and what comes of setting them.

mod subnet;

use oxib_softib_fabric::events::{
    Changes,
    LinkCommand, //
};
use oxib_softib_fabric::Events;
use oxib_wire::cm::mtu::Mtu;
use oxib_wire::gid::Gid;
use oxib_wire::lid::Lid;
use oxib_wire::mad::{
    status,
    METHOD_GET, //
};
use oxib_wire::qpn::Qpn;
use oxib_wire::smp::attribute;
use oxib_wire::smp::notice::Culprit;
use oxib_wire::smp::port::{
    capability,
    Physical,
    PortInfo,
    State, //
};
use subnet::alone::Alone;

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
    assert!(alone.node.carrier(1, true).changes.contains(Changes::STATE));
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
    let port = alone.node.port(1).unwrap();
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
    alone.node.carrier(1, true);
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

/// Brings port 1 to a state.
fn bring(alone: &mut Alone, state: State) {
    if state == State::Down {
        return;
    }
    alone.node.carrier(1, true);
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
    assert!(alone.node.carrier(1, true).changes.is_none());
    assert_eq!(alone.info().state(), State::Down);
    let mut info: PortInfo = alone.get(1);
    info.set_state(State::NoChange);
    info.set_physical(Physical::Polling);
    let (status, events) = alone.set(1, &info);
    assert_eq!((status, events.link), (0, Some(LinkCommand::Enable)));
    alone.node.carrier(1, true);
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
    alone.node.carrier(1, true);
    let culprit = culprit();
    for _ in 0..3 {
        alone.node.bad_p_key(1, &culprit, 0);
    }
    alone.node.bad_q_key(1, &culprit, 0);
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

fn culprit() -> Culprit {
    Culprit {
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
