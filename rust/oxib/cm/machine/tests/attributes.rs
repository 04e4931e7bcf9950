// SPDX-License-Identifier: GPL-2.0-only

//! Attributes of the queue pair that a machine knows, by state and by type of queue pair, and the
//! durations that follow from the parameters.

// The stage has more than is needed here.
#[allow(dead_code, reason = "each test uses its part")]
mod stage;

use oxib_cm_machine::actions::{
    Send,
    TimerAction, //
};
use oxib_cm_machine::input::{
    Incoming,
    QpType,
    ReqParam, //
};
use oxib_cm_machine::qp::{
    QpInit,
    QpRtr,
    QpRts,
    Requester, //
};
use oxib_cm_machine::time::Time;
use oxib_cm_machine::Machine;
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::mra::Acknowledged;
use oxib_wire::cm::mtu::Mtu;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;

const NOW: Time = Time::new(500);

fn active(param: &ReqParam) -> Machine {
    let mut machine = Machine::new(stage::LOCAL);
    let _ = machine.send_req(param, NOW).expect("an idle one may");
    machine
}

fn replied(param: &ReqParam) -> Machine {
    let mut machine = active(param);
    let _ = machine.receive(&Incoming::Rep(stage::rep()), NOW);
    machine
}

#[test]
fn states_that_have_attributes() {
    for state in stage::STATES {
        let machine = stage::machine(state);
        let name = state.split(',').next().unwrap();
        let peer = [
            "ReqRcvd",
            "MraReqSent",
            "RepRcvd",
            "MraRepSent",
            "RepSent",
            "MraRepRcvd",
            "Established",
        ]
        .contains(&name);
        let request = ["ReqSent", "MraReqRcvd"].contains(&name);
        assert_eq!(machine.qp_init().is_ok(), peer || request, "{state}");
        assert_eq!(machine.qp_rtr().is_ok(), peer, "{state}");
        assert_eq!(machine.qp_rts().is_ok(), peer, "{state}");
    }
}

#[test]
fn the_active_end() {
    let param = stage::req_param(QpType::Rc);
    let machine = active(&param);
    let init = QpInit {
        responder_resources: 3,
    };
    assert_eq!(machine.qp_init(), Ok(init));

    let machine = replied(&param);
    let init = QpInit {
        responder_resources: 10,
    };
    let rtr = QpRtr {
        mtu: Mtu::new(4),
        dest_qpn: stage::PEER_QPN,
        rq_psn: Psn::wrapping(0x51),
        max_dest_rd_atomic: Some(10),
        alternate_timeout: None,
    };
    let rts = QpRts::First {
        sq_psn: Psn::wrapping(0x62),
        requester: Some(Requester {
            retry_count: 6,
            rnr_retry_count: 1,
            max_rd_atomic: 9,
        }),
        // Life time 14, there and back 15, and a delay as long as that.
        timeout: Some(16),
        rearm: false,
    };
    assert_eq!(machine.qp_init(), Ok(init));
    assert_eq!(machine.qp_rtr(), Ok(rtr));
    assert_eq!(machine.qp_rts(), Ok(rts));
}

#[test]
fn the_passive_end() {
    let (mut machine, _) = Machine::accept_req(stage::LOCAL, &stage::req(QpType::Rc), NOW);
    let rtr = QpRtr {
        mtu: Mtu::new(4),
        dest_qpn: stage::PEER_QPN,
        rq_psn: Psn::wrapping(0),
        max_dest_rd_atomic: Some(8),
        alternate_timeout: None,
    };
    let rts = |max_rd_atomic| QpRts::First {
        sq_psn: Psn::wrapping(0x61),
        requester: Some(Requester {
            retry_count: 6,
            rnr_retry_count: 7,
            max_rd_atomic,
        }),
        timeout: Some(15),
        rearm: false,
    };
    assert_eq!(machine.qp_rtr(), Ok(rtr));
    assert_eq!(machine.qp_rts(), Ok(rts(7)));

    let _ = machine.send_rep(&stage::rep_param(), NOW).unwrap();
    let rtr = QpRtr {
        rq_psn: Psn::wrapping(0x52),
        max_dest_rd_atomic: Some(2),
        ..rtr
    };
    assert_eq!(machine.qp_rtr(), Ok(rtr));
    assert_eq!(machine.qp_rts(), Ok(rts(4)));
}

#[test]
fn types_of_queue_pairs() {
    // The type; the peer's queue pair, whether it answers reads, asks for some, and has a timeout.
    let eecn = Qpn::from_bytes([0, 0, 0x33]);
    let table = [
        (QpType::Rc, stage::PEER_QPN, true, true, true),
        (QpType::Uc, stage::PEER_QPN, false, false, false),
        (QpType::XrcIni, eecn, false, true, true),
        (QpType::XrcTgt, stage::PEER_QPN, true, false, true),
    ];
    for (qp_type, dest_qpn, responds, requests, has_timeout) in table {
        let machine = replied(&stage::req_param(qp_type));
        let rtr = machine.qp_rtr().unwrap();
        assert_eq!(rtr.dest_qpn, dest_qpn);
        assert_eq!(rtr.max_dest_rd_atomic.is_some(), responds);
        match machine.qp_rts().unwrap() {
            QpRts::First {
                requester, timeout, ..
            } => {
                assert_eq!(requester.is_some(), requests);
                assert_eq!(timeout.is_some(), has_timeout);
            }
            other => panic!("{other:?}"),
        }
        let before = active(&stage::req_param(qp_type));
        assert_eq!(before.takes_rep(&stage::rep()), Some(dest_qpn));
        assert_eq!(machine.takes_rep(&stage::rep()), None);
    }
}

#[test]
fn alternate_paths() {
    let param = ReqParam {
        alternate_life_time: Some(17),
        ..stage::req_param(QpType::Rc)
    };
    let machine = replied(&param);
    assert_eq!(machine.qp_rtr().unwrap().alternate_timeout, Some(18));
    assert!(matches!(
        machine.qp_rts().unwrap(),
        QpRts::First { rearm: true, .. }
    ));

    // A LAP loads one, and a migration puts it in the first one's place.
    let machine = stage::machine("Established, LAP received");
    assert_eq!(machine.qp_rts(), Ok(QpRts::Alternate { timeout: 16 }));
    let mut machine = replied(&param);
    let _ = machine.send_rtu().unwrap();
    let _ = machine.migrated().unwrap();
    assert_eq!(machine.qp_rts(), Ok(QpRts::Alternate { timeout: 18 }));
    let _ = machine.receive(
        &Incoming::Dreq {
            sender: stage::PEER,
            qpn: param.qpn,
        },
        NOW,
    );
    let actions = machine.send_drep(NOW).unwrap();
    assert_eq!(actions.timer, TimerAction::At(NOW.after(1 << 10)));
}

#[test]
fn durations() {
    // Twice the life time and the peer's time to answer, sixteen times.
    let param = ReqParam {
        rto: u32::MAX,
        ..stage::req_param(QpType::Rc)
    };
    let timeout = 2 * (1 << 6) + (1 << 12);
    let mut machine = active(&param);
    assert_eq!(machine.due(), Some(NOW.after(timeout)));
    let end = NOW.after(16 * timeout);
    let before = Time::new(end.get() - 1);
    assert_eq!(machine.clone().timer(0, before).report, None);
    assert!(machine.timer(0, end).report.is_some());

    // The peer's 68 seconds and a packet's way.
    let mut machine = active(&param);
    let mra = Incoming::Mra {
        sender: stage::PEER,
        of: Acknowledged::Req,
        service_timeout: 24,
    };
    let _ = machine.receive(&mra, NOW);
    // Not before the consumer has had it repeated once.
    assert_eq!(machine.due(), Some(NOW.after(timeout)));
    // Not later either, however long answers take.
    let early = machine.timer(u32::MAX, NOW.after(timeout / 2));
    assert_eq!(early.timer, TimerAction::At(NOW.after(timeout)));
    let again = machine.timer(u32::MAX, NOW.after(timeout));
    assert_eq!(again.send, Some(Send::Again));
    assert_eq!(machine.due(), Some(NOW.after((1 << 16) + (1 << 7))));

    // Half of the time that the peer waits.
    let (machine, actions) = Machine::accept_req(stage::LOCAL, &stage::req(QpType::Rc), NOW);
    assert_eq!(machine.due(), Some(NOW.after(1 << 11)));
    assert_eq!(actions.timer, TimerAction::At(NOW.after(1 << 11)));
    assert_eq!(replied(&param).due(), Some(NOW.after(1 << 10)));

    // Time-wait: the local ACK timeout.
    let machine = stage::machine("TimeWait");
    assert_eq!(machine.due(), Some(Time::new(1_000_000 + (1 << 7))));
}

#[test]
fn names() {
    let machine = replied(&stage::req_param(QpType::Rc));
    assert_eq!(machine.ids(), (stage::LOCAL, stage::PEER));
    assert_eq!(machine.remote_qpn(), Some(stage::PEER_QPN));
    assert_eq!(machine.qp_type(), Some(QpType::Rc));
    let machine = stage::machine("ReqSent");
    assert_eq!(machine.ids(), (stage::LOCAL, CommId::ZERO));
    assert_eq!(machine.remote_qpn(), None);
    assert!(machine.partition().is_some());
    let machine = stage::machine("DreqSent");
    assert_eq!(machine.remote_qpn(), Some(stage::PEER_QPN));
}
