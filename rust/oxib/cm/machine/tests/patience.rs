// SPDX-License-Identifier: GPL-2.0-only

//! Limits of the time for which a peer holds a connection that it does not finish, whatever it
//! asks for.

// The stage has more than is needed here.
#[allow(dead_code, reason = "each test uses its part")]
mod stage;

use oxib_cm_machine::input::{
    Incoming,
    QpType,
    Req, //
};
use oxib_cm_machine::state::StateName;
use oxib_cm_machine::time::Time;
use oxib_cm_machine::Machine;
use oxib_wire::cm::mra::Acknowledged;

const BEGIN: Time = Time::new(1000);

/// The longest try, wait of a peer that asks for time, and time-wait, in milliseconds.
const LONGEST_TRY: u64 = 1 << 14;
const LONGEST_WAIT: u64 = 300_000;
const LONGEST_TIME_WAIT: u64 = 300_000;

/// A connection of a peer that asks for most: 2^23 ms for a message, 16 of them.
fn greedy(max_retries: u8) -> Machine {
    let req = Req {
        local_response_timeout: 31,
        max_retries,
        ack_timeout: 31,
        ..stage::req(QpType::Rc)
    };
    let (mut machine, _) = Machine::accept_req(stage::LOCAL, &req, BEGIN);
    let replied = machine.send_rep(&stage::rep_param(), BEGIN);
    assert!(replied.is_ok());
    machine
}

/// Lets time pass until the machine waits no more; for how long that was.
fn waited(machine: &mut Machine) -> u64 {
    let mut now = BEGIN;
    while let Some(due) = machine.due() {
        now = due;
        let _ = machine.timer(0, now);
    }
    now.since(BEGIN)
}

#[test]
fn for_its_rtu() {
    for max_retries in [0, 15] {
        let tries = u64::from(max_retries) + 1;
        assert_eq!(waited(&mut greedy(max_retries)), tries * LONGEST_TRY);
    }
}

#[test]
fn when_it_asks_for_time() {
    let mut machine = greedy(15);
    let mra = Incoming::Mra {
        sender: stage::PEER,
        of: Acknowledged::Rep,
        service_timeout: 31,
    };
    let _ = machine.receive(&mra, BEGIN.after(1000));
    assert_eq!(machine.name(), StateName::MraRepRcvd);
    assert_eq!(waited(&mut machine), LONGEST_WAIT);
}

#[test]
fn for_its_drep_and_its_last_packets() {
    let mut machine = greedy(15);
    assert!(machine.established().is_ok());
    assert!(machine.send_dreq(20, BEGIN).is_ok());
    while machine.name() == StateName::DreqSent {
        let due = machine.due().expect("a DREQ is waited for");
        let _ = machine.timer(0, due);
    }
    assert_eq!(machine.name(), StateName::TimeWait);
    let ended = BEGIN.after(16 * LONGEST_TRY);
    assert_eq!(machine.due(), Some(ended.after(LONGEST_TIME_WAIT)));
}
