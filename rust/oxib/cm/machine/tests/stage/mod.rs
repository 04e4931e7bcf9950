// SPDX-License-Identifier: GPL-2.0-only

//! A machine in every state it can be in, and everything that can happen to one.

use oxib_cm_machine::actions::Actions;
use oxib_cm_machine::input::{
    Incoming,
    Patience,
    QpType,
    Rep,
    RepParam,
    Req,
    ReqParam,
    SidrReqParam, //
};
use oxib_cm_machine::time::Time;
use oxib_cm_machine::{
    Machine,
    Refused,
    Request, //
};
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::mra::Acknowledged;
use oxib_wire::cm::mtu::Mtu;
use oxib_wire::cm::reason::Reason;
use oxib_wire::cm::rej::Rejected;
use oxib_wire::cm::sidr_rep::Status;
use oxib_wire::pkey::Pkey;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;

/// Our name for the connection.
pub const LOCAL: CommId = CommId::new(0x0a0a);
/// The peer's name for it.
pub const PEER: CommId = CommId::new(0x0b0b);
/// A name that neither end has chosen.
const STRANGER: CommId = CommId::new(0x0c0c);
/// Our queue pair number.
const QPN: Qpn = Qpn::from_bytes([0, 0, 0x11]);
/// The peer's queue pair.
pub const PEER_QPN: Qpn = Qpn::from_bytes([0, 0, 0x22]);
/// The first repetition of a request.
const RTO: u32 = 20;
/// The time at which a state is entered.
const ENTERED: Time = Time::new(1_000_000);
/// The time of the next event, soon enough that no timer is due.
pub const SOON: Time = Time::new(1_000_005);
/// A time at which every timer is over.
const LATE: Time = Time::new(u64::MAX);

pub fn req_param(qp_type: QpType) -> ReqParam {
    ReqParam {
        qp_type,
        qpn: QPN,
        psn: Psn::wrapping(0x51),
        pkey: Pkey::DEFAULT,
        mtu: Mtu::new(4),
        responder_resources: 3,
        initiator_depth: 5,
        retry_count: 6,
        packet_life_time: 14,
        alternate_life_time: None,
        remote_response_timeout: 20,
        local_response_timeout: 19,
        retries: 15,
        rto: RTO,
    }
}

pub fn rep_param() -> RepParam {
    RepParam {
        qpn: QPN,
        psn: Psn::wrapping(0x52),
        responder_resources: 2,
        initiator_depth: 4,
        rto: RTO,
    }
}

pub fn req(qp_type: QpType) -> Req {
    Req {
        sender: PEER,
        qp_type,
        qpn: PEER_QPN,
        psn: Psn::wrapping(0x61),
        pkey: Pkey::DEFAULT,
        mtu: Mtu::new(4),
        responder_resources: 7,
        initiator_depth: 8,
        retry_count: 6,
        rnr_retry_count: 7,
        remote_response_timeout: 20,
        local_response_timeout: 19,
        max_retries: 15,
        ack_timeout: 15,
        alternate_ack_timeout: None,
    }
}

pub fn rep() -> Rep {
    Rep {
        sender: PEER,
        qpn: PEER_QPN,
        eecn: Qpn::from_bytes([0, 0, 0x33]),
        psn: Psn::wrapping(0x62),
        responder_resources: 9,
        initiator_depth: 10,
        rnr_retry_count: 1,
        target_ack_delay: 15,
    }
}

fn sidr_req_param() -> SidrReqParam {
    SidrReqParam {
        patience: Patience {
            timeout: 4096,
            retries: 15,
        },
        rto: RTO,
    }
}

/// Takes a machine through calls that its states allow.
fn after(mut machine: Machine, calls: &[&str]) -> Machine {
    for call in calls {
        let _ = happen(&mut machine, call, ENTERED).expect("the state allows the call");
    }
    machine
}

/// The time at which an MRA is due for a request that came when the state was entered.
const MRA_DUE: Time = ENTERED.after(1 << 12);

/// A machine in this state, which is named as in the documentation.
pub fn machine(state: &str) -> Machine {
    let idle = || Machine::new(LOCAL);
    let passive = |qp_type| Machine::accept_req(LOCAL, &req(qp_type), ENTERED).0;
    let rc = || passive(QpType::Rc);
    let unasked = |state| {
        let mut machine = machine(state);
        assert!(machine.timer(0, MRA_DUE).send.is_some());
        machine
    };
    match state {
        "Idle" => idle(),
        "Idle, after a connection" => after(rc(), &["send REJ"]),
        "Listen" => after(idle(), &["listen"]),
        "ReqSent" => after(idle(), &["send REQ"]),
        "MraReqRcvd" => after(idle(), &["send REQ", "MRA of REQ"]),
        "RepRcvd" => after(idle(), &["send REQ", "REP"]),
        "MraRepSent, prepared" => after(machine("RepRcvd"), &["prepare MRA"]),
        "MraRepSent, by itself" => unasked("RepRcvd"),
        "MraRepSent, sent" => unasked("MraRepSent, prepared"),
        "ReqRcvd" => rc(),
        "MraReqSent, prepared" => after(rc(), &["prepare MRA"]),
        "MraReqSent, by itself" => unasked("ReqRcvd"),
        "MraReqSent, sent" => unasked("MraReqSent, prepared"),
        "RepSent" => after(rc(), &["send REP"]),
        "MraRepRcvd" => after(rc(), &["send REP", "MRA of REP"]),
        "Established" => after(rc(), &["send REP", "RTU"]),
        "Established, XRC target" => after(passive(QpType::XrcTgt), &["send REP", "RTU"]),
        "Established, migrated" => after(machine("Established"), &["path migrated"]),
        "Established, LAP received" => after(machine("Established"), &["LAP"]),
        "Established, MRA of LAP" => after(machine("Established"), &["LAP", "prepare MRA"]),
        "DreqSent" => after(machine("Established"), &["send DREQ"]),
        "DreqRcvd" => after(machine("Established"), &["DREQ"]),
        "TimeWait" => after(machine("Established"), &["send DREQ", "DREP"]),
        "TimeWait, before a connection" => after(rc(), &["REJ, stale"]),
        "SidrReqSent" => after(idle(), &["send SIDR_REQ"]),
        "SidrReqRcvd" => Machine::accept_sidr_req(LOCAL, PEER).0,
        other => panic!("no state is called {other}"),
    }
}

/// All states, as the documentation orders them.
pub const STATES: [&str; 26] = [
    "Idle",
    "Idle, after a connection",
    "Listen",
    "ReqSent",
    "MraReqRcvd",
    "RepRcvd",
    "MraRepSent, prepared",
    "MraRepSent, by itself",
    "MraRepSent, sent",
    "ReqRcvd",
    "MraReqSent, prepared",
    "MraReqSent, by itself",
    "MraReqSent, sent",
    "RepSent",
    "MraRepRcvd",
    "Established",
    "Established, XRC target",
    "Established, migrated",
    "Established, LAP received",
    "Established, MRA of LAP",
    "DreqSent",
    "DreqRcvd",
    "TimeWait",
    "TimeWait, before a connection",
    "SidrReqSent",
    "SidrReqRcvd",
];

/// The events that can happen, as the documentation orders them.
pub const EVENTS: [&str; 45] = [
    "listen",
    "send REQ",
    "send REP",
    "send RTU",
    "send DREQ",
    "send DREP",
    "send REJ",
    "prepare MRA",
    "send SIDR_REQ",
    "send SIDR_REP",
    "established",
    "path migrated",
    "destroy",
    "destroy, no memory",
    "same REQ",
    "REP",
    "REP of a stranger",
    "RTU",
    "RTU of a stranger",
    "MRA of REQ",
    "MRA of REP",
    "MRA of LAP",
    "MRA, reserved",
    "REJ of REQ",
    "REJ of REP",
    "REJ",
    "REJ of REQ, stale",
    "REJ, stale",
    "REJ, time-out",
    "DREQ",
    "DREQ of a stranger",
    "DREQ, other queue pair",
    "DREP",
    "LAP",
    "APR",
    "same SIDR_REQ",
    "SIDR_REP",
    "timer, early",
    "timer",
    "timer, at last",
    "given up",
    "REQ not sent",
    "REP not sent",
    "DREQ not sent",
    "SIDR_REQ not sent",
];

/// Lets something happen to a machine soon after it has entered its state.
pub fn event(machine: &mut Machine, event: &str) -> Result<Actions, Refused> {
    happen(machine, event, SOON)
}

fn happen(machine: &mut Machine, event: &str, now: Time) -> Result<Actions, Refused> {
    if let Some(message) = message(event) {
        return Ok(machine.receive(&message, now));
    }
    Ok(match event {
        "listen" => return machine.listen(),
        "send REQ" => return machine.send_req(&req_param(QpType::Rc), now),
        "send REP" => return machine.send_rep(&rep_param(), now),
        "send RTU" => return machine.send_rtu(),
        "send DREQ" => return machine.send_dreq(RTO, now),
        "send DREP" => return machine.send_drep(now),
        "send REJ" => return machine.send_rej(Reason::CONSUMER_DEFINED, now),
        "prepare MRA" => return machine.prepare_mra(),
        "send SIDR_REQ" => return machine.send_sidr_req(&sidr_req_param(), now),
        "send SIDR_REP" => return machine.send_sidr_rep(Status::SUCCESS),
        "established" => return machine.established(),
        "path migrated" => return machine.migrated(),
        "destroy" => machine.destroy(false),
        "destroy, no memory" => machine.destroy(true),
        "timer, early" => machine.timer(0, now),
        "timer" => {
            let due = machine.due().unwrap_or(now);
            machine.timer(0, due)
        }
        "timer, at last" => machine.timer(0, LATE),
        "given up" => machine.give_up(),
        "REQ not sent" => machine.send_failed(Request::Req, now),
        "REP not sent" => machine.send_failed(Request::Rep, now),
        "DREQ not sent" => machine.send_failed(Request::Dreq, now),
        "SIDR_REQ not sent" => machine.send_failed(Request::SidrReq, now),
        other => panic!("nothing that happens is called {other}"),
    })
}

/// The message of this name. What answers a REQ is sent by the peer's name all the same, but for a
/// peer that gave the REQ no name.
pub fn message(event: &str) -> Option<Incoming> {
    let mra = |of| Incoming::Mra {
        sender: PEER,
        of,
        service_timeout: 18,
    };
    let rej = |of, reason| Incoming::Rej {
        sender: PEER,
        of,
        reason,
    };
    let dreq = |sender, qpn| Incoming::Dreq { sender, qpn };
    let consumer = Reason::CONSUMER_DEFINED;
    let stale = Reason::STALE_CONNECTION;
    Some(match event {
        "same REQ" => Incoming::DuplicateReq,
        "REP" => Incoming::Rep(rep()),
        "REP of a stranger" => Incoming::Rep(Rep {
            sender: STRANGER,
            ..rep()
        }),
        "RTU" => Incoming::Rtu { sender: PEER },
        "RTU of a stranger" => Incoming::Rtu { sender: STRANGER },
        "MRA of REQ" => mra(Acknowledged::Req),
        "MRA of REP" => mra(Acknowledged::Rep),
        "MRA of LAP" => mra(Acknowledged::Lap),
        "MRA, reserved" => mra(Acknowledged::Reserved),
        "REJ of REQ" => rej(Rejected::Req, consumer),
        "REJ of REP" => rej(Rejected::Rep, consumer),
        "REJ" => rej(Rejected::Other, consumer),
        "REJ of REQ, stale" => rej(Rejected::Req, stale),
        "REJ, stale" => rej(Rejected::Other, stale),
        "REJ, time-out" => rej(Rejected::Other, Reason::TIMEOUT),
        "DREQ" => dreq(PEER, QPN),
        "DREQ of a stranger" => dreq(STRANGER, QPN),
        "DREQ, other queue pair" => dreq(PEER, PEER_QPN),
        "DREP" => Incoming::Drep { sender: PEER },
        "LAP" => Incoming::Lap {
            sender: PEER,
            ack_timeout: 16,
        },
        "APR" => Incoming::Apr { sender: PEER },
        "same SIDR_REQ" => Incoming::DuplicateSidrReq,
        "SIDR_REP" => Incoming::SidrRep,
        _ => return None,
    })
}
