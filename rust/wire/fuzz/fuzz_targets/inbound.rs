// SPDX-License-Identifier: GPL-2.0-only

//! The address that peers are told: a datagram changes in that alone, its checksum is as right or
//! wrong as before, and a datagram to a group gives the address no more.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::encap::EtherType;
use oxib_wire::hwaddr::HwAddr;
use oxib_wire::inbound::{
    ask,
    choose,
    direct,
    tell,
    Asked, //
};
use oxib_wire::offload::sum;
use oxib_wire::qpn::Qpn;

/// Sums the addresses of an IPv6 datagram and its message; the two forms of zero become one.
fn total(datagram: &[u8]) -> u16 {
    let end = datagram
        .len()
        .min(40 + usize::from(u16::from_be_bytes([datagram[4], datagram[5]])));
    let bytes = [&datagram[8..40], &datagram[40..end]].concat();
    sum(&bytes) % u16::MAX
}

fn is_as_right(ethertype: EtherType, before: &[u8], after: &[u8]) {
    if ethertype == EtherType::Ipv6 {
        assert_eq!(total(before), total(after));
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((head, datagram)) = input.split_first_chunk::<24>() else {
        return;
    };
    let [what, a, b, c, address @ ..] = *head;
    let own = HwAddr::from_bytes(address);
    let qpn = Qpn::from_bytes([a, b, c]);
    let ethertype = [EtherType::Arp, EtherType::Ipv6, EtherType::Ipv4][usize::from(what) % 3];
    let known = what & 0x80 != 0;
    let count = u32::from(what) + 1;
    assert!(choose(&own.gid(), count) < count);

    let mut told = datagram.to_vec();
    if tell(ethertype, &mut told, own, qpn) {
        is_as_right(ethertype, datagram, &told);
        assert!(tell(ethertype, &mut told, own.with_qpn(qpn), own.qpn()));
        let changed = told
            .iter()
            .zip(datagram)
            .filter(|(one, other)| one != other);
        // Zero as a checksum is written in two ways.
        assert!(changed.count() <= 2);
    } else {
        assert_eq!(told, datagram);
    }

    let mut asked = datagram.to_vec();
    match ask(ethertype, &mut asked, own, known) {
        Asked::Nothing | Asked::Announced => assert_eq!(asked, datagram),
        Asked::Silent | Asked::Twice => {
            is_as_right(ethertype, datagram, &asked);
            assert_eq!(
                ask(ethertype, &mut asked.clone(), own, known),
                Asked::Nothing
            );
        }
    }

    let mut directed = datagram.to_vec();
    if direct(&mut directed) {
        is_as_right(EtherType::Ipv6, datagram, &directed);
    } else {
        assert_eq!(directed, datagram);
    }
});
