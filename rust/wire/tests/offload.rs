// SPDX-License-Identifier: GPL-2.0-only

//! Checksums and cut segments: bytes written out and added up by hand, and what must hold of any.

use oxib_wire::offload::{
    fill,
    fill_headers,
    is_right,
    sum,
    Cut,
    MAX_HEADER, //
};

/// From 192.168.0.1 to 192.168.0.199 by UDP, port 0 to port 0, no data. The words of the IPv4
/// header make 4747 without the checksum, those of UDP with its pseudo header make 823a.
const UDP4: [u8; 32] = [
    0x08, 0x00, 0x00, 0x00, // IPv4
    0x45, 0x00, 0x00, 0x1c, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0xb8, // UDP
    0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7, //
    0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x7d, 0xc5,
];

/// From fd00::1 to fd00::2 by TCP from port 1 to port 2: number 0x1000, FIN, PSH, ACK and CWR set,
/// window 0x100. The words make 5bbb with the pseudo header.
const TCP6: [u8; 64] = [
    0x86, 0xdd, 0x00, 0x00, // IPv6
    0x60, 0x00, 0x00, 0x00, 0x00, 0x14, 0x06, 0x40, // 20 bytes, TCP, 64 hops
    0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
    0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, //
    0x00, 0x01, 0x00, 0x02, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00,
    0x00, // from, to, number
    0x50, 0x99, 0x01, 0x00, 0xa4, 0x44, 0x00, 0x00,
];

/// The segment of `TCP6` in IPv4, from 10.0.0.1 to 10.0.0.2, with the identification 0xfffe. The
/// words of the header make d930, those of TCP with its pseudo header make 75b9.
const TCP4: [u8; 44] = [
    0x08, 0x00, 0x00, 0x00, // IPv4
    0x45, 0x00, 0x00, 0x28, 0xff, 0xfe, 0x40, 0x00, 0x40, 0x06, 0x26, 0xcf, // TCP
    10, 0, 0, 1, 10, 0, 0, 2, //
    0x00, 0x01, 0x00, 0x02, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00,
    0x00, // from, to, number
    0x50, 0x99, 0x01, 0x00, 0x8a, 0x46, 0x00, 0x00,
];

/// The offsets of the checksums, that of IPv4 and that of TCP or UDP.
const PLACES: [(&[u8], Option<usize>, usize); 3] = [
    (&UDP4, Some(14), 30),
    (&TCP6, None, 60),
    (&TCP4, Some(14), 40),
];

#[test]
fn checksums_are_filled_in() {
    for (right, ip, transport) in PLACES {
        let mut message = right.to_vec();
        for at in ip.into_iter().chain([transport]) {
            message[at..at + 2].copy_from_slice(&[0xa5, 0x5a]);
            assert!(!is_right(&message, sum));
        }
        fill(&mut message, sum);
        assert_eq!(message, right);
        assert!(is_right(&message, sum));
    }
}

#[test]
fn every_wrong_bit_is_seen() {
    // The encapsulation's reserved bytes, the time to live and the like are either covered or not
    // looked at; what is told from the message's end is data that no datagram has.
    for (right, ip, transport) in PLACES {
        let covered = if ip.is_some() {
            4..right.len()
        } else {
            12..right.len()
        };
        for bit in covered.start * 8..covered.end * 8 {
            let mut message = right.to_vec();
            message[bit / 8] ^= 0x80 >> (bit % 8);
            assert!(!is_right(&message, sum), "bit {bit} of {transport}");
        }
    }
}

#[test]
fn what_is_behind_the_datagram_does_not_count() {
    for (right, ..) in PLACES {
        let mut message = [right, &[1, 2, 3]].concat();
        assert!(is_right(&message, sum));
        fill(&mut message, sum);
        assert_eq!(message, [right, &[1, 2, 3]].concat());
    }
}

#[test]
fn other_messages_stay_as_they_are() {
    let mut fragment = UDP4;
    fragment[10..12].copy_from_slice(&[0x20, 0x00]);
    let mut icmp = UDP4;
    icmp[13] = 1;
    let mut unchecked = UDP4;
    unchecked[30..32].fill(0);
    for mut message in [fragment, icmp] {
        let before = message;
        fill(&mut message, sum);
        // The IPv4 header's own is filled in.
        assert_eq!(sum(&message[4..24]), 0xffff);
        assert_eq!(message[24..], before[24..]);
        assert!(!is_right(&message, sum));
    }
    assert!(!is_right(&unchecked, sum));
    let table: [&[u8]; 8] = [
        &[],
        &UDP4[..3],
        &UDP4[..10],
        &UDP4[..31],
        &TCP6[..43],
        &TCP6[..63],
        &[&[0x08, 0x06], &UDP4[2..]].concat(),
        &[&UDP4[..4], &[0x44], &UDP4[5..]].concat(),
    ];
    for message in table {
        let mut filled = message.to_vec();
        fill(&mut filled, sum);
        assert_eq!(filled, message);
        assert!(!is_right(message, sum));
    }
}

#[test]
fn an_odd_byte_is_the_high_one() {
    assert_eq!(sum(&[]), 0);
    assert_eq!(sum(&[0x12]), 0x1200);
    assert_eq!(sum(&[0xff, 0xff, 0x00, 0x01, 0x80]), 0x8001);
}

/// The segments of so many bytes of data, with checksums.
fn segments(header: &[u8], size: usize, length: usize) -> Vec<Vec<u8>> {
    let cut = Cut::new(header, size, length).expect("a header that can be cut");
    let data: Vec<u8> = (0..length).map(|byte| (byte * 7) as u8).collect();
    let segment = |number| {
        let mut room = [0; MAX_HEADER];
        let header = cut.write_header(number, &mut room);
        let data = &data[cut.data(number)];
        let mut message = [header, data].concat();
        fill(&mut message, sum);
        let mut alone = header.to_vec();
        fill_headers(&mut alone, sum(data));
        assert_eq!(alone, message[..alone.len()]);
        message
    };
    (0..cut.count()).map(segment).collect()
}

#[test]
fn a_segment_is_cut() {
    let pieces = segments(&TCP4, 100, 250);
    assert_eq!(
        pieces.iter().map(Vec::len).collect::<Vec<_>>(),
        [144, 144, 94]
    );
    // Length, identification, number, flags.
    let told = |piece: &[u8]| {
        let word = |at: usize| u16::from_be_bytes([piece[at], piece[at + 1]]);
        (word(6), word(8), word(30), piece[37])
    };
    let told: Vec<_> = pieces.iter().map(|piece| told(piece)).collect();
    assert_eq!(
        told,
        [
            (140, 0xfffe, 0x1000, 0x90),
            (140, 0xffff, 0x1064, 0x10),
            (90, 0x0000, 0x10c8, 0x19)
        ]
    );
    for piece in &pieces {
        assert!(is_right(piece, sum));
    }
    let data: Vec<u8> = pieces
        .iter()
        .flat_map(|piece| piece[44..].to_vec())
        .collect();
    assert_eq!(
        data,
        (0..250).map(|byte| (byte * 7) as u8).collect::<Vec<_>>()
    );
}

#[test]
fn one_of_ipv6_is_cut() {
    let pieces = segments(&TCP6, 10, 20);
    assert_eq!(pieces.len(), 2);
    for (piece, flags) in pieces.iter().zip([0x90, 0x19]) {
        assert_eq!(piece[8..10], [0, 30]);
        assert_eq!(piece[57], flags);
        assert!(is_right(piece, sum));
    }
}

#[test]
fn one_that_is_short_enough_stays_whole() {
    for length in [0, 1, 100] {
        let pieces = segments(&TCP4, 100, length);
        assert_eq!(pieces.len(), 1);
        assert_eq!(pieces[0][37], 0x99);
        assert!(is_right(&pieces[0], sum));
    }
}

#[test]
fn what_is_no_header_is_not_cut() {
    let longer = [&TCP4[..], &[0]].concat();
    let mut short_tcp = TCP4;
    short_tcp[36] = 0x40;
    let mut options = TCP4;
    options[36] = 0x60;
    let mut fragment = TCP4;
    fragment[10] = 0x20;
    let table: [&[u8]; 8] = [
        &[],
        &TCP4[..43],
        &longer,
        &UDP4,
        &short_tcp,
        &options,
        &fragment,
        &TCP6[..60],
    ];
    for header in table {
        assert!(Cut::new(header, 100, 1000).is_none());
    }
    assert!(Cut::new(&TCP4, 0, 1000).is_none());
    assert!(Cut::new(&TCP4, 0x10000, 1000).is_none());
}
