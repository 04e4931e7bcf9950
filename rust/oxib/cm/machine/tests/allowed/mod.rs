// SPDX-License-Identifier: GPL-2.0-only

//! The transitions that there are between states of different names, whatever happens (IBTA 12.9,
//! 12.11). Taken from the diagrams of the specification and from what the C implementation does;
//! the test of the table of states and the fuzz target hold the machine to it.

use oxib_cm_machine::state::StateName;
use oxib_cm_machine::state::StateName::*;

/// The states that each state can go to.
pub const TRANSITIONS: [(StateName, &[StateName]); 16] = [
    (Idle, &[Listen, ReqSent, SidrReqSent]),
    (Listen, &[Idle]),
    (ReqSent, &[Idle, MraReqRcvd, RepRcvd, TimeWait]),
    (ReqRcvd, &[Idle, MraReqSent, RepSent, TimeWait]),
    (MraReqSent, &[Idle, RepSent, TimeWait]),
    (MraReqRcvd, &[Idle, RepRcvd, TimeWait]),
    (
        RepSent,
        &[Idle, MraRepRcvd, Established, DreqRcvd, TimeWait],
    ),
    (RepRcvd, &[Idle, MraRepSent, Established, TimeWait]),
    (MraRepSent, &[Idle, Established, TimeWait]),
    (MraRepRcvd, &[Idle, Established, DreqRcvd, TimeWait]),
    (Established, &[Idle, DreqSent, DreqRcvd, TimeWait]),
    (DreqSent, &[Idle, DreqRcvd, TimeWait]),
    (DreqRcvd, &[Idle, TimeWait]),
    (TimeWait, &[Idle]),
    (SidrReqSent, &[Idle]),
    (SidrReqRcvd, &[Idle]),
];

/// Returns whether there is such a transition.
#[allow(dead_code, reason = "each test uses its part")]
pub fn is_allowed(from: StateName, to: StateName) -> bool {
    TRANSITIONS
        .iter()
        .any(|(name, targets)| *name == from && targets.contains(&to))
}
