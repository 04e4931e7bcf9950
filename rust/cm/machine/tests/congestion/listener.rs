// SPDX-License-Identifier: GPL-2.0-only

//! The node that is called: a listener with its places (`half_open.rs`), and a program that
//! accepts.

use std::collections::{
    BTreeMap,
    VecDeque, //
};

use oxib_cm_machine::actions::{
    Actions,
    Outgoing,
    Report,
    Send,
    TimerAction,
    SERVICE_TIMEOUT, //
};
use oxib_cm_machine::input::{
    Incoming,
    Rep,
    RepParam,
    Req, //
};
use oxib_cm_machine::Machine;
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::kind::Kind;
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

const FIRST_NAME: u32 = 0x4000_0000;
const QPN: Qpn = Qpn::from_bytes([0, 2, 0]);

struct Id {
    machine: Machine,
    timer: Timer,
    /// The node that called.
    node: usize,
}

pub struct Listener {
    ids: Vec<Id>,
    by_peer: BTreeMap<CommId, usize>,
    round_trips: RoundTrips,
    places: u32,
    taken: u32,
    /// The places that each node holds.
    held: Vec<u32>,
    /// Microseconds of the program for each request, and the requests that wait for it.
    program: u64,
    waiting: VecDeque<usize>,
    /// REQs that found no place.
    pub dropped: u64,
    pub rejected: u64,
}

impl Listener {
    pub fn new(places: u32, nodes: usize, program: u64) -> Listener {
        Listener {
            ids: Vec::new(),
            by_peer: BTreeMap::new(),
            round_trips: RoundTrips::new(),
            places,
            taken: 0,
            held: vec![0; nodes],
            program,
            waiting: VecDeque::new(),
            dropped: 0,
            rejected: 0,
        }
    }

    pub fn timer(&mut self, id: usize) -> &mut Timer {
        &mut self.ids[id].timer
    }

    pub fn receive(&mut self, datagram: Datagram, outside: &mut Outside) {
        let incoming = match datagram.body {
            Body::Answer(incoming) => incoming,
            Body::Req(_) => Incoming::DuplicateReq,
        };
        let id = match datagram.body {
            Body::Req(req) => match self.by_peer.get(&req.sender) {
                Some(id) => *id,
                None => return self.accept(&req, outside),
            },
            Body::Answer(_) => (datagram.receiver.get() - FIRST_NAME) as usize,
        };
        let actions = self.ids[id].machine.receive(&incoming, outside.now());
        self.act(id, &actions, outside);
    }

    /// A REQ that is new. A node has as many places as are left for others.
    fn accept(&mut self, req: &Req, outside: &mut Outside) {
        let node = req.sender.get() as usize % self.held.len();
        if self.held[node] >= self.places - self.taken {
            self.dropped += 1;
            return;
        }
        self.held[node] += 1;
        self.taken += 1;
        let id = self.ids.len();
        let local = CommId::new(FIRST_NAME + id as u32);
        let (machine, actions) = Machine::accept_req(local, req, outside.now());
        let timer = Timer::default();
        self.ids.push(Id {
            machine,
            timer,
            node,
        });
        self.by_peer.insert(req.sender, id);
        self.act(id, &actions, outside);
    }

    pub fn expire(&mut self, id: usize, outside: &mut Outside) {
        let now = outside.now();
        let machine = &mut self.ids[id].machine;
        let asked = machine.asked_at().unwrap_or(now);
        let rto = self.round_trips.of(Kind::Rep).patience_with(asked, now);
        let actions = machine.timer(rto, now);
        self.act(id, &actions, outside);
    }

    /// The program has dealt with the request that has waited longest.
    pub fn served(&mut self, outside: &mut Outside) {
        let id = self.waiting.pop_front().expect("one is served");
        self.reply(id, outside);
        if !self.waiting.is_empty() {
            outside.serve(self.program);
        }
    }

    fn reply(&mut self, id: usize, outside: &mut Outside) {
        let param = RepParam {
            qpn: QPN,
            psn: Psn::wrapping(2),
            responder_resources: 1,
            initiator_depth: 1,
            rto: self.round_trips.of(Kind::Rep).patience(),
        };
        let answer = self.ids[id].machine.send_rep(&param, outside.now());
        // Its peer may have given up meanwhile.
        if let Ok(actions) = answer {
            self.act(id, &actions, outside);
        }
    }

    fn act(&mut self, id: usize, actions: &Actions, outside: &mut Outside) {
        match actions.send {
            None => {}
            Some(Send::Again) => self.send(id, Outgoing::Rep, outside),
            Some(Send::New(outgoing) | Send::Saved(outgoing)) => self.send(id, outgoing, outside),
        }
        if let Some(sample) = actions.rtt_sample {
            self.round_trips.of(Kind::Rep).sample(sample, outside.now());
        }
        let asked = self.ids[id].machine.asked_at();
        let is_unmeasured = asked.is_some() && !self.round_trips.of(Kind::Rep).is_known();
        let timer = match actions.timer {
            TimerAction::At(due) if is_unmeasured => {
                let now = outside.now();
                let waited = asked.map_or(0, |asked| now.since(asked));
                TimerAction::At(due.min(now.after(waited.max(UNHEARD.into()))))
            }
            other => other,
        };
        outside.set(&mut self.ids[id].timer, id, timer);
        if actions.half_open_over {
            self.taken -= 1;
            let node = self.ids[id].node;
            self.held[node] -= 1;
        }
        if actions.report == Some(Report::ReqReceived) {
            if self.program == 0 {
                return self.reply(id, outside);
            }
            self.waiting.push_back(id);
            if self.waiting.len() == 1 {
                outside.serve(self.program);
            }
        }
    }

    fn send(&mut self, id: usize, outgoing: Outgoing, outside: &mut Outside) {
        let (sender, receiver) = self.ids[id].machine.ids();
        let (kind, answer) = match outgoing {
            Outgoing::Rep => (Kind::Rep, Incoming::Rep(rep(sender))),
            Outgoing::Mra { of } => {
                let service_timeout = SERVICE_TIMEOUT;
                (
                    Kind::Mra,
                    Incoming::Mra {
                        sender,
                        of,
                        service_timeout,
                    },
                )
            }
            Outgoing::Rej { reason, of, local } => {
                self.rejected += 1;
                let sender = local;
                (Kind::Rej, Incoming::Rej { sender, of, reason })
            }
            other => panic!("{other:?} is sent by nobody who accepts"),
        };
        outside.send(Datagram {
            kind,
            receiver,
            body: Body::Answer(answer),
        });
    }
}

fn rep(sender: CommId) -> Rep {
    Rep {
        sender,
        qpn: QPN,
        eecn: QPN,
        psn: Psn::wrapping(2),
        responder_resources: 1,
        initiator_depth: 1,
        rnr_retry_count: 7,
        target_ack_delay: 15,
    }
}
