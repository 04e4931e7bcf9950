// SPDX-License-Identifier: GPL-2.0-only

//! Anything for an agent, anything for a switch: they answer or drop it, and stay what they are.

mod subnet;

use oxib_softib_fabric::{
    Cabled,
    Discard,
    OUT_LEN, //
};
use oxib_wire::icrc;
use oxib_wire::lid::Lid;
use oxib_wire::packet::{
    Head,
    Packet, //
};
use oxib_wire::smp::LEN;
use proptest::prelude::*;
use subnet::{
    adapter,
    build,
    no_counts,
    outgoing,
    switch, //
};

/// A datagram that is right in enough of its fields that each of the others is met.
fn datagram() -> impl Strategy<Value = [u8; LEN]> {
    let class = prop::sample::select(vec![0x01_u8, 0x81, 0x81, 0x04, 0x07]);
    let method = prop::sample::select(vec![1_u8, 2, 2, 5, 7, 0x81, 3]);
    let attribute = prop_oneof![0x10..0x20_u8, Just(0x20), Just(0x31), Just(2), any::<u8>()];
    let hops = prop_oneof![
        (0..6_u8, 0..5_u8).prop_map(|(pointer, count)| [pointer, count]),
        any::<[u8; 2]>()
    ];
    let modifier = prop_oneof![
        (0..4_u32),
        (0..4_u32).prop_map(|port| port << 16),
        any::<u32>()
    ];
    (
        (class, method, attribute, hops, modifier),
        any::<(bool, bool)>(),
        prop::collection::vec(any::<u8>(), LEN - 24),
    )
        .prop_map(
            |((class, method, attribute, hops, modifier), flags, rest)| {
                let mut bytes = [0; LEN];
                bytes[..4].copy_from_slice(&[1, class, 1, method]);
                bytes[4] = if flags.0 { 0x80 } else { 0 };
                bytes[6..8].copy_from_slice(&hops);
                bytes[17] = attribute;
                bytes[20..24].copy_from_slice(&modifier.to_be_bytes());
                bytes[24..].copy_from_slice(&rest);
                if flags.1 {
                    // Permissive at both ends, and small ports on the way.
                    bytes[32..36].fill(0xff);
                    for port in &mut bytes[128..] {
                        *port %= 5;
                    }
                }
                bytes
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn agents_take_anything(
        datagrams in prop::collection::vec(datagram(), 1..8),
        in_port in 1..5_u8,
        lane in prop::sample::select(vec![0_u8, 15]),
        queue_pair in 0..3_u32,
    ) {
        let mut node = adapter(0x100, 4);
        let mut switch = switch(0xa000, 4);
        for port in 1..=4 {
            node.carrier(port, true);
            switch.carrier(port, true, 0);
        }
        for (datagram, now) in datagrams.iter().zip(0..) {
            let mut answer = [0; LEN];
            node.process(in_port, datagram, Lid::new(1), now, &no_counts, &mut answer);
            let packet = build(&outgoing(lane, 1, 0xffff, queue_pair, 0x8001_0000), datagram);
            let packet = Packet::parse(&packet).unwrap();
            let mut out = [0; OUT_LEN];
            for received in [
                node.receive(in_port, &packet, now, &no_counts, &mut out),
                switch.receive(in_port, &packet, now, &no_counts, &mut out),
            ] {
                prop_assert!(received.answer.is_none() || received.discard.is_none());
                if let Some(answer) = received.answer {
                    prop_assert!((1..=4).contains(&answer.port));
                }
            }
            let received = switch.receive(in_port, &packet, now, &no_counts, &mut out);
            if let Some(answer) = received.answer {
                let sent = Packet::parse(&out[..answer.len]).unwrap();
                prop_assert!(sent.head.is_intact(icrc::crc32));
            }
            while switch.poll(now, &mut out).send.is_some() {}
            while node.poll(now, &mut out).send.is_some() {}
        }
        // Whatever was set: no port was given an address that no port can have.
        for port in 1..=4 {
            let lid = node.port(port).unwrap().info().lid();
            prop_assert!(lid == Lid::ZERO || lid.is_unicast());
        }
    }

    #[test]
    fn switches_take_anything(
        head in prop::collection::vec(any::<u8>(), 24..120),
        in_port: u8,
        seeded: bool,
    ) {
        let mut frame = head;
        frame.truncate(frame.len() / 4 * 4);
        if seeded {
            frame[0] &= 0xf0;
            frame[1] = 2;
            let words = (frame.len() / 4) as u16;
            frame[4..6].copy_from_slice(&words.to_be_bytes());
            frame[9] = 0;
        }
        let mut switch = switch(0xa000, 4);
        for port in 1..=4 {
            switch.carrier(port, true, 0);
        }
        if let Ok(head) = Head::parse(&frame) {
            match switch.forward(in_port, &head) {
                Ok(mask) => prop_assert!(!mask.is_empty() && (1..=4).contains(&in_port)),
                Err(discard) => prop_assert!(Discard::ALL.contains(&discard)),
            }
            for out in 0..6 {
                let _ = switch.lane(in_port, out, &head);
            }
        }
    }
}

#[test]
fn causes_are_numbered_as_they_are_listed() {
    for (index, discard) in Discard::ALL.iter().enumerate() {
        assert_eq!(discard.index(), index);
        assert_eq!(discard.to_string(), discard.name());
    }
    let mut names: Vec<_> = Discard::ALL.iter().map(|discard| discard.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Discard::COUNT);
}
