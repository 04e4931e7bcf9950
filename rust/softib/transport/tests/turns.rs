// SPDX-License-Identifier: GPL-2.0-only

//! Answers to the peer and sends of the queue pair's own, when there is not room for all of them.

mod host;

use host::{
    pattern,
    plain,
    read,
    received,
    statuses,
    talk,
    Frame,
    Host, //
};
use oxib_softib_transport::packet::Body;
use oxib_softib_transport::work::Status;

/// The length of a message of sixty packets, which can all be under way.
const LONG: usize = 60 * 256;

/// Makes two hosts; the first has been asked for a long READ, and has a long send.
fn busy() -> (Host, Host) {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    one.region(1, 0, LONG).bytes = pattern(1, LONG);
    other.post(read(1, 0), vec![0; LONG]);
    other.post_receive(LONG);
    for frame in other.run() {
        one.take(&frame);
    }
    one.post(plain(), pattern(2, LONG));
    (one, other)
}

/// Runs with room for so many packets, and returns how many answers and how many requests left.
fn run_with(host: &mut Host, room: u32) -> (usize, usize, Vec<Frame>) {
    host.world.room = Some(room);
    let sent = host.run();
    let is_answer = |frame: &&Frame| matches!(frame.body, Body::Response(_));
    let answers = sent.iter().filter(is_answer).count();
    (answers, sent.len() - answers, sent)
}

#[test]
fn answers_and_sends_share_the_room() {
    for (room, runs) in [(1, 20), (2, 10), (3, 10), (32, 3)] {
        let (mut one, _other) = busy();
        let (mut answers, mut requests) = (0, 0);
        for _ in 0..runs {
            let (more_answers, more_requests, _) = run_with(&mut one, room);
            answers += more_answers;
            requests += more_requests;
        }
        assert_eq!(answers + requests, (room * runs) as usize);
        assert!(
            answers.abs_diff(requests) <= 1,
            "{room}: {answers}, {requests}"
        );
    }
}

/// A half that is left alone has all the room.
#[test]
fn one_half_alone_has_all_the_room() {
    let (mut one, _other) = busy();
    let (mut answers, mut requests) = (0, 0);
    for _ in 0..4 {
        let (more_answers, more_requests, _) = run_with(&mut one, 32);
        answers += more_answers;
        requests += more_requests;
    }
    assert_eq!((answers, requests), (60, 60));
}

#[test]
fn what_was_sent_in_turns_arrives() {
    let (mut one, mut other) = busy();
    for _ in 0..10 {
        let (_, _, sent) = run_with(&mut one, 7);
        let answers = other.receive(&sent);
        for frame in &answers {
            one.take(frame);
        }
    }
    one.world.room = None;
    talk(&mut one, &mut other);
    assert_eq!(statuses(&one), [Status::Success]);
    assert_eq!(statuses(&other), [Status::Success]);
    assert_eq!(other.world.sends[0].buffer, pattern(1, LONG));
    assert_eq!(other.world.received[0].1, pattern(2, LONG));
}

/// A send that fails ends the queue pair, but not before the peer has the answers for which there
/// is room.
#[test]
fn a_failing_send_takes_no_answers_with_it() {
    for (room, answered) in [(None, 4), (Some(3), 3)] {
        let (mut one, mut other) = (Host::rc(), Host::rc());
        one.region(1, 0, 4 * 256).bytes = pattern(1, 4 * 256);
        other.post(read(1, 0), vec![0; 4 * 256]);
        for frame in other.run() {
            one.take(&frame);
        }
        one.post(plain(), pattern(2, 8)).denied = true;
        one.world.room = room;
        let sent = one.run();
        assert_eq!(statuses(&one), [Status::LocalProtection]);
        assert_eq!(sent.len(), answered);
        other.receive(&sent);
        assert_eq!(other.world.completions.len(), answered / 4);
    }
}

/// An answer that fails after the send has no influence on the status of the send.
#[test]
fn a_failing_send_keeps_its_status() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    for rkey in [1, 2] {
        one.region(rkey, 0, 8);
        other.post(read(rkey, 0), vec![0; 8]);
    }
    for frame in other.run() {
        one.take(&frame);
    }
    // The first READ is answered before the send is tried, the second one after it.
    one.world.regions.remove(&2);
    one.post(plain(), pattern(2, 8)).denied = true;
    let sent = one.run();
    assert_eq!(statuses(&one), [Status::LocalProtection]);
    other.receive(&sent);
    assert_eq!(statuses(&other), [Status::Success, Status::RemoteAccess]);
}

/// A receive that was too short for the peer's message says so, though a send fails before the peer
/// is told. The data of a READ of the peer's are due first, and there may be no room behind them.
#[test]
fn a_failing_send_keeps_the_status_of_the_receive() {
    for (room, answers) in [(None, 3), (Some(2), 2)] {
        let (mut one, mut other) = (Host::rc(), Host::rc());
        one.region(1, 0, 2 * 256);
        one.post_receives(2, 4);
        other.post(read(1, 0), vec![0; 2 * 256]);
        other.post(plain(), pattern(1, 8));
        for frame in other.run() {
            one.take(&frame);
        }
        one.post(plain(), pattern(2, 8)).denied = true;
        one.world.room = room;
        let sent = one.run();
        assert_eq!(sent.len(), answers);
        assert_eq!(statuses(&one), [Status::LocalProtection]);
        assert_eq!(received(&one), [Status::LocalLength, Status::Flushed]);
        other.receive(&sent);
        let ends = [Status::Success, Status::RemoteInvalidRequest];
        assert_eq!(statuses(&other), ends[..answers - 1]);
    }
}

/// Answers go first where there is room for all.
#[test]
fn the_peer_is_answered_first() {
    let (mut one, mut other) = (Host::rc(), Host::rc());
    one.post_receives(2, 8);
    for _ in 0..2 {
        other.post(plain(), pattern(1, 8));
        for frame in other.run() {
            one.take(&frame);
        }
        one.post(plain(), pattern(2, 8));
        let sent = one.run();
        assert_eq!(sent.len(), 2);
        assert!(matches!(sent[0].body, Body::Response(_)));
        assert!(matches!(sent[1].body, Body::Request(_)));
    }
}
