// SPDX-License-Identifier: GPL-2.0-only

//! Requests that the shell keeps back until one of the port's slots is free, and the time for
//! which they need one.

// The stage has more than is needed here.
#[allow(dead_code, reason = "each test uses its part")]
mod stage;

use oxib_cm_machine::actions::TimerAction;
use oxib_cm_machine::time::Time;

/// The states in which a request takes a slot.
const ASKING: [&str; 3] = ["ReqSent", "DreqSent", "SidrReqSent"];

/// The states in which a request is unanswered that takes no slot: the peer has asked for time,
/// or waits itself.
const PUT_OFF: [&str; 3] = ["MraReqRcvd", "RepSent", "MraRepRcvd"];

/// A time long after the stage's states are entered, in milliseconds.
const LATER: u64 = 5_000_000;

fn is_one_of(state: &str, names: &[&str]) -> bool {
    let name = state.split(',').next().expect("the first part");
    names.contains(&name)
}

#[test]
fn requests_that_need_a_slot() {
    for state in stage::STATES {
        let machine = stage::machine(state);
        let asks = is_one_of(state, &ASKING);
        assert_eq!(machine.is_in_flight(), asks, "{state}");
        let unanswered = asks || is_one_of(state, &PUT_OFF);
        assert_eq!(machine.asked_at().is_some(), unanswered, "{state}");
    }
}

#[test]
fn a_repeated_request_needs_none() {
    for state in ASKING {
        let mut machine = stage::machine(state);
        let due = machine.due().expect("requests are repeated");
        let _ = machine.timer(0, due);
        assert!(machine.awaits_answer(), "{state}");
        assert!(!machine.is_in_flight(), "{state}");
    }
}

#[test]
fn the_time_of_one_that_was_kept_back_begins_when_it_is_sent() {
    for state in ASKING {
        let mut machine = stage::machine(state);
        let (asked, due) = (machine.asked_at().unwrap(), machine.due().unwrap());
        let now = Time::new(LATER);
        let actions = machine.sent(now);
        let expected = now.after(due.since(asked));
        assert_eq!(machine.asked_at(), Some(now), "{state}");
        assert_eq!(machine.due(), Some(expected), "{state}");
        // Set also if nothing has changed: it was not before.
        assert_eq!(actions.timer, TimerAction::At(expected), "{state}");
        let again = machine.sent(now);
        assert_eq!(again.timer, TimerAction::At(expected), "{state}");
        assert!(actions.send.is_none() && actions.report.is_none());
        assert!(machine.is_in_flight(), "{state}");
    }
}

#[test]
fn nothing_else_is_kept_back() {
    for state in stage::STATES {
        if is_one_of(state, &ASKING) {
            continue;
        }
        let mut machine = stage::machine(state);
        let before = (machine.name(), machine.due(), machine.asked_at());
        let actions = machine.sent(Time::new(LATER));
        let after = (machine.name(), machine.due(), machine.asked_at());
        assert_eq!(before, after, "{state}");
        assert!(actions.send.is_none() && actions.report.is_none());
    }
}
