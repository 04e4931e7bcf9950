// SPDX-License-Identifier: GPL-2.0-only

//! Subnet management packets: whatever is read of an attribute is where it is written, and no path
//! is read past its end.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::mad;
use oxib_wire::pma::{
    ClassPortInfo,
    Performance,
    PortCounters,
    PortCountersExtended, //
};
use oxib_wire::smp::forwarding::{
    Linear,
    Multicast,
    MulticastBlock, //
};
use oxib_wire::smp::guid::GuidInfo;
use oxib_wire::smp::lanes::{
    SlToVl,
    VlArbitration, //
};
use oxib_wire::smp::led::LedInfo;
use oxib_wire::smp::node::{
    NodeDescription,
    NodeInfo, //
};
use oxib_wire::smp::notice::Notice;
use oxib_wire::smp::partition::PKeyTable;
use oxib_wire::smp::port::PortInfo;
use oxib_wire::smp::sm::SmInfo;
use oxib_wire::smp::switch::SwitchInfo;
use oxib_wire::smp::{
    Attribute,
    Smp,
    PATH_LEN, //
};

/// An attribute keeps its bytes.
fn check<A: Attribute>(smp: &Smp) {
    let attribute: A = smp.get();
    let mut copy = *smp;
    copy.put(&attribute);
    let length = size_of::<A>();
    assert_eq!(copy.data()[..length], smp.data()[..length]);
    assert!(copy.data()[length..].iter().all(|byte| *byte == 0));
}

/// Checks that tables built from what was read of them are as they were.
fn check_tables(smp: &Smp) {
    let keys: PKeyTable = smp.get();
    assert_eq!(PKeyTable::new(keys.keys()), keys);
    let guids: GuidInfo = smp.get();
    assert_eq!(GuidInfo::new(guids.guids()), guids);
    let groups: Multicast = smp.get();
    assert_eq!(Multicast::new(groups.ports()), groups);
    let mut lanes: SlToVl = smp.get();
    for level in 0..16 {
        let lane = lanes.lane(level);
        assert!(lane < 16);
        lanes.set_lane(level, lane);
    }
    assert_eq!(lanes, smp.get());
    let modifier = smp.header().modifier();
    let part = MulticastBlock::from_modifier(modifier);
    assert_eq!(MulticastBlock::from_modifier(part.modifier()), part);
}

fuzz_target!(
    |bytes: &[u8]| if let Some(bytes) = bytes.first_chunk::<{ mad::LEN }>() {
        let mut smp = *Smp::from_bytes(bytes);
        assert_eq!(smp.bytes(), *bytes);
        check::<NodeDescription>(&smp);
        check::<NodeInfo>(&smp);
        check::<SwitchInfo>(&smp);
        check::<PortInfo>(&smp);
        check::<GuidInfo>(&smp);
        check::<PKeyTable>(&smp);
        check::<SlToVl>(&smp);
        check::<VlArbitration>(&smp);
        check::<Linear>(&smp);
        check::<Multicast>(&smp);
        check::<SmInfo>(&smp);
        check::<LedInfo>(&smp);
        check::<Notice>(&smp);
        check_tables(&smp);
        let notice: Notice = smp.get();
        if let Some(details) = notice.details() {
            assert_eq!(details.number(), notice.number());
        }

        let (pointer, count) = (smp.hop_pointer(), smp.hop_count());
        let inside = usize::from(pointer) < PATH_LEN;
        assert_eq!(smp.initial_hop(pointer).is_some(), inside);
        assert_eq!(smp.set_return_hop(pointer, 7).is_some(), inside);
        smp.set_hop_pointer(count);
        smp.set_hop_count(pointer);
        assert_eq!((smp.hop_pointer(), smp.hop_count()), (count, pointer));

        let mut performance = *Performance::from_bytes(bytes);
        let class: ClassPortInfo = performance.get();
        performance.put(&class);
        assert_eq!(performance.get::<ClassPortInfo>(), class);
        performance = *Performance::from_bytes(bytes);
        let counters: PortCounters = performance.get();
        performance.put(&counters);
        assert_eq!(performance.get::<PortCounters>(), counters);
        performance = *Performance::from_bytes(bytes);
        let counters: PortCountersExtended = performance.get();
        performance.put(&counters);
        assert_eq!(performance.get::<PortCountersExtended>(), counters);
    }
);
