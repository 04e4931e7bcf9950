// SPDX-License-Identifier: GPL-2.0-only

//! The node that is called: a listener with its backlog, from which `half_open.rs` takes slots as
//! here, and a program that accepts.

use std::collections::VecDeque;

use oxib_cm_machine::actions::{
    Actions,
    Outgoing,
    RemoteAction,
    Report,
    Send,
    SlotAction,
    TimerAction,
    SERVICE_TIMEOUT, //
};
use oxib_cm_machine::backlog::{
    Backlog,
    Cell,
    Outcome,
    Refused, //
    Slot,
};
use oxib_cm_machine::claim::{
    Adapter,
    Claims,
    Remote, //
};
use oxib_cm_machine::input::{
    Incoming,
    Rep,
    RepParam,
    Req, //
};
use oxib_cm_machine::source::Source;
use oxib_cm_machine::state::StateName;
use oxib_cm_machine::time::Time;
use oxib_cm_machine::Machine;
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::kind::Kind;
use oxib_wire::cm::reason::Reason;
use oxib_wire::cm::rej::Rejected;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;

use super::ground::{
    Body,
    Datagram,
    Outside,
    Timer, //
};
use crate::directory::Directory;
use crate::random::Random;
use crate::round_trip::{
    RoundTrips,
    UNHEARD, //
};

/// The number of candidates that are looked at: `LOOKED_AT` of `half_open.rs`.
const LOOKED_AT: u32 = 16;

const FIRST_NAME: u32 = 0x4000_0000;
const QPN: Qpn = Qpn::from_bytes([0, 2, 0]);

struct Id {
    machine: Machine,
    timer: Timer,
    /// The node that called, or the stranger.
    node: usize,
    slot: Option<Slot>,
    claims: Claims,
}

/// The most that a listener has kept at a time for connections that are not finished.
#[derive(Clone, Copy, Default, Debug)]
pub struct Kept {
    pub slots: usize,
    pub identifiers: usize,
    /// Entries of the tables of remote identifiers and remote queue pairs.
    pub names: usize,
    /// Cells of the backlog.
    pub cells: usize,
}

/// A rejection that any node can make up for one which calls the connection `sender`.
fn rejection(sender: CommId) -> Incoming {
    Incoming::Rej {
        sender,
        of: Rejected::Other,
        reason: Reason::TIMEOUT,
    }
}

pub struct Listener {
    ids: Vec<Id>,
    by_id: Directory<CommId>,
    by_qpn: Directory<Qpn>,
    round_trips: RoundTrips,
    backlog: Backlog<Vec<Cell>>,
    random: Random,
    /// Nodes that mean what they ask for: strangers have higher numbers.
    nodes: usize,
    /// Microseconds of the program for each request, and the requests that wait for it.
    program: u64,
    waiting: VecDeque<usize>,
    /// REQs that found no slot.
    pub dropped: u64,
    /// Rejections, but for those that tell a peer that its slot was taken away.
    pub rejected: u64,
    /// Rejections that tell a caller, not a stranger, that its slot was taken away.
    pub told: u64,
    /// Connections of callers, not strangers, that had to give their slots up.
    pub ousted: u64,
    /// Number of established connections.
    established: usize,
    /// Identifiers that are not idle: a consumer destroys an idle one at once.
    identifiers: usize,
    pub kept: Kept,
}

impl Listener {
    pub fn new(slots: u32, nodes: usize, program: u64, seed: u64) -> Listener {
        Listener {
            ids: Vec::new(),
            by_id: Directory::new(),
            by_qpn: Directory::new(),
            round_trips: RoundTrips::new(),
            backlog: Backlog::new(slots, Vec::new()),
            random: Random::new(seed),
            nodes,
            program,
            waiting: VecDeque::new(),
            dropped: 0,
            rejected: 0,
            told: 0,
            ousted: 0,
            established: 0,
            identifiers: 0,
            kept: Kept::default(),
        }
    }

    pub fn timer(&mut self, id: usize) -> &mut Timer {
        &mut self.ids[id].timer
    }

    /// A node that is gone by now had a slot from `begin` to `end`.
    pub fn pass(&mut self, begin: Time, outcome: Outcome, end: Time) {
        let name = CommId::new(1);
        let slot = self.hold(|backlog| backlog.take(source(0), name, begin));
        let mut slot = slot.expect("all are free");
        self.backlog.end(&mut slot, outcome, end);
    }

    /// Strangers that are gone by now took all slots, and lost each as soon as they might, until a
    /// holder had hardly any time. Returns when they lost the last one.
    pub fn crowd(&mut self, begin: Time) -> Time {
        let mut now = begin;
        while self.backlog.time_to_finish() >= 100 {
            let end = now.after(self.backlog.time_to_finish());
            let name = CommId::new(1);
            let mut held: Vec<Slot> = (1..)
                .map_while(|node| self.hold(|backlog| backlog.take(source(node), name, now)))
                .collect();
            for slot in &mut held {
                self.backlog.end(slot, Outcome::Failed, end);
            }
            now = end;
        }
        now
    }

    pub fn receive(&mut self, datagram: Datagram, outside: &mut Outside) {
        let (id, incoming) = match datagram.body {
            Body::Answer(incoming) => (index(datagram.receiver.get()), incoming),
            Body::Req(req) => match self.asked_by(&req, datagram.from) {
                Some(id) => (id, Incoming::DuplicateReq),
                None => return self.accept(&req, datagram.from, outside),
            },
            Body::Rejection(req) => match self.asked_by(&req, datagram.from) {
                Some(id) => (id, rejection(req.sender)),
                None => return,
            },
        };
        let actions = self.ids[id].machine.receive(&incoming, outside.now());
        self.act(id, &actions, outside);
    }

    /// The connection that a REQ has made before.
    fn asked_by(&self, req: &Req, node: usize) -> Option<usize> {
        let name = Remote {
            name: req.sender,
            adapter: adapter(node),
        };
        self.by_id.get(&name).map(index)
    }

    /// A slot for a connection that is new.
    fn take_slot(&mut self, node: usize, name: CommId, outside: &mut Outside) -> Option<Slot> {
        let source = source(node);
        let slot = self.hold(|backlog| backlog.take(source, name, outside.now()));
        if slot.is_some() {
            return slot;
        }
        if !self.backlog.may_take_over(source) {
            return None;
        }
        for _ in 0..LOOKED_AT {
            let chance = self.random.below(1 << 32) as u32;
            let holder = self.backlog.candidate(source, chance);
            if holder.is_some_and(|name| self.gives_up_slot(name, outside)) {
                return self.hold(|backlog| backlog.take_over(source, name, outside.now()));
            }
        }
        None
    }

    fn hold(
        &mut self,
        take: impl Fn(&mut Backlog<Vec<Cell>>) -> Result<Slot, Refused>,
    ) -> Option<Slot> {
        loop {
            match take(&mut self.backlog) {
                Ok(slot) => return Some(slot),
                Err(Refused::Full) => return None,
                Err(Refused::Memory(cells)) => {
                    self.kept.cells = self.kept.cells.max(cells);
                    self.backlog.grow(vec![Cell::default(); cells]);
                }
            }
        }
    }

    fn gives_up_slot(&mut self, name: CommId, outside: &mut Outside) -> bool {
        let id = index(name.get());
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
        let Some(slot) = self.take_slot(node, local, outside) else {
            self.dropped += 1;
            return;
        };
        let (machine, actions) = Machine::accept_req(local, req, outside.now());
        let mut claims = Claims::default();
        let claimed = claims.claim(
            local,
            adapter(node),
            (&self.by_id, req.sender, ()),
            (&self.by_qpn, req.qpn, ()),
        );
        claimed.expect("nobody uses a queue pair twice");
        self.ids.push(Id {
            machine,
            timer: Timer::default(),
            node,
            slot: Some(slot),
            claims,
        });
        self.identifiers += 1;
        self.count();
        self.act(id, &actions, outside);
    }

    /// Counts what is kept, less the established connections with two names each.
    fn count(&mut self) {
        let names = self.by_id.len() + self.by_qpn.len();
        let kept = &mut self.kept;
        kept.slots = kept.slots.max(self.backlog.taken() as usize);
        kept.identifiers = kept.identifiers.max(self.identifiers - self.established);
        kept.names = kept.names.max(names - 2 * self.established);
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
        if actions.slot != SlotAction::Keep {
            let found = &mut self.ids[id];
            let failed = actions.slot == SlotAction::End(Outcome::Failed);
            self.ousted += u64::from(failed && found.node < self.nodes);
            self.established += usize::from(actions.slot == SlotAction::End(Outcome::Finished));
            let mut slot = found.slot.take().expect("it had one");
            match actions.slot {
                SlotAction::End(outcome) => self.backlog.end(&mut slot, outcome, outside.now()),
                _ => self.backlog.give_back(&mut slot),
            }
        }
        if actions.remote == RemoteAction::Forget {
            let ours = CommId::new(FIRST_NAME + id as u32);
            let claims = &mut self.ids[id].claims;
            claims.release(ours, &self.by_id, &self.by_qpn);
            assert_eq!(self.ids[id].machine.name(), StateName::Idle);
            self.identifiers -= 1;
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
        let is_caller = self.ids[id].node < self.nodes;
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
                let is_time_out = reason == Reason::TIMEOUT;
                self.rejected += u64::from(!is_time_out);
                self.told += u64::from(is_time_out && is_caller);
                let sender = local;
                (Kind::Rej, Incoming::Rej { sender, of, reason })
            }
            other => panic!("{other:?} is sent by no end that accepts"),
        };
        // The cable to strangers is their own.
        if !is_caller {
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

/// Returns the index of an identifier, by our name for it.
fn index(name: u32) -> usize {
    (name - FIRST_NAME) as usize
}

/// The channel adapter of a node, and its address: each node has its own.
fn adapter(node: usize) -> Adapter {
    Adapter {
        guid: node as u64,
        source: Source::new(1 + node as u32, 0, None),
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
