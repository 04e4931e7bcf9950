// SPDX-License-Identifier: GPL-2.0-only

//! The packets of each operation, byte by byte, written out by hand from the specification: base
//! transport header and extended headers, and how long the payload is.

mod host;

use host::{
    add,
    pattern,
    plain,
    read,
    swap,
    target,
    write,
    Frame,
    Host, //
};
use oxib_softib_transport::packet::{
    Atomic,
    Body,
    Request,
    Tail, //
};
use oxib_softib_transport::work::{
    Operation,
    Status, //
};
use oxib_wire::immdt::ImmDt;
use oxib_wire::lid::Lid;
use oxib_wire::opcode::{
    Opcode,
    Service, //
};
use oxib_wire::packet::Outgoing;
use oxib_wire::pkey::Pkey;
use oxib_wire::qpn::Qpn;

/// Bytes before the base transport header: a local route header.
const ROUTE: usize = 8;

/// A packet to queue pair 0x12 as text: its headers in hexadecimal, one word or one field of four
/// bytes after another, and the length of its payload.
fn text(service: Service, frame: &Frame) -> String {
    let outgoing = Outgoing {
        vl: 0,
        sl: 0,
        dlid: Lid::new(1),
        slid: Lid::new(2),
        global: None,
        transport: oxib_wire::bth::Transport {
            opcode: Opcode::new(service, frame.body.operation()).expect("the service has it"),
            solicited: frame.solicited,
            migrated: false,
            pad: 0,
            pkey: Pkey::new(0xffff),
            destination: Qpn::new(0x12).expect("24 bits"),
            ack_request: frame.ack_request,
            psn: frame.psn,
        },
        extension: frame.body.extension(),
    };
    let mut buffer = [0; 128];
    let layout = outgoing
        .write(frame.payload.len(), &mut buffer)
        .expect("it fits");
    // The headers are whole words.
    let words = buffer[ROUTE..layout.headers].chunks_exact(4).map(|word| {
        let word = word.try_into().expect("four bytes");
        format!("{:08x}", u32::from_be_bytes(word))
    });
    let words: Vec<_> = words.collect();
    format!("{} + {}", words.join(" "), frame.payload.len())
}

fn texts(service: Service, frames: &[Frame]) -> Vec<String> {
    frames.iter().map(|frame| text(service, frame)).collect()
}

/// One operation of an RC queue pair with numbers from 0x10 on, MTU 256, and all packets of
/// both directions.
fn check_rc(operation: Operation, buffer: Vec<u8>, requests: &[&str], answers: &[&str]) -> Host {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.region(0x0102_0304, 0x1000, 0x1000).bytes[8..16]
        .copy_from_slice(&0x1122_3344_5566_7788_u64.to_ne_bytes());
    other.post_receive(0x1000);
    one.post(operation, buffer);
    let sent = one.run();
    assert_eq!(texts(Service::Rc, &sent), requests);
    let answered = other.receive(&sent);
    assert_eq!(texts(Service::Rc, &answered), answers);
    assert_eq!(one.receive(&answered), []);
    assert_eq!(one.world.completions, [(0, Status::Success)]);
    assert_eq!(one.qp.due(), None);
    one
}

const IMMEDIATE: ImmDt = ImmDt::from_bytes([0xca, 0xfe, 0xba, 0xbe]);

#[test]
fn sends() {
    check_rc(
        plain(),
        pattern(1, 600),
        &[
            "0000ffff 00000012 00000010 + 256",
            "0100ffff 00000012 00000011 + 256",
            "0200ffff 00000012 80000012 + 88",
        ],
        &["1100ffff 00000012 00000012 1f000001 + 0"],
    );
    check_rc(
        Operation::Send(Tail::Immediate(IMMEDIATE)),
        pattern(1, 512),
        &[
            "0000ffff 00000012 00000010 + 256",
            "0300ffff 00000012 80000011 cafebabe + 256",
        ],
        &["1100ffff 00000012 00000011 1f000001 + 0"],
    );
    check_rc(
        Operation::Send(Tail::Invalidate(0x0102_0304)),
        pattern(1, 257),
        &[
            "0000ffff 00000012 00000010 + 256",
            // Three bytes of pad.
            "1630ffff 00000012 80000011 01020304 + 1",
        ],
        &["1100ffff 00000012 00000011 1f000001 + 0"],
    );
}

#[test]
fn sends_in_one_packet() {
    let table = [
        (plain(), 256, "0400ffff 00000012 80000010 + 256"),
        (plain(), 0, "0400ffff 00000012 80000010 + 0"),
        (plain(), 2, "0420ffff 00000012 80000010 + 2"),
        (
            Operation::Send(Tail::Immediate(IMMEDIATE)),
            4,
            "0500ffff 00000012 80000010 cafebabe + 4",
        ),
        (
            Operation::Send(Tail::Invalidate(0x0102_0304)),
            4,
            "1700ffff 00000012 80000010 01020304 + 4",
        ),
    ];
    let answer = "1100ffff 00000012 00000010 1f000001 + 0";
    for (operation, length, request) in table {
        check_rc(operation, pattern(1, length), &[request], &[answer]);
    }
}

#[test]
fn solicited_events() {
    let mut one = Host::rc();
    one.post(plain(), pattern(1, 300)).work.solicited = true;
    one.post(write(1, 0), pattern(1, 4)).work.solicited = true;
    let immediate = Operation::Write(target(1, 0), Some(IMMEDIATE));
    one.post(immediate, pattern(1, 4)).work.solicited = true;
    assert_eq!(
        texts(Service::Rc, &one.run()),
        [
            // Where a receive ends, and nowhere else.
            "0000ffff 00000012 00000010 + 256",
            "0280ffff 00000012 80000011 + 44",
            "0a00ffff 00000012 80000012 00000000 00000000 00000001 00000004 + 4",
            "0b80ffff 00000012 80000013 00000000 00000000 00000001 00000004 cafebabe + 4",
        ]
    );
}

#[test]
fn writes() {
    check_rc(
        write(0x0102_0304, 0x1010),
        pattern(1, 700),
        &[
            "0600ffff 00000012 00000010 00000000 00001010 01020304 000002bc + 256",
            "0700ffff 00000012 00000011 + 256",
            "0800ffff 00000012 80000012 + 188",
        ],
        &["1100ffff 00000012 00000012 1f000001 + 0"],
    );
    check_rc(
        Operation::Write(target(0x0102_0304, 0x1010), Some(IMMEDIATE)),
        pattern(1, 512),
        &[
            "0600ffff 00000012 00000010 00000000 00001010 01020304 00000200 + 256",
            "0900ffff 00000012 80000011 cafebabe + 256",
        ],
        &["1100ffff 00000012 00000011 1f000001 + 0"],
    );
    // Of nothing: the key need not be one.
    check_rc(
        write(0x6666, 0xdead_beef_0000_0001),
        Vec::new(),
        &["0a00ffff 00000012 80000010 deadbeef 00000001 00006666 00000000 + 0"],
        &["1100ffff 00000012 00000010 1f000001 + 0"],
    );
}

#[test]
fn reads() {
    check_rc(
        read(0x0102_0304, 0x1008),
        vec![0; 600],
        &["0c00ffff 00000012 00000010 00000000 00001008 01020304 00000258 + 0"],
        &[
            "0d00ffff 00000012 00000010 1f000001 + 256",
            "0e00ffff 00000012 00000011 + 256",
            "0f00ffff 00000012 00000012 1f000001 + 88",
        ],
    );
    check_rc(
        read(0x0102_0304, 0x1008),
        vec![0; 512],
        &["0c00ffff 00000012 00000010 00000000 00001008 01020304 00000200 + 0"],
        &[
            "0d00ffff 00000012 00000010 1f000001 + 256",
            "0f00ffff 00000012 00000011 1f000001 + 256",
        ],
    );
    check_rc(
        read(0x6666, 0),
        Vec::new(),
        &["0c00ffff 00000012 00000010 00000000 00000000 00006666 00000000 + 0"],
        &["1000ffff 00000012 00000010 1f000001 + 0"],
    );
}

#[test]
fn atomics() {
    let one = check_rc(
        swap(
            0x0102_0304,
            0x1008,
            0xaaaa_aaaa_0000_0001,
            0xbbbb_bbbb_0000_0002,
        ),
        vec![0; 8],
        &["1300ffff 00000012 00000010 00000000 00001008 01020304 \
             bbbbbbbb 00000002 aaaaaaaa 00000001 + 0"],
        &["1200ffff 00000012 00000010 1f000001 11223344 55667788 + 0"],
    );
    assert_eq!(
        one.world.sends[0].buffer,
        0x1122_3344_5566_7788_u64.to_ne_bytes()
    );
    check_rc(
        add(0x0102_0304, 0x1008, 5),
        vec![0; 8],
        &["1400ffff 00000012 00000010 00000000 00001008 01020304 \
             00000000 00000005 00000000 00000000 + 0"],
        &["1200ffff 00000012 00000010 1f000001 11223344 55667788 + 0"],
    );
}

#[test]
fn arithmetic_of_atomics() {
    let swap = Atomic::CompareSwap {
        compare: 1,
        swap: 9,
    };
    assert_eq!([swap.apply(1), swap.apply(2)], [9, 2]);
    assert_eq!(Atomic::FetchAdd { add: 2 }.apply(u64::MAX), 1);
}

#[test]
fn unreliable_connection() {
    let mut one = Host::uc();
    one.post(plain(), pattern(1, 300));
    one.post(plain(), pattern(1, 4));
    one.post(write(0x0102_0304, 0x1010), pattern(1, 600));
    let immediate = Operation::Write(target(0x0102_0304, 0x1010), Some(IMMEDIATE));
    one.post(immediate, pattern(1, 4));
    let sent = one.run();
    assert_eq!(
        texts(Service::Uc, &sent),
        [
            "2000ffff 00000012 00000010 + 256",
            "2200ffff 00000012 00000011 + 44",
            "2400ffff 00000012 00000012 + 4",
            "2600ffff 00000012 00000013 00000000 00001010 01020304 00000258 + 256",
            "2700ffff 00000012 00000014 + 256",
            "2800ffff 00000012 00000015 + 88",
            "2b00ffff 00000012 00000016 00000000 00001010 01020304 00000004 cafebabe + 4",
        ]
    );
    // Complete with their last packets, and never acknowledged.
    assert_eq!(one.world.completions.len(), 4);
    let mut other = Host::uc();
    other.region(0x0102_0304, 0x1010, 600);
    other.post_receives(3, 300);
    assert_eq!(other.receive(&sent), []);
    assert_eq!(other.world.received.len(), 3);
}

/// A long message asks for an acknowledgement every 16 packets, and no more than 64 are under
/// way.
#[test]
fn window_of_a_long_message() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.post_receive(80 * 256);
    one.post(plain(), pattern(1, 80 * 256));
    let sent = one.run();
    let asking: Vec<_> = (1..)
        .zip(&sent)
        .filter(|(_, frame)| frame.ack_request)
        .map(|(number, _)| number)
        .collect();
    assert_eq!((sent.len(), asking), (64, vec![16, 32, 48, 64]));
    // All that has come together is acknowledged at once.
    let answers = other.receive(&sent[..34]);
    assert_eq!(
        texts(Service::Rc, &answers),
        ["1100ffff 00000012 00000031 1f000000 + 0"]
    );
    let more = one.receive(&answers);
    assert_eq!(more.len(), 16);
    let answers = other.receive(&sent[34..]);
    assert_eq!(one.receive(&answers), []);
    let answers = other.receive(&more);
    assert_eq!(one.receive(&answers), []);
    assert_eq!(one.world.completions, [(0, Status::Success)]);
    assert_eq!(other.world.received[0].1, pattern(1, 80 * 256));
}

#[test]
fn a_lost_request() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.post_receive(1024);
    one.post(plain(), pattern(1, 1024));
    let sent = one.run();
    // The second of four is lost: the third is answered, the fourth in silence.
    assert_eq!(other.receive(&sent[..1]), []);
    let answers = other.receive(&sent[2..3]);
    assert_eq!(
        texts(Service::Rc, &answers),
        ["1100ffff 00000012 00000011 60000000 + 0"]
    );
    assert_eq!(other.receive(&sent[3..]), []);
    let again = one.receive(&answers);
    assert_eq!(again, sent[1..]);
    // The same answer once more changes nothing.
    assert_eq!(one.receive(&answers), []);
    let answers = other.receive(&again);
    assert_eq!(
        texts(Service::Rc, &answers),
        ["1100ffff 00000012 00000013 1f000001 + 0"]
    );
    one.receive(&answers);
    assert_eq!(one.world.completions, [(0, Status::Success)]);
}

#[test]
fn a_receiver_that_is_not_ready() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    one.post(plain(), pattern(1, 300));
    let sent = one.run();
    let answers = other.receive(&sent);
    // Timer 12.
    assert_eq!(
        texts(Service::Rc, &answers),
        ["1100ffff 00000012 00000010 2c000000 + 0"]
    );
    assert_eq!(one.receive(&answers), []);
    other.post_receive(300);
    // Timer 12 is 0.64 ms.
    assert_eq!(one.qp.due().map(|due| due.get()), Some(640_000));
    assert_eq!(one.wait(), sent);
    let answers = other.receive(&sent);
    one.receive(&answers);
    assert_eq!(one.world.completions, [(0, Status::Success)]);
}

/// The answer to a WRITE with immediate data: its last packet alone needs a receive.
#[test]
fn a_write_that_waits_for_a_receive() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.region(1, 0, 600);
    let operation = Operation::Write(target(1, 0), Some(IMMEDIATE));
    one.post(operation, pattern(3, 600));
    let sent = one.run();
    let answers = other.receive(&sent);
    assert_eq!(
        texts(Service::Rc, &answers),
        ["1100ffff 00000012 00000012 2c000000 + 0"]
    );
    one.receive(&answers);
    other.post_receive(0);
    let again = one.wait();
    assert_eq!(again, sent[2..]);
    let answers = other.receive(&again);
    one.receive(&answers);
    assert_eq!(one.world.completions, [(0, Status::Success)]);
    assert_eq!(other.world.received[0].0.length, 600);
    assert_eq!(other.world.regions[&1].bytes, pattern(3, 600));
}

/// A packet of the data of a READ is lost: the request is repeated for the rest alone, once.
#[test]
fn a_read_restarted_in_the_middle() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.region(1, 0x1000, 0x1000).bytes = pattern(5, 0x1000);
    one.post(read(1, 0x1000), vec![0; 1100]);
    let sent = one.run();
    let answers = other.receive(&sent);
    assert_eq!(answers.len(), 5);
    let again = one.receive(&[answers[0].clone(), answers[2].clone(), answers[3].clone()]);
    assert_eq!(
        texts(Service::Rc, &again),
        ["0c00ffff 00000012 00000011 00000000 00001100 00000001 0000034c + 0"]
    );
    let answers = other.receive(&again);
    assert_eq!(
        texts(Service::Rc, &answers),
        [
            "0d00ffff 00000012 00000011 1f000001 + 256",
            "0e00ffff 00000012 00000012 + 256",
            "0e00ffff 00000012 00000013 + 256",
            "0f00ffff 00000012 00000014 1f000001 + 76",
        ]
    );
    assert_eq!(one.receive(&answers), []);
    assert_eq!(one.world.completions, [(0, Status::Success)]);
    assert_eq!(one.world.sends[0].buffer, pattern(5, 0x1000)[..1100]);
}

/// Answers to READs and atomics go out in the order of the requests, and one acknowledgement after
/// them is enough for the rest.
#[test]
fn order_of_answers() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.region(1, 0, 1024);
    other.post_receives(2, 4);
    one.post(plain(), pattern(1, 4));
    one.post(read(1, 0), vec![0; 300]);
    one.post(add(1, 0, 1), vec![0; 8]);
    one.post(plain(), pattern(1, 4));
    let sent = one.run();
    let answers = other.receive(&sent);
    assert_eq!(
        texts(Service::Rc, &answers),
        [
            "0d00ffff 00000012 00000011 1f000004 + 256",
            "0f00ffff 00000012 00000012 1f000004 + 44",
            "1200ffff 00000012 00000013 1f000004 00000000 00000000 + 0",
            "1100ffff 00000012 00000014 1f000004 + 0",
        ]
    );
    // Each acknowledges what is before it.
    one.receive(&answers[..1]);
    assert_eq!(one.world.retired, 1);
    one.receive(&answers[1..2]);
    assert_eq!(one.world.retired, 2);
    one.receive(&answers[2..]);
    assert_eq!(one.world.retired, 4);
}

/// An answer behind a READ without an answer of its own asks for the READ once more.
#[test]
fn an_answer_that_is_missing() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.region(1, 0, 1024);
    other.post_receive(4);
    one.post(read(1, 0), vec![0; 4]);
    one.post(plain(), pattern(1, 4));
    let sent = one.run();
    let answers = other.receive(&sent);
    assert_eq!(answers.len(), 2);
    let again = one.receive(&answers[1..]);
    assert_eq!(again, sent);
    let answers = other.receive(&again);
    assert_eq!(one.receive(&answers), []);
    assert_eq!(one.world.retired, 2);
    assert_eq!(other.world.received.len(), 1);
}

/// An atomic operation with a lost answer is done once, and answered the same again.
#[test]
fn a_repeated_atomic() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.region(1, 0, 8);
    one.post(add(1, 0, 7), vec![0; 8]);
    one.post(add(1, 0, 7), vec![0; 8]);
    let sent = one.run();
    let lost = other.receive(&sent);
    let again = one.wait();
    assert_eq!(again, sent);
    let answers = other.receive(&again);
    assert_eq!(
        answers.iter().map(|frame| frame.body).collect::<Vec<_>>(),
        { lost.iter().map(|frame| frame.body).collect::<Vec<_>>() }
    );
    one.receive(&answers);
    let found: Vec<_> = one.world.sends.iter().map(|post| post.buffer[0]).collect();
    assert_eq!(found, [0, 7]);
    assert_eq!(other.world.atomics, 2);
}

/// No more READs and atomics are outstanding than may be.
#[test]
fn reads_that_wait() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.region(1, 0, 8);
    for _ in 0..6 {
        one.post(read(1, 0), vec![0; 8]);
    }
    let sent = one.run();
    assert_eq!(sent.len(), 4);
    let answers = other.receive(&sent);
    let more = one.receive(&answers[..1]);
    assert_eq!(more.len(), 1);
    assert!(matches!(more[0].body, Body::Request(Request::Read(_))));
    let answers = [&answers[1..], &other.receive(&more)].concat();
    let more = one.receive(&answers);
    let answers = other.receive(&more);
    one.receive(&answers);
    assert_eq!(one.world.retired, 6);
}

/// The data of a READ does not count in the window of messages, but its numbers are used up: of
/// those under way it has to be known which is older.
#[test]
fn numbers_of_reads() {
    let mut one = Host::rc();
    one.post(read(1, 0), vec![0; 1000 * 256]);
    one.post(plain(), pattern(1, 50 * 256));
    assert_eq!(one.run().len(), 1 + 50);

    // Each takes a quarter of the numbers.
    let mut one = Host::rc();
    for _ in 0..3 {
        one.post(read(1, 0), Vec::new()).work.length = 1 << 30;
    }
    let sent = one.run();
    assert_eq!(
        texts(Service::Rc, &sent),
        ["0c00ffff 00000012 00000010 00000000 00000000 00000001 40000000 + 0"]
    );
}
