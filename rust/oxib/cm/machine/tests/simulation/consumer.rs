// SPDX-License-Identifier: GPL-2.0-only

//! Consumers: what they do about what is reported to them.

use oxib_cm_machine::actions::Report;

use crate::random::Random;

/// The kinds of consumers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Temper {
    /// Consumers that want the connection, answer soon, and disconnect at some time.
    Willing,
    /// Consumers that want the connection and disconnect at some time, but take longer to answer
    /// than the peer would wait.
    Slow,
    /// Consumers that may do anything.
    Any,
}

/// An action of a consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    SendRep,
    SendRtu,
    SendDreq,
    SendDrep,
    SendRej,
    PrepareMra,
    Established,
    Destroy,
    DestroyNoMemory,
}

/// Actions, each with the milliseconds after which it is done.
pub type Plan = Vec<(Call, u64)>;

/// Time within which a willing consumer answers, in milliseconds.
const SOON: u64 = 30;

/// Time for which no peer waits, by far, in milliseconds.
const LATE: u64 = 200_000;

impl Temper {
    /// Returns the actions of a consumer that has made an identifier, without waiting for a
    /// report.
    pub fn begin(self, random: &mut Random) -> Plan {
        // The end, if nothing else has been.
        let mut plan = vec![(Call::Destroy, 2_000_000 + random.below(1000))];
        if self == Temper::Any && random.percent(20) {
            plan.push((Call::Destroy, random.below(20_000)));
        }
        if self == Temper::Any && random.percent(5) {
            plan.push((Call::SendRej, random.below(20_000)));
        }
        plan
    }

    /// Returns the actions of a consumer after a report.
    pub fn answer(self, report: Report, random: &mut Random) -> Plan {
        match self {
            Temper::Willing => willing(report, SOON, random),
            Temper::Slow => slow(report, random),
            Temper::Any => any(report, random),
        }
    }

    /// Returns the actions of the active consumer after it has accepted a REP.
    pub fn connected(self, random: &mut Random) -> Plan {
        match self {
            Temper::Willing | Temper::Slow => vec![(Call::SendDreq, 10_000 + random.below(10_000))],
            Temper::Any => leave(random),
        }
    }
}

fn willing(report: Report, longest: u64, random: &mut Random) -> Plan {
    let soon = random.below(longest);
    match report {
        Report::ReqReceived => vec![(Call::SendRep, soon)],
        Report::RepReceived => vec![(Call::SendRtu, soon)],
        Report::RtuReceived | Report::UserEstablished if random.percent(30) => {
            vec![(Call::SendDreq, 10_000 + random.below(10_000))]
        }
        Report::DreqReceived => vec![(Call::SendDrep, soon)],
        _ => Plan::new(),
    }
}

fn slow(report: Report, random: &mut Random) -> Plan {
    // Within the time for which an MRA asks.
    let mut plan = match report {
        Report::DreqReceived => willing(report, SOON, random),
        _ => willing(report, 60_000, random),
    };
    if random.percent(30) {
        plan.push((Call::PrepareMra, random.below(SOON)));
    }
    plan
}

fn delay(random: &mut Random) -> u64 {
    let longest = random.choose(&[1, SOON, 5_000, LATE]);
    random.below(longest)
}

/// Ends a connection in one of the ways.
fn leave(random: &mut Random) -> Plan {
    let after = delay(random);
    match random.below(4) {
        0 => Plan::new(),
        1 => vec![(Call::Destroy, after)],
        _ => vec![(Call::SendDreq, after)],
    }
}

fn any(report: Report, random: &mut Random) -> Plan {
    let after = delay(random);
    let mut plan = match report {
        Report::ReqReceived => answer(Call::SendRep, after, random),
        Report::RepReceived => answer(Call::SendRtu, after, random),
        Report::RtuReceived | Report::UserEstablished => leave(random),
        Report::DreqReceived => match random.below(4) {
            0 => vec![(Call::Destroy, after)],
            _ => vec![(Call::SendDrep, after)],
        },
        Report::ReqError(_)
        | Report::RepError(_)
        | Report::DreqError(_)
        | Report::RejReceived
        | Report::TimewaitExit => vec![(Call::Destroy, after)],
        _ => Plan::new(),
    };
    if random.percent(10) {
        plan.push((Call::PrepareMra, random.below(3000)));
    }
    plan
}

/// Answers a request in one of the ways.
fn answer(accept: Call, after: u64, random: &mut Random) -> Plan {
    match random.below(12) {
        0 => vec![(Call::SendRej, after)],
        1 => vec![(Call::Destroy, after)],
        2 => vec![(Call::DestroyNoMemory, 0)],
        3 => Plan::new(),
        4 | 5 => vec![(Call::PrepareMra, 0), (accept, after)],
        6 => vec![
            (accept, after),
            (Call::Established, after + random.below(200)),
        ],
        _ => vec![(accept, after)],
    }
}
