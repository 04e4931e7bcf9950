// SPDX-License-Identifier: GPL-2.0-only

//! The nodes that open connections, each with the window of its port (`window.rs`, `ask.rs`).

use std::collections::VecDeque;

use oxib_cm_machine::actions::{
    Actions,
    Outgoing,
    Report,
    Send,
    TimerAction, //
};
use oxib_cm_machine::input::{
    Incoming,
    QpType,
    Req,
    ReqParam, //
};
use oxib_cm_machine::state::StateName;
use oxib_cm_machine::Machine;
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::kind::Kind;
use oxib_wire::cm::mtu::Mtu;
use oxib_wire::pkey::Pkey;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;

use super::ground::{
    Body,
    Datagram,
    Outside,
    Timer, //
};
use crate::round_trip::{
    RoundTrips,
    UNHEARD, //
};

/// `SLOTS` and `BATCH` of `window.rs`.
const SLOTS: usize = 256;
const BATCH: usize = SLOTS / 4;

const FIRST_NAME: u32 = 0x1000;
const FIRST_OF_STRANGERS: u32 = 0x8000_0000;

/// The parameters of `rdma_cm`: 4.3 s for a try and 0.3 s for the way, 16 tries.
pub fn req_param(id: usize, rto: u32) -> ReqParam {
    ReqParam {
        qp_type: QpType::Rc,
        qpn: qpn(id),
        psn: Psn::wrapping(1),
        pkey: Pkey::DEFAULT,
        mtu: Mtu::new(3),
        responder_resources: 1,
        initiator_depth: 1,
        retry_count: 7,
        packet_life_time: 14,
        alternate_life_time: None,
        remote_response_timeout: 20,
        local_response_timeout: 20,
        retries: 15,
        rto,
    }
}

fn req(sender: CommId, param: &ReqParam) -> Req {
    Req {
        sender,
        qp_type: param.qp_type,
        qpn: param.qpn,
        psn: param.psn,
        pkey: param.pkey,
        mtu: param.mtu,
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        retry_count: param.retry_count,
        rnr_retry_count: 7,
        remote_response_timeout: param.remote_response_timeout,
        local_response_timeout: param.local_response_timeout,
        max_retries: param.retries,
        ack_timeout: param.packet_life_time + 1,
        alternate_ack_timeout: None,
    }
}

/// A stranger asks for the longest time that there is.
pub fn strangers_req(number: usize) -> Req {
    let name = CommId::new(FIRST_OF_STRANGERS + number as u32);
    let param = ReqParam {
        local_response_timeout: 31,
        ..req_param(number, 0)
    };
    req(name, &param)
}

fn qpn(id: usize) -> Qpn {
    let [_, high, middle, low] = (0x100 + id as u32).to_be_bytes();
    Qpn::from_bytes([high, middle, low])
}

struct Id {
    machine: Machine,
    timer: Timer,
    waits: bool,
    placed: bool,
    is_up: bool,
    has_failed: bool,
    /// Microseconds when it was opened.
    began: u64,
}

/// A node's port: what it knows of answers, and its window.
struct Node {
    round_trips: RoundTrips,
    taken: usize,
    queued: VecDeque<usize>,
}

pub struct Caller {
    ids: Vec<Id>,
    nodes: Vec<Node>,
    pub began: u64,
    /// The connections that are to be opened.
    pub wanted: usize,
    /// Microseconds from the opening of each connection until it was up, in the order of the
    /// latter.
    pub up: Vec<u64>,
    pub failed: usize,
    /// Connections that were up, and ended as the listener took their slots away.
    pub lost: usize,
}

impl Caller {
    pub fn new(nodes: usize) -> Caller {
        let node = |_| Node {
            round_trips: RoundTrips::new(),
            taken: 0,
            queued: VecDeque::new(),
        };
        Caller {
            ids: Vec::new(),
            nodes: (0..nodes).map(node).collect(),
            began: 0,
            wanted: 0,
            up: Vec::new(),
            failed: 0,
            lost: 0,
        }
    }

    pub fn is_settled(&self) -> bool {
        self.up.len() + self.failed == self.wanted
    }

    /// The node of an identifier.
    fn node(&mut self, id: usize) -> &mut Node {
        let node = id % self.nodes.len();
        &mut self.nodes[node]
    }

    pub fn timer(&mut self, id: usize) -> &mut Timer {
        &mut self.ids[id].timer
    }

    /// Asks for one more connection.
    pub fn connect(&mut self, outside: &mut Outside) {
        let id = self.ids.len();
        let mut machine = Machine::new(CommId::new(FIRST_NAME + id as u32));
        let node = self.node(id);
        let rto = node.round_trips.of(Kind::Req).patience();
        let actions = machine.send_req(&req_param(id, rto), outside.now());
        let placed = node.queued.is_empty() && node.taken < SLOTS;
        node.taken += usize::from(placed);
        self.ids.push(Id {
            machine,
            timer: Timer::default(),
            waits: !placed,
            placed,
            is_up: false,
            has_failed: false,
            began: outside.micros(),
        });
        if placed {
            outside.send(self.req(id));
        } else {
            self.node(id).queued.push_back(id);
        }
        self.follow(id, &actions.expect("it is idle"), outside);
    }

    fn req(&self, id: usize) -> Datagram {
        let param = req_param(id, 0);
        Datagram {
            from: id % self.nodes.len(),
            kind: Kind::Req,
            receiver: CommId::ZERO,
            body: Body::Req(req(self.ids[id].machine.ids().0, &param)),
        }
    }

    pub fn receive(&mut self, datagram: Datagram, outside: &mut Outside) {
        let Body::Answer(incoming) = datagram.body else {
            panic!("nobody asks the caller");
        };
        let id = (datagram.receiver.get() - FIRST_NAME) as usize;
        let actions = self.ids[id].machine.receive(&incoming, outside.now());
        self.send(id, &actions, outside);
        self.follow(id, &actions, outside);
        self.send_on(id, outside);
    }

    pub fn expire(&mut self, id: usize, outside: &mut Outside) {
        let now = outside.now();
        let node = id % self.nodes.len();
        let round_trip = self.nodes[node].round_trips.of(Kind::Req);
        let found = &mut self.ids[id];
        let rto = round_trip.patience_with(found.machine.asked_at().unwrap_or(now), now);
        let actions = found.machine.timer(rto, now);
        self.send(id, &actions, outside);
        let found = &self.ids[id];
        let asked = found.machine.asked_at();
        let round_trip = self.nodes[node].round_trips.of(Kind::Req);
        if asked.is_none_or(|asked| round_trip.is_overdue(asked, now)) {
            self.leave(id);
        }
        self.follow(id, &actions, outside);
        self.send_on(id, outside);
    }

    fn send(&mut self, id: usize, actions: &Actions, outside: &mut Outside) {
        match actions.send {
            None => {}
            Some(Send::Again) => outside.send(self.req(id)),
            Some(Send::New(outgoing) | Send::Saved(outgoing)) => {
                self.send_answer(id, outgoing, outside);
            }
        }
    }

    fn send_answer(&mut self, id: usize, outgoing: Outgoing, outside: &mut Outside) {
        let (sender, receiver) = self.ids[id].machine.ids();
        assert_eq!(outgoing, Outgoing::Rtu, "consumers answer at once");
        outside.send(Datagram {
            from: id % self.nodes.len(),
            kind: Kind::Rtu,
            receiver,
            body: Body::Answer(Incoming::Rtu { sender }),
        });
    }

    fn leave(&mut self, id: usize) {
        let placed = core::mem::take(&mut self.ids[id].placed);
        self.node(id).taken -= usize::from(placed);
    }

    fn follow(&mut self, id: usize, actions: &Actions, outside: &mut Outside) {
        let now = outside.now();
        if let Some(sample) = actions.rtt_sample {
            self.node(id).round_trips.of(Kind::Req).sample(sample, now);
        }
        let found = &mut self.ids[id];
        if !found.machine.awaits_answer() {
            found.waits = false;
        }
        if !found.machine.is_in_flight() {
            self.leave(id);
        }
        let is_known = self.node(id).round_trips.of(Kind::Req).is_known();
        let found = &mut self.ids[id];
        let asked = found.machine.asked_at();
        let is_unmeasured = asked.is_some() && !is_known;
        let timer = match actions.timer {
            TimerAction::At(_) if found.waits => TimerAction::Keep,
            TimerAction::At(due) if found.placed => {
                TimerAction::At(due.min(now.after(UNHEARD.into())))
            }
            TimerAction::At(due) if is_unmeasured => {
                let waited = asked.map_or(0, |asked| now.since(asked));
                TimerAction::At(due.min(now.after(waited.max(UNHEARD.into()))))
            }
            other => other,
        };
        outside.set(&mut found.timer, id, timer);
        match actions.report {
            Some(Report::RepReceived) => {
                let actions = found.machine.send_rtu().expect("a REP came");
                found.is_up = true;
                assert_eq!(found.machine.name(), StateName::Established);
                self.up.push(outside.micros() - found.began);
                self.send(id, &actions, outside);
                self.follow(id, &actions, outside);
            }
            Some(Report::RejReceived) if found.is_up => self.lost += 1,
            Some(Report::ReqError(_) | Report::RejReceived) => {
                assert!(!found.is_up && !found.has_failed);
                found.has_failed = true;
                self.failed += 1;
            }
            _ => {}
        }
    }

    /// Sends on the requests of a node that wait, when enough slots are free.
    fn send_on(&mut self, one: usize, outside: &mut Outside) {
        if self.node(one).taken > SLOTS - BATCH {
            return;
        }
        while self.node(one).taken < SLOTS {
            let Some(id) = self.node(one).queued.pop_front() else {
                return;
            };
            if !core::mem::take(&mut self.ids[id].waits) {
                continue;
            }
            let actions = self.ids[id].machine.sent(outside.now());
            self.ids[id].placed = true;
            self.node(one).taken += 1;
            outside.send(self.req(id));
            self.follow(id, &actions, outside);
        }
    }
}
