// SPDX-License-Identifier: GPL-2.0-only

//! The counters of an adapter's ports, as performance management reads and clears them.

mod subnet;

use oxib_softib_fabric::counters::PortCounts;
use oxib_softib_fabric::Outcome;
use oxib_wire::lid::Lid;
use oxib_wire::mad::{
    self,
    status,
    Header,
    Subject,
    METHOD_GET,
    METHOD_SEND,
    METHOD_SET, //
};
use oxib_wire::pma;
use oxib_wire::smp::{
    Smp,
    LEN, //
};
use subnet::adapter;

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
