// SPDX-License-Identifier: GPL-2.0-only

//! Calls, datagrams and timers in any order, with any values: the state changes only as the
//! specification allows, the timer is what the machine was told, a refused call changes nothing,
//! and attributes are there in every state or refused.

#![no_main]

// The tests of the crate have the same module.
#[path = "../../tests/allowed/mod.rs"]
mod allowed;

use libfuzzer_sys::fuzz_target;
use oxib_cm_machine::actions::{
    Actions,
    RemoteAction,
    Send,
    SlotAction,
    TimerAction, //
};
use oxib_cm_machine::input::{
    Incoming,
    Patience,
    QpType,
    RepParam,
    Req,
    ReqParam,
    SidrReqParam, //
};
use oxib_cm_machine::state::StateName;
use oxib_cm_machine::time::Time;
use oxib_cm_machine::{
    Machine,
    Refused,
    Request, //
};
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::kind::Kind;
use oxib_wire::cm::mtu::Mtu;
use oxib_wire::cm::reason::Reason;
use oxib_wire::cm::sidr_rep::Status;
use oxib_wire::cm::Message;
use oxib_wire::mad;
use oxib_wire::pkey::Pkey;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;

const LOCAL: CommId = CommId::new(0x0a0a);
const PEER: CommId = CommId::new(0x0b0b);

/// The fuzzer's choices; zeros after their end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    fn word(&mut self) -> u32 {
        u32::from_be_bytes([0; 4].map(|_: u8| self.byte()))
    }

    fn req_param(&mut self) -> ReqParam {
        let types = [QpType::Rc, QpType::Uc, QpType::XrcIni, QpType::XrcTgt];
        ReqParam {
            qp_type: types[usize::from(self.byte() % 4)],
            qpn: self.qpn(),
            psn: Psn::wrapping(1),
            pkey: Pkey::new(u16::from(self.byte())),
            mtu: Mtu::new(self.byte()),
            responder_resources: self.byte(),
            initiator_depth: self.byte(),
            retry_count: self.byte(),
            packet_life_time: self.byte(),
            alternate_life_time: Some(self.byte()).filter(|byte| *byte != 0),
            remote_response_timeout: self.byte(),
            local_response_timeout: self.byte(),
            retries: self.byte(),
            rto: self.word(),
        }
    }

    fn rep_param(&mut self) -> RepParam {
        RepParam {
            qpn: self.qpn(),
            psn: Psn::wrapping(2),
            responder_resources: self.byte(),
            initiator_depth: self.byte(),
            rto: self.word(),
        }
    }

    fn sidr_req_param(&mut self) -> SidrReqParam {
        SidrReqParam {
            patience: Patience {
                timeout: self.word(),
                retries: self.byte(),
            },
            rto: self.word(),
        }
    }

    /// Few enough numbers that a DREQ names the right one at times.
    fn qpn(&mut self) -> Qpn {
        Qpn::from_bytes([0, 0, self.byte() % 4])
    }

    /// A datagram: some bytes chosen, the header right but for the kind of message, and the
    /// sender's name right at times.
    fn datagram(&mut self) -> [u8; mad::LEN] {
        let mut bytes = [0; mad::LEN];
        let attribute = self.byte();
        let known = self.byte();
        let length = usize::from(self.byte()).min(self.0.len());
        let (chosen, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes[mad::HEADER_LEN..][..length.min(mad::DATA_LEN)]
            .copy_from_slice(&chosen[..length.min(mad::DATA_LEN)]);
        bytes[..4].copy_from_slice(&[1, mad::CLASS_CM, 2, mad::METHOD_SEND]);
        bytes[17] = Kind::ALL[usize::from(attribute) % Kind::ALL.len()].get() as u8;
        if known & 1 != 0 {
            bytes[24..28].copy_from_slice(&PEER.get().to_be_bytes());
        }
        bytes
    }
}

/// A machine with the timer that it has been told to have.
struct Bench {
    machine: Machine,
    timer: Option<Time>,
    now: Time,
}

type Answer = Result<Actions, Refused>;

impl Bench {
    fn new() -> Bench {
        Bench {
            machine: Machine::new(LOCAL),
            timer: None,
            now: Time::new(1),
        }
    }

    /// Does what a shell does, and looks whether it may have been asked to.
    fn check(&mut self, before: StateName, actions: &Actions) {
        let after = self.machine.name();
        let accepted = before == StateName::Idle
            && [StateName::ReqRcvd, StateName::SidrReqRcvd].contains(&after);
        assert!(before == after || accepted || allowed::is_allowed(before, after));
        match actions.timer {
            TimerAction::Keep => {}
            TimerAction::Stop => self.timer = None,
            TimerAction::At(time) => self.timer = Some(time),
        }
        assert_eq!(self.timer, self.machine.due());
        if actions.send == Some(Send::Again) {
            assert!(self.machine.awaits_answer());
        }
        if actions.remote == RemoteAction::Forget {
            assert!([StateName::Idle, StateName::TimeWait].contains(&after));
        }
        assert!(actions.slot == SlotAction::Keep || before != after);
        let known = self.machine.qp_rtr().is_ok();
        assert_eq!(known, self.machine.qp_rts().is_ok());
        assert!(!known || self.machine.qp_init().is_ok());
    }

    /// Lets one thing happen, and checks the state that follows.
    fn step(&mut self, event: u8, choices: &mut Choices<'_>) {
        let before = self.machine.name();
        let image = self.machine.clone();
        match self.happen(event, choices) {
            Ok(actions) => self.check(before, &actions),
            Err(refused) => {
                assert_eq!(refused.state, before);
                assert_eq!(format!("{:?}", self.machine), format!("{image:?}"));
            }
        }
    }

    fn happen(&mut self, event: u8, choices: &mut Choices<'_>) -> Answer {
        let (now, machine) = (self.now, &mut self.machine);
        match event {
            0 => machine.listen(),
            1 => machine.send_req(&choices.req_param(), now),
            2 => machine.send_rep(&choices.rep_param(), now),
            3 => machine.send_rtu(),
            4 => machine.send_dreq(choices.word(), now),
            5 => machine.send_drep(now),
            6 => machine.send_rej(Reason::new(u16::from(choices.byte())), now),
            7 => machine.prepare_mra(),
            8 => machine.send_sidr_req(&choices.sidr_req_param(), now),
            9 => machine.send_sidr_rep(Status::new(choices.byte())),
            10 => machine.established(),
            11 => machine.migrated(),
            12 => Ok(machine.destroy(choices.byte() & 1 != 0)),
            13 => Ok(self.expire()),
            14 => Ok(self.fail(choices.byte())),
            _ => Ok(self.receive(&choices.datagram())),
        }
    }

    /// Lets the timer go off, at its time or at any.
    fn expire(&mut self) -> Actions {
        self.now = self.timer.unwrap_or(self.now).max(self.now);
        self.timer = None;
        self.machine.timer(20, self.now)
    }

    fn fail(&mut self, which: u8) -> Actions {
        let requests = [Request::Req, Request::Rep, Request::Dreq, Request::SidrReq];
        self.machine
            .send_failed(requests[usize::from(which % 4)], self.now)
    }

    fn receive(&mut self, datagram: &[u8]) -> Actions {
        let message = Message::parse(datagram);
        match message {
            Ok(Message::Req(req)) if self.machine.name() == StateName::Idle => {
                if let Ok(req) = Req::try_from(req) {
                    let (machine, actions) = Machine::accept_req(LOCAL, &req, self.now);
                    self.machine = machine;
                    return actions;
                }
            }
            Ok(Message::SidrReq(req)) if self.machine.name() == StateName::Idle => {
                let (machine, actions) = Machine::accept_sidr_req(LOCAL, req.request_id());
                self.machine = machine;
                return actions;
            }
            Ok(message) => return self.machine.receive(&Incoming::from(message), self.now),
            Err(_) => {}
        }
        // Not for a machine: as if time passed.
        self.expire()
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut choices = Choices(bytes);
    let mut bench = Bench::new();
    while let Some(event) = choices.next() {
        // The low half says what, the high half after how long: not at all to days.
        bench.now = bench.now.after((1_u64 << (event >> 4) << (event >> 4)) - 1);
        bench.step(event & 0xf, &mut choices);
    }
});
