// SPDX-License-Identifier: GPL-2.0-only

//! The rules of directed routes, C14-9 and C14-13, as a table: every pointer on ways of every
//! length, out and back, in a switch and in an adapter.

use oxib_softib_fabric::directed::{
    arrive,
    Place,
    Step, //
};
use oxib_softib_fabric::Discard;
use oxib_wire::lid::Lid;
use oxib_wire::mad::{
    Header,
    Subject,
    CLASS_SUBNET_DIRECTED,
    METHOD_GET, //
};
use oxib_wire::smp::{
    Smp,
    DIRECTION, //
};

const PORTS: u8 = 8;
const IN_PORT: u8 = 6;

/// On its way by the ports 1, 2, 3 and so on, round and round; back by 8, 7, 6 and so on.
fn smp(pointer: u8, count: u8, back: bool, from: Lid, to: Lid) -> Smp {
    let mut header = Header::new(Subject {
        class: CLASS_SUBNET_DIRECTED,
        class_version: 1,
        method: METHOD_GET,
        tid: 1,
        attribute: 0x11,
        modifier: 0,
    });
    header.set_status(if back { DIRECTION } else { 0 });
    let mut smp = Smp::new(header, 0);
    for hop in 1..64 {
        smp.set_initial_hop(hop, (hop - 1) % PORTS + 1).unwrap();
        smp.set_return_hop(hop, PORTS - (hop - 1) % PORTS).unwrap();
    }
    smp.set_hop_pointer(pointer);
    smp.set_hop_count(count);
    smp.set_dr_slid(from);
    smp.set_dr_dlid(to);
    smp
}

fn place(is_switch: bool) -> Place {
    Place {
        is_switch,
        ports: if is_switch { PORTS } else { 1 },
        in_port: if is_switch { IN_PORT } else { 1 },
    }
}

/// The next step, the new hop pointer, and the return path's entry at the old pointer.
type Verdict = (Result<Step, Discard>, u8, u8);

fn run(smp: &Smp, is_switch: bool) -> Verdict {
    let mut moved = *smp;
    let step = arrive(&mut moved, place(is_switch));
    let hop = smp.hop_pointer();
    (
        step,
        moved.hop_pointer(),
        moved.return_hop(hop).unwrap_or(0),
    )
}

#[test]
fn on_the_way_out() {
    const P: Lid = Lid::PERMISSIVE;
    const L: Lid = Lid::new(9);
    let table = [
        // pointer, count, what follows the way; in a switch: step, pointer; in an adapter.
        // C14-9:1 is the sender's.
        (
            0,
            1,
            P,
            (Err(Discard::HopPointer), 0),
            (Err(Discard::HopPointer), 0),
        ),
        (
            0,
            63,
            P,
            (Err(Discard::HopPointer), 0),
            (Err(Discard::HopPointer), 0),
        ),
        // C14-9:2
        (
            1,
            2,
            P,
            (Ok(Step::Leave(2)), 2),
            (Err(Discard::HopPointer), 1),
        ),
        (
            6,
            9,
            L,
            (Ok(Step::Leave(7)), 7),
            (Err(Discard::HopPointer), 6),
        ),
        (
            62,
            63,
            P,
            (Ok(Step::Leave(7)), 63),
            (Err(Discard::HopPointer), 62),
        ),
        // C14-9:3
        (0, 0, P, (Ok(Step::Agent), 1), (Ok(Step::Agent), 1)),
        (1, 1, P, (Ok(Step::Agent), 2), (Ok(Step::Agent), 2)),
        (63, 63, P, (Ok(Step::Agent), 64), (Ok(Step::Agent), 64)),
        (
            2,
            2,
            L,
            (Ok(Step::Address(L)), 3),
            (Err(Discard::HopPointer), 3),
        ),
        // C14-9:4
        (1, 0, P, (Ok(Step::Agent), 1), (Ok(Step::Agent), 1)),
        (3, 2, L, (Ok(Step::Agent), 3), (Ok(Step::Agent), 3)),
        (64, 63, P, (Ok(Step::Agent), 64), (Ok(Step::Agent), 64)),
        // C14-9:5
        (
            4,
            2,
            P,
            (Err(Discard::HopPointer), 4),
            (Err(Discard::HopPointer), 4),
        ),
        (
            255,
            63,
            P,
            (Err(Discard::HopPointer), 255),
            (Err(Discard::HopPointer), 255),
        ),
        // C14-6
        (
            1,
            64,
            P,
            (Err(Discard::HopCount), 1),
            (Err(Discard::HopCount), 1),
        ),
        (
            0,
            255,
            P,
            (Err(Discard::HopCount), 0),
            (Err(Discard::HopCount), 0),
        ),
    ];
    for (pointer, count, to, switch, adapter) in table {
        let smp = smp(pointer, count, false, P, to);
        let (step, moved, written) = run(&smp, true);
        assert_eq!((step, moved), switch, "switch, {pointer} of {count}");
        // Where it came in is written down at every stop of the way, and nowhere else.
        let stop = pointer != 0 && pointer <= count && count < 64;
        let before = smp.return_hop(pointer).unwrap_or(0);
        assert_eq!(written, if stop { IN_PORT } else { before });
        let (step, moved, _written) = run(&smp, false);
        assert_eq!((step, moved), adapter, "adapter, {pointer} of {count}");
    }
}

#[test]
fn on_the_way_back() {
    const P: Lid = Lid::PERMISSIVE;
    const L: Lid = Lid::new(9);
    let none = Discard::HopPointer;
    let table = [
        // pointer, count, where it began; in a switch: step, pointer; in an adapter.
        // C14-13:1, after a way by local identifiers.
        (3, 2, P, (Ok(Step::Leave(7)), 2), (Err(none), 3)),
        (64, 63, P, (Ok(Step::Leave(2)), 63), (Err(none), 64)),
        // C14-13:2
        (2, 2, P, (Ok(Step::Leave(8)), 1), (Err(none), 2)),
        (63, 63, L, (Ok(Step::Leave(3)), 62), (Err(none), 63)),
        // C14-13:3
        (1, 1, P, (Ok(Step::Manager), 0), (Ok(Step::Manager), 0)),
        (1, 5, L, (Ok(Step::Address(L)), 0), (Err(none), 0)),
        // C14-13:4
        (0, 5, P, (Ok(Step::Manager), 0), (Ok(Step::Manager), 0)),
        (0, 0, L, (Ok(Step::Manager), 0), (Ok(Step::Manager), 0)),
        // C14-13:5
        (4, 2, P, (Err(none), 4), (Err(none), 4)),
        (255, 63, P, (Err(none), 255), (Err(none), 255)),
        // C14-6
        (
            1,
            64,
            P,
            (Err(Discard::HopCount), 1),
            (Err(Discard::HopCount), 1),
        ),
    ];
    for (pointer, count, from, switch, adapter) in table {
        let smp = smp(pointer, count, true, from, P);
        let (step, moved, written) = run(&smp, true);
        assert_eq!((step, moved), switch, "switch, {pointer} of {count}");
        assert_eq!(written, smp.return_hop(pointer).unwrap_or(0));
        let (step, moved, _written) = run(&smp, false);
        assert_eq!((step, moved), adapter, "adapter, {pointer} of {count}");
    }
}

#[test]
fn ports_that_there_are_not() {
    for port in [0, PORTS + 1, 255] {
        let mut out = smp(1, 3, false, Lid::PERMISSIVE, Lid::PERMISSIVE);
        out.set_initial_hop(2, port).unwrap();
        assert_eq!(arrive(&mut out, place(true)), Err(Discard::HopPort));
        let mut back = smp(3, 3, true, Lid::PERMISSIVE, Lid::PERMISSIVE);
        back.set_return_hop(2, port).unwrap();
        assert_eq!(arrive(&mut back, place(true)), Err(Discard::HopPort));
    }
}

/// A packet that has gone out comes back the same way: by every port by which it came in, from the
/// last to the first.
#[test]
fn there_and_back() {
    for count in 1..=63 {
        let mut packet = smp(1, count, false, Lid::PERMISSIVE, Lid::PERMISSIVE);
        let mut entries = Vec::new();
        for hop in 1..=count {
            let in_port = hop % PORTS + 1;
            let place = Place {
                is_switch: true,
                ports: PORTS,
                in_port,
            };
            let step = arrive(&mut packet, place);
            let out = packet.initial_hop(hop + 1);
            match hop == count {
                true => assert_eq!(step, Ok(Step::Agent)),
                false => assert_eq!(step.ok(), out.map(Step::Leave)),
            }
            entries.push(in_port);
        }
        oxib_softib_fabric::directed::turn(&mut packet);
        assert!(packet.is_returning());
        assert_eq!(packet.hop_pointer(), count);
        // The last has sent it; each one before it passes it on.
        entries.pop();
        while let Some(in_port) = entries.pop() {
            assert_eq!(arrive(&mut packet, place(true)), Ok(Step::Leave(in_port)));
        }
        assert_eq!(arrive(&mut packet, place(false)), Ok(Step::Manager));
        assert_eq!(packet.hop_pointer(), 0);
    }
}
