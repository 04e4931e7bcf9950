// SPDX-License-Identifier: GPL-2.0-only

//! The node that is called: a listener with its backlog, from which `half_open.rs` takes places as
//! here, and a program that accepts.

use std::collections::{
    BTreeMap,
    VecDeque, //
};

use oxib_cm_machine::actions::{
    Actions,
    Outgoing,
    RemoteAction,
    Report,
    Send,
    TimerAction,
    SERVICE_TIMEOUT, //
};
use oxib_cm_machine::backlog::{
    Backlog,
    Cell,
    Outcome,
    Place,
    Refused, //
};
use oxib_cm_machine::input::{
    Incoming,
    Rep,
    RepParam,
    Req, //
};
use oxib_cm_machine::time::Time;
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
use crate::random::Random;
use crate::round_trip::{
    RoundTrips,
    UNHEARD, //
};

/// `LOOKED_AT` of `half_open.rs`.
const LOOKED_AT: u32 = 16;

const FIRST_NAME: u32 = 0x4000_0000;
const QPN: Qpn = Qpn::from_bytes([0, 2, 0]);

struct Id {
    machine: Machine,
    timer: Timer,
    /// The node that called, or the stranger.
    node: usize,
    place: Option<Place>,
}

pub struct Listener {
    ids: Vec<Id>,
    by_peer: BTreeMap<CommId, usize>,
    round_trips: RoundTrips,
    backlog: Backlog<Vec<Cell>>,
    random: Random,
    /// Nodes that mean what they ask for: strangers have higher numbers.
    nodes: usize,
    /// Microseconds of the program for each request, and the requests that wait for it.
    program: u64,
    waiting: VecDeque<usize>,
    /// REQs that found no place.
    pub dropped: u64,
    pub rejected: u64,
    /// Connections of those who mean it that had to give their places up.
    pub ousted: u64,
    /// The most places that were taken at a time.
    pub most_taken: u32,
}

impl Listener {
    pub fn new(places: u32, nodes: usize, program: u64, seed: u64) -> Listener {
        Listener {
            ids: Vec::new(),
            by_peer: BTreeMap::new(),
            round_trips: RoundTrips::new(),
            backlog: Backlog::new(places, Vec::new()),
            random: Random::new(seed),
            nodes,
            program,
            waiting: VecDeque::new(),
            dropped: 0,
            rejected: 0,
            ousted: 0,
            most_taken: 0,
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
                None => return self.accept(&req, datagram.from, outside),
            },
            Body::Answer(_) => (datagram.receiver.get() - FIRST_NAME) as usize,
        };
        let actions = self.ids[id].machine.receive(&incoming, outside.now());
        self.act(id, &actions, outside);
    }

    /// A place for a connection that is new.
    fn place(&mut self, node: usize, name: CommId, outside: &mut Outside) -> Option<Place> {
        let source = source(node);
        let place = self.hold(|backlog| backlog.take(source, name, outside.now()));
        if place.is_some() {
            return place;
        }
        if !self.backlog.may_take_over(source) {
            return None;
        }
        for _ in 0..LOOKED_AT {
            let chance = self.random.below(1 << 32) as u32;
            let holder = self.backlog.candidate(source, chance);
            if holder.is_some_and(|name| self.gives_up_place(name, outside)) {
                return self.hold(|backlog| backlog.take_over(source, name, outside.now()));
            }
        }
        None
    }

    fn hold(
        &mut self,
        take: impl Fn(&mut Backlog<Vec<Cell>>) -> Result<Place, Refused>,
    ) -> Option<Place> {
        loop {
            match take(&mut self.backlog) {
                Ok(place) => return Some(place),
                Err(Refused::Full) => return None,
                Err(Refused::Memory(cells)) => {
                    self.backlog.grow(vec![Cell::default(); cells]);
                }
            }
        }
    }

    fn gives_up_place(&mut self, name: CommId, outside: &mut Outside) -> bool {
        let id = (name.get() - FIRST_NAME) as usize;
        let time = self.backlog.time_to_finish();
        let machine = &mut self.ids[id].machine;
        let has_had = |asked: Time| outside.now().since(asked) >= time;
        if !machine.asked_at().is_some_and(has_had) {
            return false;
        }
        let actions = machine.give_up();
        self.act(id, &actions, outside);
        true
    }

    /// A REQ that is new.
    fn accept(&mut self, req: &Req, node: usize, outside: &mut Outside) {
        let id = self.ids.len();
        let local = CommId::new(FIRST_NAME + id as u32);
        let Some(place) = self.place(node, local, outside) else {
            self.dropped += 1;
            return;
        };
        self.most_taken = self.most_taken.max(self.backlog.taken());
        let (machine, actions) = Machine::accept_req(local, req, outside.now());
        let timer = Timer::default();
        self.ids.push(Id {
            machine,
            timer,
            node,
            place: Some(place),
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
            let found = &mut self.ids[id];
            let outcome = Outcome::of(actions);
            if outcome == Some(Outcome::Failed) && found.node < self.nodes {
                self.ousted += 1;
            }
            let mut place = found.place.take().expect("it had one");
            match outcome {
                Some(outcome) => self.backlog.end(&mut place, outcome, outside.now()),
                None => self.backlog.give_back(&mut place),
            }
        }
        if actions.remote == RemoteAction::Forget {
            self.by_peer.remove(&self.ids[id].machine.ids().1);
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
        // The cable to strangers is their own.
        if self.ids[id].node >= self.nodes {
            return;
        }
        outside.send(Datagram {
            from: 0,
            kind,
            receiver,
            body: Body::Answer(answer),
        });
    }
}

/// A source as the backlog knows it.
fn source(node: usize) -> u32 {
    (node as u32).wrapping_mul(0x9e37_79b9).rotate_left(16)
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
