// SPDX-License-Identifier: GPL-2.0-only

//! Properties of whole packets: what is written is read back, what is changed on the way is seen,
//! and no length is believed. The judges here read byte offsets and make the CRC bit by bit.

use oxib_wire::aeth::{
    Aeth,
    NakCode,
    Syndrome, //
};
use oxib_wire::atomic::{
    AtomicAckEth,
    AtomicEth, //
};
use oxib_wire::bth::Transport;
use oxib_wire::deth::Deth;
use oxib_wire::gid::Gid;
use oxib_wire::grh::Addresses;
use oxib_wire::icrc;
use oxib_wire::immdt::{
    Ieth,
    ImmDt, //
};
use oxib_wire::lid::Lid;
use oxib_wire::opcode::Opcode;
use oxib_wire::packet::{
    Extension,
    Global,
    Head,
    Outgoing,
    Packet,
    PacketError,
    ETHERNET_MIN,
    MAX_HEADERS,
    MIN_LEN, //
};
use oxib_wire::pkey::Pkey;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;
use oxib_wire::reth::Reth;
use proptest::prelude::*;

/// CRC-32 a bit at a time.
fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(crc, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _bit| {
            if crc & 1 == 1 {
                (crc >> 1) ^ 0xedb8_8320
            } else {
                crc >> 1
            }
        })
    })
}

/// The invariant CRC of a packet without it, masked by offsets.
fn judge(packet: &[u8]) -> [u8; 4] {
    let mut masked = packet.to_vec();
    let bth = if packet[1] & 3 == 3 {
        masked[..8].fill(0xff);
        masked[8] |= 0x0f;
        masked[9..12].fill(0xff);
        masked[15] = 0xff;
        48
    } else {
        masked[0] |= 0xf0;
        8
    };
    masked[bth + 4] = 0xff;
    (!crc32(!0, &masked)).to_le_bytes()
}

fn opcode() -> impl Strategy<Value = Opcode> {
    let known: Vec<_> = (0..=u8::MAX)
        .filter_map(|number| Opcode::try_from(number).ok())
        .collect();
    prop::sample::select(known)
}

fn syndrome() -> impl Strategy<Value = Syndrome> {
    prop_oneof![
        (0..32_u8).prop_map(Syndrome::Ack),
        (0..32_u8).prop_map(Syndrome::RnrNak),
        Just(Syndrome::Nak(NakCode::RemoteAccess)),
    ]
}

/// The extended headers of an operation, with these values in them.
fn extension(opcode: Opcode, words: [u64; 3], key: u32, syndrome: Syndrome) -> Extension {
    let operation = opcode.operation;
    let [one, two, three] = words;
    Extension {
        deth: opcode
            .has_deth()
            .then(|| Deth::new(key, Qpn::from_bytes([1, 2, 3]))),
        reth: operation.has_reth().then(|| Reth::new(one, key, 77)),
        atomic: operation
            .has_atomic()
            .then(|| AtomicEth::new(one, key, two, three)),
        aeth: operation.has_aeth().then(|| Aeth::new(syndrome, key)),
        atomic_ack: operation.has_atomic_ack().then(|| AtomicAckEth::new(one)),
        immediate: operation
            .has_immediate()
            .then(|| ImmDt::from_bytes(key.to_be_bytes())),
        invalidate: operation.has_invalidate().then(|| Ieth::new(key)),
    }
}

fn transport() -> impl Strategy<Value = Transport> {
    let numbers = any::<(u16, [u8; 3], [u8; 3])>();
    (opcode(), any::<[bool; 3]>(), numbers).prop_map(|(opcode, flags, numbers)| Transport {
        opcode,
        solicited: flags[0],
        migrated: flags[1],
        pad: 0,
        pkey: Pkey::new(numbers.0),
        destination: Qpn::from_bytes(numbers.1),
        ack_request: flags[2],
        psn: Psn::from_bytes(numbers.2),
    })
}

fn global() -> impl Strategy<Value = Option<Global>> {
    prop::option::of(any::<(u8, u8, [u8; 16], [u8; 16])>().prop_flat_map(
        |(class, hops, sgid, dgid)| {
            (0..1_u32 << 20).prop_map(move |flow_label| Global {
                traffic_class: class,
                flow_label,
                hop_limit: hops,
                addresses: Addresses {
                    sgid: Gid::from_bytes(sgid),
                    dgid: Gid::from_bytes(dgid),
                },
            })
        },
    ))
}

fn outgoing() -> impl Strategy<Value = Outgoing> {
    (
        (0..16_u8, 0..16_u8, any::<u16>(), any::<u16>()),
        global(),
        transport(),
        (any::<[u64; 3]>(), any::<u32>(), syndrome()),
    )
        .prop_map(
            |((vl, sl, dlid, slid), global, transport, (words, key, syndrome))| Outgoing {
                vl,
                sl,
                dlid: Lid::new(dlid),
                slid: Lid::new(slid),
                global,
                transport,
                extension: extension(transport.opcode, words, key, syndrome),
            },
        )
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..100)
}

fn build(outgoing: &Outgoing, payload: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0xee; MAX_HEADERS + 4 + payload.len().next_multiple_of(4)];
    let length = outgoing.build(payload, &mut buffer, icrc::crc32).unwrap();
    buffer.truncate(length);
    buffer
}

/// Bits that switches and routers may change.
fn is_variant(index: usize, bit: u32, global: bool) -> bool {
    match (index, global) {
        (0, false) => bit >= 4,
        (12, false) => true,
        // The kind of the next header: what is left is another packet, with another right sum.
        (1, true) => bit >= 2,
        (0..=7 | 9..=11 | 15 | 52, true) => true,
        (8, true) => bit < 4,
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn what_is_written_is_read(outgoing in outgoing(), payload in payload()) {
        let bytes = build(&outgoing, &payload);
        prop_assert_eq!(bytes.len() % 4, 0);
        prop_assert_eq!(bytes.len() / 4, usize::from(u16::from_be_bytes([bytes[4], bytes[5]])));
        let (covered, crc) = bytes.split_at(bytes.len() - 4);
        prop_assert_eq!(crc, judge(covered));

        let packet = Packet::parse(&bytes).unwrap();
        prop_assert!(packet.head.is_intact(icrc::crc32));
        prop_assert!(packet.head.is_intact(crc32));
        prop_assert_eq!(packet.payload, &payload);
        prop_assert_eq!(packet.extension, outgoing.extension);
        let pad = packet.transport.pad;
        prop_assert_eq!(usize::from(pad), (4 - payload.len() % 4) % 4);
        prop_assert_eq!(packet.transport, Transport { pad, ..outgoing.transport });
        let link = packet.head.lrh.link();
        prop_assert_eq!((link.vl, link.sl), (outgoing.vl, outgoing.sl));
        prop_assert_eq!((link.dlid, link.slid), (outgoing.dlid, outgoing.slid));
        prop_assert_eq!(packet.head.grh.map(|grh| grh.addresses()),
            outgoing.global.map(|global| global.addresses));
        if let (Some(grh), Some(global)) = (packet.head.grh, outgoing.global) {
            let route = grh.route();
            prop_assert_eq!(usize::from(route.payload_length), bytes.len() - 48);
            prop_assert_eq!(
                (route.traffic_class, route.flow_label, route.hop_limit),
                (global.traffic_class, global.flow_label, global.hop_limit)
            );
        }
    }

    #[test]
    fn a_changed_bit_is_seen(
        outgoing in outgoing(),
        payload in payload(),
        index: prop::sample::Index,
        bit in 0..8_u32,
    ) {
        let mut bytes = build(&outgoing, &payload);
        let index = index.index(bytes.len());
        bytes[index] ^= 1 << bit;
        let allowed = is_variant(index, bit, outgoing.global.is_some());
        // What else the routes say is looked at as well.
        if let Ok(head) = Head::parse(&bytes) {
            prop_assert_eq!(head.is_intact(icrc::crc32), allowed);
        } else {
            prop_assert!(!allowed || index < 8);
        }
    }

    #[test]
    fn a_cut_packet_is_refused(
        outgoing in outgoing(),
        payload in payload(),
        cut: prop::sample::Index,
    ) {
        let bytes = build(&outgoing, &payload);
        let cut = cut.index(bytes.len());
        prop_assert!(Head::parse(&bytes[..cut]).is_err());
    }

    #[test]
    fn a_tail_is_only_what_fills_a_frame(
        outgoing in outgoing(),
        payload in payload(),
        tail in 1..64_usize,
    ) {
        let packet = build(&outgoing, &payload);
        let mut frame = packet.clone();
        frame.resize(packet.len() + tail, 0xee);
        match Head::parse(&frame) {
            Ok(head) => {
                prop_assert!(frame.len() <= ETHERNET_MIN);
                prop_assert_eq!(head.bytes, &packet);
            }
            Err(error) => {
                prop_assert!(frame.len() > ETHERNET_MIN);
                prop_assert_eq!(error, PacketError::Tail(tail));
            }
        }
    }

    /// Any length in place of the right one.
    #[test]
    fn a_length_that_lies_is_found(
        outgoing in outgoing(),
        payload in payload(),
        words in 0..0x800_u16,
    ) {
        let mut bytes = build(&outgoing, &payload);
        let right = usize::from(words) * 4 == bytes.len();
        bytes[4..6].copy_from_slice(&words.to_be_bytes());
        match Packet::parse(&bytes) {
            Ok(packet) if right => prop_assert_eq!(packet.payload, &payload),
            // A shorter one can hide in what might fill the frame, but not from the CRC, unless
            // the other route header has already told.
            Ok(packet) => {
                prop_assert!(bytes.len() <= ETHERNET_MIN && packet.head.bytes.len() >= MIN_LEN);
                prop_assert!(!packet.head.is_intact(icrc::crc32));
            }
            Err(_error) => prop_assert!(!right),
        }
    }

    #[test]
    fn crc_is_the_one_made_bit_by_bit(
        start: u32,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        split: prop::sample::Index,
    ) {
        prop_assert_eq!(icrc::crc32(start, &bytes), crc32(start, &bytes));
        let (one, two) = bytes.split_at(split.index(bytes.len() + 1));
        prop_assert_eq!(icrc::crc32(icrc::crc32(start, one), two), crc32(start, &bytes));
    }
}
