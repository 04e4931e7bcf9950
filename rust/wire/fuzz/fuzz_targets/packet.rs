// SPDX-License-Identifier: GPL-2.0-only

//! Whole packets: one that is taken is built again from what was read of it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::icrc;
use oxib_wire::packet::{
    Global,
    Head,
    Outgoing,
    Packet,
    ETHERNET_MIN,
    MIN_LEN, //
};

/// Checks that a packet can be built again, all but reserved bits, congestion marks, pad and CRC.
fn check(packet: &Packet<'_>) {
    let link = packet.head.lrh.link();
    let outgoing = Outgoing {
        vl: link.vl,
        sl: link.sl,
        dlid: link.dlid,
        slid: link.slid,
        global: packet.head.grh.map(|grh| Global {
            traffic_class: grh.route().traffic_class,
            flow_label: grh.route().flow_label,
            hop_limit: grh.route().hop_limit,
            addresses: grh.addresses(),
        }),
        transport: packet.transport,
        extension: packet.extension,
    };
    let mut buffer = [0; 8192];
    let length = outgoing
        .build(packet.payload, &mut buffer, icrc::crc32)
        .unwrap();
    let built = Packet::parse(&buffer[..length]).unwrap();
    assert!(built.head.is_intact(icrc::crc32));
    assert_eq!(built.head.lrh.link().next, link.next);
    assert_eq!(built.payload, packet.payload);
    assert_eq!(built.extension, packet.extension);
    assert_eq!(length, packet.head.bytes.len());
}

fuzz_target!(|frame: &[u8]| if let Ok(head) = Head::parse(frame) {
    assert!(head.bytes.len() >= MIN_LEN && head.bytes.len() % 4 == 0);
    assert!(head.bytes.len() == frame.len() || frame.len() <= ETHERNET_MIN);
    let _ = head.is_intact(icrc::crc32);
    if let Ok(packet) = Packet::of(head) {
        check(&packet);
    }
});
