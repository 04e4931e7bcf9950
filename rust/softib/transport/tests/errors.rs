// SPDX-License-Identifier: GPL-2.0-only

//! The end of work requests, and all else that is told, for every error that the specification
//! names (IBTA 9.9, 11.6).

mod host;

use host::{
    add,
    invalidate,
    pattern,
    plain,
    read,
    received,
    statuses,
    swap,
    talk,
    target,
    write,
    Frame,
    Host,
    Terms, //
};
use oxib_softib_transport::attributes::{
    Mtu,
    RemoteAccess,
    Service,
    MAX_MESSAGE, //
};
use oxib_softib_transport::packet::{
    Acknowledgement,
    Body,
    Remote,
    Request,
    Response,
    Tail, //
};
use oxib_softib_transport::work::{
    Event,
    Local,
    Operation,
    Status, //
};
use oxib_softib_transport::{
    StateName,
    Verdict, //
};
use oxib_wire::aeth::{
    NakCode,
    Syndrome, //
};
use oxib_wire::immdt::ImmDt;
use oxib_wire::psn::Psn;

const IMMEDIATE: ImmDt = ImmDt::from_bytes([1, 2, 3, 4]);

fn with(mut change: impl FnMut(&mut Terms)) -> Host {
    let mut terms = Terms::new(Mtu::Mtu256);
    change(&mut terms);
    Host::new(Service::Rc, &terms)
}

/// A good send, the one that is looked at, and another good one; the peer has three receives of
/// 256 bytes and a region of 1024 bytes at 0x1000. What becomes of the middle one, of the second
/// receive, and what the peer's consumer is told.
#[track_caller]
fn refused(operation: Operation, length: usize, ends: [Status; 2], events: &[Event]) {
    let mut other = Host::rc();
    other.region(1, 0x1000, 1024);
    refused_by(&mut other, operation, length, ends, events);
}

#[track_caller]
fn refused_by(
    other: &mut Host,
    operation: Operation,
    length: usize,
    ends: [Status; 2],
    events: &[Event],
) {
    let mut one = Host::rc();
    other.post_receives(3, 256);
    one.post(plain(), pattern(1, 8));
    one.post(operation, vec![0; length]);
    one.post(plain(), pattern(1, 8));
    talk(&mut one, other);
    let [send, receive] = ends;
    assert_eq!(statuses(&one), [Status::Success, send, Status::Flushed]);
    assert_eq!(received(other), [Status::Success, receive, Status::Flushed]);
    assert_eq!(other.world.events, events);
    for host in [&one, other] {
        assert_eq!(host.qp.state(), StateName::Error);
        assert_eq!(host.qp.due(), None);
    }
}

const ACCESS: &[Event] = &[Event::AccessError];
const REQUEST: &[Event] = &[Event::RequestError];

#[test]
fn remote_keys() {
    let ends = [Status::RemoteAccess, Status::Flushed];
    let immediate = Operation::Write(target(2, 0x1000), Some(IMMEDIATE));
    // A key that is none, and bounds on both sides.
    refused(write(2, 0x1000), 8, ends, ACCESS);
    refused(write(1, 0x0fff), 8, ends, ACCESS);
    refused(write(1, 0x1001), 1024, ends, ACCESS);
    refused(write(1, u64::MAX), 600, ends, ACCESS);
    refused(immediate, 8, ends, ACCESS);
    refused(read(2, 0x1000), 8, ends, ACCESS);
    refused(read(1, 0x1001), 1024, ends, ACCESS);
    refused(add(2, 0x1000, 1), 8, ends, ACCESS);
    refused(swap(1, 0x1400, 1, 2), 8, ends, ACCESS);
}

#[test]
fn remote_access_of_a_region() {
    let ends = [Status::RemoteAccess, Status::Flushed];
    for operation in [write(1, 0x1000), read(1, 0x1000), add(1, 0x1000, 1)] {
        let mut other = Host::rc();
        other.region(1, 0x1000, 1024).access = RemoteAccess::default();
        refused_by(&mut other, operation, 8, ends, ACCESS);
    }
}

#[test]
fn remote_access_of_a_queue_pair() {
    let ends = [Status::RemoteInvalidRequest, Status::Flushed];
    for operation in [write(1, 0x1000), read(1, 0x1000), add(1, 0x1000, 1)] {
        let mut other = Host::rc();
        other.region(1, 0x1000, 1024);
        other.qp.set_access(RemoteAccess::default());
        refused_by(&mut other, operation, 8, ends, REQUEST);
    }
}

#[test]
fn invalid_requests() {
    let ends = [Status::RemoteInvalidRequest, Status::Flushed];
    refused(add(1, 0x1004, 1), 8, ends, REQUEST);
    for operation in [read(1, 0x1000), add(1, 0x1000, 1)] {
        let mut other = with(|terms| terms.receiving.max_reads = 0);
        other.region(1, 0x1000, 1024);
        refused_by(&mut other, operation, 8, ends, REQUEST);
    }
}

#[test]
fn lengths() {
    let ends = [Status::RemoteInvalidRequest, Status::LocalLength];
    refused(plain(), 257, ends, &[]);
    refused(plain(), 1024, ends, &[]);
    // Of several packets, the last of which has no room.
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.post_receive(519);
    one.post(plain(), pattern(1, 520));
    talk(&mut one, &mut other);
    assert_eq!(statuses(&one), [Status::RemoteInvalidRequest]);
    assert_eq!(received(&other), [Status::LocalLength]);
}

#[test]
fn invalidations() {
    let operation = Operation::Send(Tail::Invalidate(9));
    let ends = [Status::RemoteAccess, Status::MemoryManagement];
    refused(operation, 8, ends, &[]);
}

#[test]
fn local_key_of_a_receive() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.post_receive(8).denied = true;
    other.post_receive(8);
    one.post(plain(), pattern(1, 8));
    talk(&mut one, &mut other);
    assert_eq!(statuses(&one), [Status::RemoteOperation]);
    assert_eq!(received(&other), [Status::LocalProtection, Status::Flushed]);
    assert!(other.world.events.is_empty());
}

/// A send that fails here is reported in its place: those before it are finished first.
#[track_caller]
fn fails_here(operation: Operation, length: usize, change: impl Fn(&mut Host), status: Status) {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.post_receives(3, 256);
    other.region(1, 0x1000, 1024);
    one.post(plain(), pattern(1, 8));
    one.post(operation, vec![0; length]);
    change(&mut one);
    one.post(plain(), pattern(1, 8));
    talk(&mut one, &mut other);
    assert_eq!(statuses(&one), [Status::Success, status, Status::Flushed]);
    assert_eq!(one.qp.state(), StateName::Error);
    // The peer knows nothing of it, and has even done the last one if the answer is what failed.
    let fetch = matches!(operation, Operation::Read(_) | Operation::Atomic(..));
    let done = if fetch && length >= 8 { 2 } else { 1 };
    assert_eq!(received(&other), vec![Status::Success; done]);
    assert_eq!(other.qp.state(), StateName::Rts);
}

#[test]
fn local_errors() {
    let deny = |host: &mut Host| host.world.sends[1].denied = true;
    let keep = |_: &mut Host| {};
    fails_here(plain(), 8, deny, Status::LocalProtection);
    fails_here(write(1, 0x1000), 600, deny, Status::LocalProtection);
    fails_here(read(1, 0x1000), 600, deny, Status::LocalProtection);
    fails_here(add(1, 0x1000, 1), 8, deny, Status::LocalProtection);
    let register = Operation::Local(Local::Register);
    fails_here(register, 0, deny, Status::MemoryManagement);
    fails_here(invalidate(), 0, deny, Status::MemoryManagement);
    fails_here(add(1, 0x1000, 1), 4, keep, Status::LocalLength);
    let long = |host: &mut Host| host.world.sends[1].work.length = MAX_MESSAGE + 1;
    fails_here(plain(), 0, long, Status::LocalLength);
}

#[test]
fn reads_that_were_not_agreed() {
    let mut one = with(|terms| terms.sending.max_reads = 0);
    one.post(read(1, 0), vec![0; 8]);
    assert_eq!(one.run(), []);
    assert_eq!(statuses(&one), [Status::LocalOperation]);
    // More than the peer takes.
    let mut one = with(|terms| terms.sending.max_reads = 3);
    let mut other = with(|terms| terms.receiving.max_reads = 2);
    other.region(1, 0, 8);
    (0..3).for_each(|_| {
        one.post(read(1, 0), vec![0; 8]);
    });
    talk(&mut one, &mut other);
    let wanted = [
        Status::Success,
        Status::Success,
        Status::RemoteInvalidRequest,
    ];
    assert_eq!(statuses(&one), wanted);
    assert_eq!(other.world.events, REQUEST);
}

#[test]
fn retries() {
    for retry_count in 0..=7 {
        let mut one = with(|terms| terms.sending.retry_count = retry_count);
        one.post(plain(), pattern(1, 8));
        one.post(plain(), pattern(1, 8));
        let sent = one.run();
        for _ in 0..retry_count {
            assert_eq!(one.wait(), sent);
        }
        assert_eq!(one.wait(), []);
        assert_eq!(statuses(&one), [Status::RetryExceeded, Status::Flushed]);
        // 4.096 µs × 2^14 each.
        let each = 67_108_864;
        assert_eq!(one.now.get(), each * (u64::from(retry_count) + 1));
    }
}

#[test]
fn retries_begin_anew_with_progress() {
    let mut one = with(|terms| terms.sending.retry_count = 1);
    let mut other = Host::rc();
    other.post_receives(8, 8);
    (0..4).for_each(|_| {
        one.post(plain(), pattern(1, 8));
    });
    let mut sent = one.run();
    for _ in 0..4 {
        // Only the first arrives, and is acknowledged.
        let answers = other.receive(&sent[..1]);
        assert_eq!(one.receive(&answers), []);
        sent = one.qp.due().map_or_else(Vec::new, |_| one.wait());
    }
    assert_eq!(statuses(&one), [Status::Success; 4]);
}

#[test]
fn no_time_out() {
    let mut one = with(|terms| terms.sending.timeout = 0);
    one.post(plain(), pattern(1, 8));
    assert_eq!(one.run().len(), 1);
    assert_eq!(one.qp.due(), None);
}

#[test]
fn receivers_that_are_never_ready() {
    for rnr_retry in 0..=6 {
        let mut one = with(|terms| terms.sending.rnr_retry = rnr_retry);
        let mut other = Host::rc();
        one.post(plain(), pattern(1, 8));
        one.post(plain(), pattern(1, 8));
        let mut sent = one.run();
        for _ in 0..rnr_retry {
            let answers = other.receive(&sent);
            assert_eq!(answers.len(), 1);
            assert_eq!(one.receive(&answers), []);
            sent = one.wait();
        }
        let answers = other.receive(&sent);
        assert_eq!(one.receive(&answers), []);
        assert_eq!(statuses(&one), [Status::RnrRetryExceeded, Status::Flushed]);
        assert_eq!(other.qp.state(), StateName::Rts);
    }
}

#[test]
fn a_receiver_that_is_ready_at_last() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    one.post(plain(), pattern(1, 8));
    let mut sent = one.run();
    for _ in 0..100 {
        let answers = other.receive(&sent);
        assert_eq!(one.receive(&answers), []);
        sent = one.wait();
    }
    other.post_receive(8);
    let answers = other.receive(&sent);
    one.receive(&answers);
    assert_eq!(statuses(&one), [Status::Success]);
}

/// A packet made by hand.
fn forged(body: Body, psn: u32, length: usize) -> Frame {
    Frame {
        body,
        psn: Psn::wrapping(psn),
        ack_request: true,
        solicited: false,
        payload: vec![0xee; length],
    }
}

const DONE: Acknowledgement = Acknowledgement {
    syndrome: Syndrome::Ack(31),
    msn: 0,
};

#[test]
fn answers_that_are_none() {
    let answer = |response, length| forged(Body::Response(response), 0x10, length);
    let table = [
        (plain(), answer(Response::ReadOnly(DONE), 8)),
        (plain(), answer(Response::Atomic(DONE, 0), 0)),
        (read(1, 0), answer(Response::ReadOnly(DONE), 7)),
        (read(1, 0), answer(Response::ReadOnly(DONE), 9)),
        (read(1, 0), answer(Response::ReadFirst(DONE), 8)),
        (read(1, 0), answer(Response::Atomic(DONE, 0), 0)),
        (add(1, 0, 1), answer(Response::ReadOnly(DONE), 8)),
    ];
    for (operation, frame) in table {
        let mut one = Host::rc();
        one.post(operation, vec![0; 8]);
        one.run();
        one.take(&frame);
        assert_eq!(statuses(&one), [Status::BadResponse], "{frame:?}");
        assert_eq!(one.qp.state(), StateName::Error);
    }
}

/// Answers to what was never sent, or is answered already, change nothing.
#[test]
fn ghosts() {
    let mut one = Host::rc();
    one.post(plain(), pattern(1, 8));
    one.run();
    let nak = |code| Acknowledgement {
        syndrome: Syndrome::Nak(code),
        msn: 0,
    };
    for acknowledgement in [
        DONE,
        nak(NakCode::SequenceError),
        nak(NakCode::RemoteAccess),
    ] {
        for psn in [0xf, 0x12, 0x80_0010] {
            let frame = forged(
                Body::Response(Response::Acknowledge(acknowledgement)),
                psn,
                0,
            );
            assert_eq!(one.take(&frame), Verdict::Duplicate);
        }
    }
    assert_eq!(one.run(), []);
    assert_eq!(one.qp.state(), StateName::Rts);
    assert_eq!(one.world.retired, 0);
}

/// Requests out of place, or of a length that they cannot have.
#[test]
fn requests_that_are_none() {
    let remote = |length| Remote {
        address: 0,
        rkey: 1,
        length,
    };
    let first = Request::SendFirst;
    let last = Request::SendLast(Tail::Plain);
    let table: [&[(Request, usize)]; 12] = [
        &[(Request::SendMiddle, 256)],
        &[(last, 1)],
        &[(Request::WriteMiddle, 256)],
        &[(Request::WriteLast(None), 1)],
        &[(first, 255)],
        &[(first, 256), (first, 256)],
        &[(first, 256), (last, 0)],
        &[(first, 256), (Request::Read(remote(8)), 0)],
        &[(Request::SendOnly(Tail::Plain), 257)],
        &[(Request::WriteOnly(remote(8), None), 7)],
        &[(Request::WriteFirst(remote(0)), 256)],
        &[
            (Request::WriteFirst(remote(300)), 256),
            (Request::WriteLast(None), 45),
        ],
    ];
    for requests in table {
        let mut host = Host::rc();
        host.region(1, 0, 1024);
        host.post_receive(1024);
        let mut psn = 0x10;
        for (request, length) in requests {
            host.take(&forged(Body::Request(*request), psn, *length));
            psn += 1;
        }
        let answers = host.run();
        let last = answers.last().expect("an answer");
        let nak = Acknowledgement {
            syndrome: Syndrome::Nak(NakCode::InvalidRequest),
            msn: 0,
        };
        assert_eq!(last.body, Body::Response(Response::Acknowledge(nak)));
        assert_eq!(last.psn.get(), psn - 1, "{requests:?}");
        assert_eq!(host.world.events, REQUEST);
        assert_eq!(host.qp.state(), StateName::Error);
        assert_eq!(received(&host), [Status::Flushed]);
    }
}

/// A refusal comes after the answers to earlier requests.
#[test]
fn a_refusal_waits_for_the_data_before_it() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.region(1, 0, 1024);
    one.post(read(1, 0), vec![0; 1024]);
    one.post(write(2, 0), vec![0; 8]);
    let sent = one.run();
    other.world.room = Some(2);
    let answers = other.receive(&sent);
    assert_eq!(answers.len(), 2);
    assert_eq!(other.qp.state(), StateName::Rts);
    other.world.room = None;
    let answers = [answers, other.run()].concat();
    assert_eq!(answers.len(), 5);
    assert_eq!(other.qp.state(), StateName::Error);
    one.receive(&answers);
    assert_eq!(statuses(&one), [Status::Success, Status::RemoteAccess]);
}

/// The answer to a READ is lost, and then something behind it is refused: no answer will come.
#[test]
fn a_refusal_behind_a_lost_answer() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.region(1, 0, 1024);
    one.post(read(1, 0), vec![0; 8]);
    one.post(write(2, 0), vec![0; 8]);
    let sent = one.run();
    let answers = other.receive(&sent);
    one.receive(&answers[1..]);
    assert_eq!(statuses(&one), [Status::Flushed, Status::RemoteAccess]);
}

/// The memory goes while it is being read: a new READ is refused, a repeated one is not answered.
#[test]
fn memory_that_goes() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.region(1, 0, 1024);
    one.post(read(1, 0), vec![0; 1024]);
    let sent = one.run();
    other.world.room = Some(2);
    let answers = other.receive(&sent);
    other.world.regions.clear();
    other.world.room = None;
    let answers = [answers, other.run()].concat();
    assert_eq!(answers.len(), 3);
    one.receive(&answers);
    assert_eq!(statuses(&one), [Status::RemoteAccess]);
    assert_eq!(other.world.events, ACCESS);

    let mut other = Host::rc();
    other.region(1, 0, 1024);
    assert_eq!(other.receive(&sent).len(), 4);
    other.world.regions.clear();
    assert_eq!(other.receive(&sent), []);
    assert_eq!(other.qp.state(), StateName::Rts);
}
