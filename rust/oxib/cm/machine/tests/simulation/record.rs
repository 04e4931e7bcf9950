// SPDX-License-Identifier: GPL-2.0-only

//! Record of an identifier's messages and reports, which checks that each of them is allowed.

use oxib_cm_machine::actions::{
    Failure,
    Report,
    SERVICE_TIMEOUT, //
};
use oxib_cm_machine::input::{
    Req,
    ReqParam, //
};
use oxib_cm_machine::time::Time;
use oxib_wire::cm::kind::Kind;

use super::network::Packet;

/// Longest time that a stranger with a REP of ours may ask for, in milliseconds.
const LONGEST_WAIT: u64 = 300_000;

/// The waits of an end, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// Time-out of one try.
    timeout: u64,
    /// Number of tries, the first included.
    tries: u64,
    /// Wait for a peer that asks for time.
    pub service: u64,
}

/// 4.096 µs × 2^exponent, as the kernel's implementation rounds it.
fn milliseconds(exponent: u8) -> u64 {
    1 << exponent.max(8) - 8
}

impl Waits {
    /// The waits of the end that sends this REQ.
    pub fn asking(param: &ReqParam) -> Waits {
        let there_and_back = 2 * milliseconds(param.packet_life_time);
        Waits {
            timeout: there_and_back + milliseconds(param.remote_response_timeout),
            tries: 1 + u64::from(param.retries),
            service: milliseconds(SERVICE_TIMEOUT) + milliseconds(param.packet_life_time + 1),
        }
    }

    /// The waits of the end that receives this REQ.
    pub fn asked(req: &Req) -> Waits {
        Waits {
            timeout: milliseconds(req.local_response_timeout),
            tries: 1 + u64::from(req.max_retries),
            service: milliseconds(SERVICE_TIMEOUT) + milliseconds(req.ack_timeout),
        }
    }
}

/// A request of an identifier that is unanswered.
#[derive(Clone, Debug)]
pub struct Request {
    pub packet: Packet,
    /// The times of its first and of its last try.
    pub first: Time,
    last: Time,
    waits: Waits,
    /// Milliseconds until the first repetition.
    rto: u32,
    /// The time at which the peer asked for time, if it did.
    pub put_off: Option<Time>,
}

impl Request {
    pub fn new(packet: Packet, waits: Waits, rto: u32, now: Time) -> Request {
        Request {
            packet,
            first: now,
            last: now,
            waits,
            rto,
            put_off: None,
        }
    }

    /// Checks a repetition: not too soon after the last try, and not after its end.
    pub fn repeat(&mut self, now: Time) {
        let gap = now.since(self.last);
        let shortest = u64::from(self.rto).min(self.waits.timeout - self.waits.timeout / 3);
        assert!(gap >= shortest, "repeated after {gap} ms, not {shortest}");
        let service = match self.put_off {
            Some(asked) if !self.is_first_chosen(asked) => self.waits.service,
            _ => 0,
        };
        let longest = self.waits.timeout + service;
        assert!(gap <= longest, "repeated after {gap} ms, not {longest}");
        assert!(now < self.end(), "repeated after its end");
        assert!(
            self.waits.tries > 1,
            "repeated though the consumer said once"
        );
        self.last = now;
    }

    /// Returns whether the next repetition is the first one of the consumer's choice, for a peer
    /// that asked for time before it.
    fn is_first_chosen(&self, asked: Time) -> bool {
        self.last <= asked && asked < self.first.after(self.waits.timeout)
    }

    /// The time at which the consumer has waited long enough.
    pub fn end(&self) -> Time {
        let patience = self.waits.timeout * self.waits.tries;
        let end = self.first.after(patience);
        let Some(asked) = self.put_off else {
            return end;
        };
        let over = asked.since(self.first) / self.waits.timeout;
        let left = self.waits.tries.saturating_sub(over).max(1);
        let end = end.max(asked.after(left * self.waits.service));
        match self.packet.kind {
            Kind::Rep => end.min(self.first.after(LONGEST_WAIT)),
            _ => end,
        }
    }

    /// Checks the end of a request without an answer: neither before its time nor after it.
    pub fn fail(&self, now: Time) {
        assert_eq!(now, self.end(), "given up at another time than was said");
    }
}

/// The reports that a consumer got.
#[derive(Clone, Debug, Default)]
pub struct Reports(pub Vec<Report>);

/// Returns the progress that a connection has made with a report.
fn stage(report: Report) -> u8 {
    match report {
        Report::ReqReceived | Report::SidrReqReceived => 0,
        Report::MraReceived => 1,
        Report::RepReceived => 2,
        Report::RtuReceived | Report::UserEstablished => 3,
        Report::LapReceived => 4,
        Report::DreqReceived => 5,
        Report::ReqError(_)
        | Report::RepError(_)
        | Report::RejReceived
        | Report::DreqError(_)
        | Report::DrepReceived
        | Report::SidrReqError(_)
        | Report::SidrRepReceived => 6,
        Report::TimewaitExit => 7,
    }
}

impl Reports {
    /// Adds a report. Each stage is reported once, and none after a later one.
    pub fn add(&mut self, report: Report) {
        if let Some(last) = self.0.last() {
            let in_order = stage(*last) < stage(report);
            assert!(in_order, "{report:?} after {:?}", self.0);
        }
        self.0.push(report);
    }

    pub fn contains(&self, report: Report) -> bool {
        self.0.contains(&report)
    }

    /// Returns whether the connection came to nothing.
    pub fn failed(&self) -> bool {
        let failures = [
            Report::ReqError(Failure::Timeout),
            Report::RepError(Failure::Timeout),
            Report::DreqError(Failure::Timeout),
            Report::RejReceived,
        ];
        failures.into_iter().any(|failure| self.contains(failure))
    }
}
