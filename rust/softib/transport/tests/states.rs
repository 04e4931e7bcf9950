// SPDX-License-Identifier: GPL-2.0-only

//! Unreliable connections, shared receives, the order of sends, and the states of a queue pair.

mod host;

use host::{
    add,
    invalidate,
    pattern,
    plain,
    read,
    received,
    statuses,
    talk,
    target,
    write,
    Frame,
    Host,
    Terms,
    ALL, //
};
use oxib_softib_transport::attributes::{
    Mtu,
    Sending,
    Service, //
};
use oxib_softib_transport::packet::{
    Body,
    Request,
    Tail, //
};
use oxib_softib_transport::time::Time;
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
use oxib_wire::immdt::ImmDt;
use oxib_wire::psn::Psn;

const IMMEDIATE: ImmDt = ImmDt::from_bytes([1, 2, 3, 4]);

/// A SEND of 8 bytes that is expected next.
fn forged() -> Frame {
    Frame {
        body: Body::Request(Request::SendOnly(Tail::Plain)),
        psn: Psn::wrapping(0x10),
        ack_request: true,
        solicited: false,
        payload: vec![0xee; 8],
    }
}

#[test]
fn unreliable_sends() {
    let mut one = Host::uc();
    one.post(plain(), pattern(1, 8));
    one.post(plain(), pattern(1, 300)).denied = true;
    one.post(plain(), pattern(1, 8));
    assert_eq!(one.run().len(), 1);
    let wanted = [Status::Success, Status::LocalProtection, Status::Flushed];
    assert_eq!(statuses(&one), wanted);
    assert_eq!(one.qp.state(), StateName::Sqe);
    // Flushed until it is told to go on.
    one.post(plain(), pattern(1, 8));
    assert_eq!(one.run(), []);
    one.qp.resume().expect("SQE to RTS");
    one.post(plain(), pattern(1, 8));
    assert_eq!(one.run().len(), 1);
    assert_eq!(statuses(&one)[3..], [Status::Flushed, Status::Success]);
    let never = [
        read(1, 0),
        add(1, 0, 1),
        Operation::Send(Tail::Invalidate(1)),
    ];
    for operation in never {
        let mut one = Host::uc();
        one.post(operation, vec![0; 8]);
        assert_eq!(one.run(), []);
        assert_eq!(statuses(&one), [Status::LocalOperation]);
    }
}

/// Whatever is wrong with a message, it is dropped and the next one is taken; the receive that it
/// had is the next one's.
#[test]
fn unreliable_requests() {
    let table = [
        (plain(), 257, 256),
        (write(2, 0), 8, 256),
        (write(2, 0), 600, 256),
        (Operation::Write(target(2, 0), Some(IMMEDIATE)), 8, 256),
    ];
    for (operation, length, room) in table {
        let (mut one, mut other) = (Host::uc(), Host::uc());
        other.post_receive(room);
        one.post(operation, vec![0; length]);
        one.post(plain(), pattern(1, 8));
        let sent = one.run();
        assert_eq!(other.receive(&sent), []);
        assert_eq!(received(&other), [Status::Success]);
        assert_eq!(other.world.received[0].1, pattern(1, 8));
        assert_eq!(other.qp.state(), StateName::Rts);
        assert!(other.world.events.is_empty());
    }
    // No receive.
    let (mut one, mut other) = (Host::uc(), Host::uc());
    one.post(plain(), pattern(1, 300));
    one.post(plain(), pattern(2, 300));
    let sent = one.run();
    other.receive(&sent[..1]);
    other.post_receive(300);
    other.receive(&sent[1..]);
    assert_eq!(other.world.received[0].1, pattern(2, 300));
    // A receive that cannot be written ends the connection.
    let mut other = Host::uc();
    other.post_receive(300).denied = true;
    other.receive(&sent);
    assert_eq!(received(&other), [Status::LocalProtection]);
    assert_eq!(other.qp.state(), StateName::Error);
}

#[test]
fn shared_receives() {
    let mut one = Host::rc();
    let mut other = Host::receiver(Service::Rc, true, &Terms::new(Mtu::Mtu256));
    other.post_receives(3, 256);
    one.post(plain(), pattern(1, 8));
    one.post(plain(), pattern(1, 257));
    talk(&mut one, &mut other);
    let wanted = [Event::CommunicationEstablished, Event::LastWqeReached];
    assert_eq!(other.world.events, wanted);
    // One was taken, one held; the third is another queue pair's.
    assert_eq!(received(&other), [Status::Success, Status::LocalLength]);
    assert_eq!(other.world.receives.len(), 1);
    // Once is enough.
    other.qp.fail(&mut other.world);
    assert_eq!(other.world.events, wanted);
}

#[test]
fn events_of_the_first_packet() {
    let mut one = Host::rc();
    let mut other = Host::receiver(Service::Rc, false, &Terms::new(Mtu::Mtu256));
    other.post_receives(2, 256);
    one.post(plain(), pattern(1, 8));
    one.post(plain(), pattern(1, 8));
    talk(&mut one, &mut other);
    assert_eq!(other.world.events, [Event::CommunicationEstablished]);
    assert_eq!(statuses(&one), [Status::Success; 2]);
}

#[test]
fn fences() {
    for (fence, at_once) in [(false, 2), (true, 1)] {
        let (mut one, mut other) = (Host::rc(), Host::rc());
        other.region(1, 0, 8);
        other.post_receive(8);
        one.post(read(1, 0), vec![0; 8]);
        one.post(plain(), pattern(1, 8)).work.fence = fence;
        let sent = one.run();
        assert_eq!(sent.len(), at_once);
        let answers = other.receive(&sent[..1]);
        assert_eq!(one.receive(&answers).len(), 2 - at_once);
    }
}

/// Registration is done in its turn, invalidation when all before it is complete, both once.
#[test]
fn local_operations() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.post_receives(3, 8);
    one.post(plain(), pattern(1, 8));
    one.post(Operation::Local(Local::Register), Vec::new());
    one.post(plain(), pattern(1, 8));
    one.post(invalidate(), Vec::new());
    one.post(plain(), pattern(1, 8)).work.signalled = false;
    one.post(invalidate(), Vec::new()).work.signalled = false;
    let sent = one.run();
    assert_eq!((sent.len(), one.world.locals.as_slice()), (2, &[1_u32][..]));
    assert_eq!(one.wait(), sent);
    let answers = other.receive(&sent);
    let more = one.receive(&answers);
    assert_eq!(
        (more.len(), one.world.locals.as_slice()),
        (1, &[1_u32, 3][..])
    );
    assert_eq!(one.world.retired, 4);
    let answers = other.receive(&more);
    one.receive(&answers);
    assert_eq!(one.world.locals, [1, 3, 5]);
    assert_eq!(statuses(&one), [Status::Success; 4]);
    assert_eq!(one.world.retired, 6);
}

#[test]
fn draining() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    other.post_receives(2, 1024);
    one.post(plain(), pattern(1, 1024));
    one.world.room = Some(2);
    let mut sent = one.run();
    assert!(!one.qp.is_draining());
    one.qp.drain(true).expect("RTS to SQD");
    assert!(one.qp.is_draining());
    one.post(plain(), pattern(1, 8));
    one.world.room = None;
    sent.extend(one.run());
    assert_eq!(sent.len(), 4);
    assert!(one.world.events.is_empty());
    // Attributes may be changed, which is a change from SQD to SQD.
    one.qp.drain(false).expect("SQD to SQD");
    assert!(one.qp.is_draining());
    let answers = other.receive(&sent);
    assert_eq!(one.receive(&answers), []);
    assert_eq!(one.world.events, [Event::SendQueueDrained]);
    assert_eq!(one.qp.state(), StateName::Sqd);
    assert!(!one.qp.is_draining());
    one.run();
    assert_eq!(one.world.events.len(), 1);
    one.qp.resume().expect("SQD to RTS");
    talk(&mut one, &mut other);
    assert_eq!(statuses(&one), [Status::Success; 2]);
}

#[test]
fn draining_an_unreliable_connection() {
    let mut one = Host::uc();
    one.post(plain(), pattern(1, 1024));
    one.world.room = Some(2);
    assert_eq!(one.run().len(), 2);
    one.qp.drain(true).expect("RTS to SQD");
    assert!(one.qp.is_draining());
    one.post(plain(), pattern(1, 8));
    one.world.room = None;
    assert_eq!(one.run().len(), 2);
    assert_eq!(one.world.events, [Event::SendQueueDrained]);
    assert!(!one.qp.is_draining());
}

/// The event is for those that ask for it (IBTA 10.3.1, `EN_SQD_ASYNC_NOTIFY`).
#[test]
fn draining_is_told_to_those_that_ask() {
    for mut one in [Host::rc(), Host::uc()] {
        one.qp.drain(false).expect("RTS to SQD");
        one.run();
        assert!(!one.qp.is_draining());
        assert!(one.world.events.is_empty());
        one.qp.resume().expect("SQD to RTS");
        one.qp.drain(true).expect("RTS to SQD");
        one.run();
        assert_eq!(one.world.events, [Event::SendQueueDrained]);
    }
}

/// A drained queue pair is given other terms, and sends by them when it goes on.
#[test]
fn terms_of_a_drained_queue_pair() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    let sending = Terms::new(Mtu::Mtu256).sending;
    other.region(1, 0, 8);
    one.qp.drain(false).expect("RTS to SQD");
    one.run();
    one.qp
        .set_sending(Sending {
            // The numbers of packets go on, whatever this says.
            psn: Psn::wrapping(0x9999),
            timeout: 10,
            retry_count: 1,
            max_reads: 1,
            ..sending
        })
        .expect("other terms");
    one.qp.resume().expect("SQD to RTS");
    one.post(read(1, 0), vec![0; 8]);
    one.post(read(1, 0), vec![0; 8]);
    let sent = one.run();
    // One READ at a time, from the next number on.
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].psn, sending.psn);
    // 4.096 microseconds times 2^10.
    let due = one.qp.due().expect("a timer");
    assert_eq!(due, Time::new(4096 << 10));
    // One repetition, and no more.
    assert_eq!(one.wait(), sent);
    one.wait();
    assert_eq!(statuses(&one), [Status::RetryExceeded, Status::Flushed]);
}

/// While a queue pair is being drained, its sends keep their terms: a READ that was lost is
/// repeated.
#[test]
fn terms_while_draining() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    let sending = Terms::new(Mtu::Mtu256).sending;
    other.region(1, 0, 8);
    one.post(read(1, 0), vec![0; 8]);
    assert_eq!(one.run().len(), 1);
    one.qp.drain(false).expect("RTS to SQD");
    let none = Sending {
        max_reads: 0,
        ..sending
    };
    let refused = oxib_softib_transport::Refused {
        state: StateName::Sqd,
    };
    assert_eq!(one.qp.set_sending(none), Err(refused));
    // The same terms are no change.
    assert_eq!(one.qp.set_sending(sending), Ok(()));
    let repeated = one.wait();
    assert_eq!(repeated.len(), 1);
    let answers = other.receive(&repeated);
    one.receive(&answers);
    assert_eq!(statuses(&one), [Status::Success]);
    assert!(!one.qp.is_draining());
    assert_eq!(one.qp.set_sending(none), Ok(()));
}

/// The peer may have another number of READs outstanding.
#[test]
fn reads_of_the_peer_of_a_drained_queue_pair() {
    for (number, state) in [(1, StateName::Error), (2, StateName::Sqd)] {
        let (mut one, mut other) = (Host::rc(), Host::rc());
        one.region(1, 0, 1024);
        one.qp.drain(false).expect("RTS to SQD");
        one.qp.set_max_reads_of_peer(number);
        other.post(read(1, 0), vec![0; 1024]);
        other.post(read(1, 0), vec![0; 1024]);
        let sent = other.run();
        one.receive(&sent);
        assert_eq!(one.qp.state(), state);
    }
}

#[test]
fn everything_is_flushed() {
    let mut one = Host::rc();
    one.post_receives(2, 8);
    one.post(plain(), pattern(1, 8));
    one.post(plain(), pattern(1, 8)).work.signalled = false;
    one.run();
    one.qp.fail(&mut one.world);
    assert_eq!(statuses(&one), [Status::Flushed; 2]);
    assert_eq!(received(&one), [Status::Flushed; 2]);
    // And what is posted later.
    one.post_receive(8);
    one.qp.receive_posted(&mut one.world);
    assert_eq!(received(&one).len(), 3);
    one.post(plain(), pattern(1, 8));
    one.run();
    assert_eq!(statuses(&one).len(), 3);
    // Nothing is taken any more.
    let frame = forged();
    assert_eq!(one.take(&frame), Verdict::Unexpected);
    // From the beginning.
    one.qp.reset();
    one.world = Default::default();
    assert_eq!(one.qp.state(), StateName::Reset);
    one.qp.init().expect("reset to init");
}

/// Between the pieces of a flush the shell can let go of its lock. What is posted meanwhile waits
/// behind what was there.
#[test]
fn a_flush_goes_on_in_pieces() {
    for mut one in [Host::rc(), Host::uc()] {
        one.post_receives(5, 8);
        for _ in 0..5 {
            one.post(plain(), pattern(1, 8));
        }
        one.world.flushes = Some(2);
        one.qp.fail(&mut one.world);
        // Of a reliable connection the oldest send is reported apart from those.
        assert!(statuses(&one).len() <= 3);
        assert_eq!(received(&one).len(), 2);
        assert_eq!(one.qp.state(), StateName::Error);
        one.post(plain(), pattern(1, 8));
        one.post_receive(8);
        for _ in 0..3 {
            one.world.flushes = Some(2);
            one.run();
        }
        assert_eq!(statuses(&one), [Status::Flushed; 6]);
        assert_eq!(received(&one), [Status::Flushed; 6]);
    }
}

#[test]
fn changes_of_state() {
    let terms = Terms::new(Mtu::Mtu256);
    let mut one = Host::rc();
    let refused = |state| oxib_softib_transport::Refused { state };
    let rts = Err(refused(StateName::Rts));
    assert_eq!(one.qp.init(), rts);
    assert_eq!(one.qp.ready_to_receive(terms.receiving), rts);
    assert_eq!(one.qp.ready_to_send(terms.sending), rts);
    one.qp.reset();
    let reset = Err(refused(StateName::Reset));
    assert_eq!(one.qp.ready_to_receive(terms.receiving), reset);
    assert_eq!(one.qp.ready_to_send(terms.sending), reset);
    assert_eq!(one.qp.drain(true), reset);
    assert_eq!(one.qp.resume(), reset);
    one.qp.init().expect("reset to init");
    one.qp.set_access(ALL);
    let frame = forged();
    assert_eq!(one.take(&frame), Verdict::Unexpected);
    one.qp.fail(&mut one.world);
    assert_eq!(one.qp.state(), StateName::Error);
}
