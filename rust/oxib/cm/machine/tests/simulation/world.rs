// SPDX-License-Identifier: GPL-2.0-only

//! Both ends, the network between them, and time.

use std::collections::BTreeMap;

use oxib_cm_machine::actions::{
    Actions,
    Failure,
    RemoteAction,
    Report,
    Send,
    SlotAction,
    TimerAction, //
};
use oxib_cm_machine::claim::Taken;
use oxib_cm_machine::input::{
    Incoming,
    QpType,
    RepParam,
    ReqParam, //
};
use oxib_cm_machine::state::StateName;
use oxib_cm_machine::time::Time;
use oxib_cm_machine::{
    Machine,
    Refused, //
};
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::kind::Kind;
use oxib_wire::cm::mtu::Mtu;
use oxib_wire::cm::reason::Reason;
use oxib_wire::pkey::Pkey;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;

use super::consumer::{
    Call,
    Plan,
    Temper, //
};
use super::network::{
    Body,
    Network,
    Origin,
    Packet,
    Side,
    Weather, //
};
use super::node::{
    reject_stale,
    release_unknown,
    Node, //
};
use super::record::Waits;
use crate::allowed;
use crate::random::Random;

/// The parameters that a schedule is drawn from.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub loss: u64,
    pub duplicates: u64,
    pub longest_delay: u64,
    pub temper: Temper,
    pub connections: u64,
}

/// An event at a time that someone has chosen.
#[derive(Clone, Copy, Debug)]
enum Task {
    Connect,
    Call(Side, u32, Call),
}

/// Both ends, the network between them, and their consumers' plans.
pub struct World {
    scenario: Scenario,
    pub random: Random,
    pub now: Time,
    network: Network,
    /// The sender of the message that is being handled.
    source: Origin,
    pub active: Node,
    pub passive: Node,
    tasks: BTreeMap<(Time, u64), Task>,
    planned: u64,
    /// Number of messages sent, of each kind.
    pub sent: BTreeMap<Kind, u32>,
    /// Messages that told strangers the names of connections that are not theirs.
    pub revealed: Vec<Packet>,
}

impl World {
    pub fn new(scenario: Scenario, random: Random) -> World {
        let willing = scenario.temper != Temper::Any;
        let mut world = World {
            scenario,
            random,
            now: Time::new(1),
            source: Origin::Peer,
            network: Network::new(Weather {
                loss: scenario.loss,
                duplicates: scenario.duplicates,
                longest_delay: scenario.longest_delay,
                losses_in_a_row: willing.then_some(2),
            }),
            active: Node::new(Side::Active),
            passive: Node::new(Side::Passive),
            tasks: BTreeMap::new(),
            planned: 0,
            sent: BTreeMap::new(),
            revealed: Vec::new(),
        };
        for number in 0..scenario.connections {
            let after = number * world.random.below(20_000);
            world.plan(Task::Connect, after);
        }
        world
    }

    fn plan(&mut self, task: Task, after: u64) {
        self.planned += 1;
        let when = self.now.after(after);
        self.tasks.insert((when, self.planned), task);
    }

    fn plan_all(&mut self, side: Side, name: u32, plan: Plan) {
        for (call, after) in plan {
            self.plan(Task::Call(side, name, call), after);
        }
    }

    pub fn node(&mut self, side: Side) -> &mut Node {
        match side {
            Side::Active => &mut self.active,
            Side::Passive => &mut self.passive,
        }
    }

    /// Lets everything happen, in the order of time, until nothing more does.
    pub fn run(&mut self) {
        for _ in 0..20_000 {
            if !self.step_on() {
                return;
            }
        }
        panic!("it does not come to an end");
    }

    /// Lets the next thing happen; whether there was one.
    pub fn step_on(&mut self) -> bool {
        let timer = self.next_timer();
        let task = self.tasks.keys().next().map(|(time, _)| *time);
        let arrival = self.network.next();
        let times = [timer.map(|(time, ..)| time), task, arrival];
        let Some(next) = times.into_iter().flatten().min() else {
            return false;
        };
        assert!(next >= self.now);
        self.now = next;
        if arrival == Some(next) {
            let packet = self.network.arrive().expect("a message arrives");
            self.deliver(packet);
        } else if task == Some(next) {
            let (_, task) = self.tasks.pop_first().expect("there is a task");
            self.perform(task);
        } else if let Some((_, side, name)) = timer {
            self.expire(side, name);
        }
        true
    }

    fn next_timer(&self) -> Option<(Time, Side, u32)> {
        [&self.active, &self.passive]
            .into_iter()
            .flat_map(|node| node.ids.iter().map(move |(name, id)| (node.side, name, id)))
            .filter_map(|(side, name, id)| Some((id.timer?, side, *name)))
            .min()
    }

    fn perform(&mut self, task: Task) {
        match task {
            Task::Connect => self.connect(),
            Task::Call(side, name, call) => self.call(side, name, call),
        }
    }

    fn params(&mut self) -> (ReqParam, RepParam) {
        let willing = self.scenario.temper != Temper::Any;
        let fair = willing && self.scenario.loss == 0 && self.scenario.duplicates == 0;
        let random = &mut self.random;
        // Enough tries for what the network may lose in a row, if it has to be enough.
        let retries = if willing {
            7 + random.below(9)
        } else {
            random.below(16)
        };
        let exponent = |random: &mut Random| {
            let least = if willing { 17 } else { 8 };
            (least + random.below(21 - least)) as u8
        };
        let rto = if fair {
            200
        } else {
            20 + random.below(100) as u32
        };
        let req = ReqParam {
            qp_type: random.choose(&[QpType::Rc, QpType::Uc]),
            qpn: Qpn::from_bytes([0, 1, random.below(2) as u8]),
            psn: Psn::wrapping(1),
            pkey: Pkey::DEFAULT,
            mtu: Mtu::new(3),
            responder_resources: 1,
            initiator_depth: 1,
            retry_count: 7,
            packet_life_time: 10 + random.below(8) as u8,
            alternate_life_time: None,
            remote_response_timeout: exponent(random),
            local_response_timeout: exponent(random),
            retries: retries as u8,
            rto,
        };
        let rep = RepParam {
            qpn: Qpn::from_bytes([0, 2, random.below(2) as u8]),
            psn: Psn::wrapping(2),
            responder_resources: 1,
            initiator_depth: 1,
            rto,
        };
        (req, rep)
    }

    fn connect(&mut self) {
        let (req, rep) = self.params();
        let machine = Machine::new(self.active.next_name());
        let waits = Waits::asking(&req);
        let name = self.active.insert(machine, Origin::Peer, (req, rep), waits);
        let plan = self.scenario.temper.begin(&mut self.random);
        self.plan_all(Side::Active, name, plan);
        let now = self.now;
        self.step(Side::Active, name, |machine| machine.send_req(&req, now));
    }

    fn call(&mut self, side: Side, name: u32, call: Call) {
        let now = self.now;
        let Some(id) = self.node(side).living(name) else {
            return;
        };
        let (rep, rto) = (id.rep, id.req.rto);
        let accepted = self.step(side, name, |machine| match call {
            Call::SendRep => machine.send_rep(&rep, now),
            Call::SendRtu => machine.send_rtu(),
            Call::SendDreq => machine.send_dreq(rto, now),
            Call::SendDrep => machine.send_drep(now),
            Call::SendRej => machine.send_rej(Reason::CONSUMER_DEFINED, now),
            Call::PrepareMra => machine.prepare_mra(),
            Call::Established => machine.established(),
            Call::Destroy => Ok(machine.destroy(false)),
            Call::DestroyNoMemory => Ok(machine.destroy(true)),
        });
        match call {
            Call::Destroy | Call::DestroyNoMemory => {
                let node = self.node(side);
                if let Some(id) = node.living(name) {
                    assert_eq!(id.machine.name(), StateName::Idle);
                    id.destroyed = true;
                }
            }
            Call::SendRtu if accepted => {
                let plan = self.scenario.temper.connected(&mut self.random);
                self.plan_all(side, name, plan);
            }
            _ => {}
        }
    }

    fn expire(&mut self, side: Side, name: u32) {
        let now = self.now;
        let id = self.node(side).living(name);
        let id = id.expect("an identifier without a consumer has no timer");
        // It has gone off.
        id.timer = None;
        let measured = id.req.rto;
        // Answers to others may take so long that no request is late.
        let is_slow = self.scenario.loss > 0 && self.random.percent(10);
        let rto = if is_slow { u32::MAX } else { measured };
        self.step(side, name, |machine| Ok(machine.timer(rto, now)));
    }

    /// A message arrives, from any sender.
    pub fn deliver(&mut self, packet: Packet) {
        self.source = packet.from;
        let found = self.node(packet.to).find(&packet);
        if found.is_none_or(|name| self.node(packet.to).may_hear(name, &packet)) {
            self.dispatch(found, packet);
        }
        self.source = Origin::Peer;
    }

    fn dispatch(&mut self, found: Option<u32>, packet: Packet) {
        match (found, packet.body) {
            (Some(name), Body::Req(_)) => self.receive(packet.to, name, Incoming::DuplicateReq),
            (None, Body::Req(_)) => self.accept(packet),
            (Some(name), Body::Answer(Incoming::Rep(_))) => self.reply(name, packet),
            (Some(name), Body::Answer(message)) => self.receive(packet.to, name, message),
            (None, Body::Answer(_)) => {
                if let Some(answer) = release_unknown(&packet) {
                    self.send(answer, self.source);
                }
            }
        }
    }

    fn receive(&mut self, side: Side, name: u32, message: Incoming) {
        let now = self.now;
        self.step(side, name, |machine| Ok(machine.receive(&message, now)));
    }

    /// A REQ that is not known.
    fn accept(&mut self, packet: Packet) {
        let Body::Req(req) = packet.body else { return };
        let local = self.passive.next_name();
        let names = (req.sender, req.qpn);
        let claims = match self.passive.claim(local, &packet, names) {
            Ok(claims) => claims,
            Err(taken) => return self.refuse(packet, taken),
        };
        let params = self.params();
        let (machine, actions) = Machine::accept_req(local, &req, self.now);
        let waits = Waits::asked(&req);
        let name = self.passive.insert(machine, packet.from, params, waits);
        self.passive.ids.get_mut(&name).expect("it is new").claims = claims;
        self.passive.half_open += 1;
        let plan = self.scenario.temper.begin(&mut self.random);
        self.plan_all(Side::Passive, name, plan);
        self.act(Side::Passive, name, &actions);
    }

    /// A REP for an identifier.
    fn reply(&mut self, name: u32, packet: Packet) {
        let Body::Answer(message @ Incoming::Rep(rep)) = packet.body else {
            return;
        };
        let node = self.node(packet.to);
        if let Some(qpn) = node.ids[&name].machine.takes_rep(&rep) {
            match node.claim(CommId::new(name), &packet, (rep.sender, qpn)) {
                Ok(claims) => node.living(name).expect("it was found").claims = claims,
                Err(taken) => return self.refuse(packet, taken),
            }
        }
        self.receive(packet.to, name, message);
    }

    /// A message gives a name that another connection has. If that is the queue pair, the other
    /// connection is over without our having been told. Strangers have no say in that.
    fn refuse(&mut self, packet: Packet, taken: Taken) {
        if let Taken::Qpn(other) = taken {
            self.send(reject_stale(&packet), packet.from);
            assert_eq!(self.node(packet.to).ids[&other.get()].peer, packet.from);
            self.call(packet.to, other.get(), Call::SendDreq);
        }
    }

    /// Sends a message. Messages to strangers are not delivered, but checked for the names of
    /// others.
    fn send(&mut self, packet: Packet, to: Origin) {
        if to == Origin::Stranger {
            let sender = packet.sender().get();
            let id = self.node(packet.to.other()).living(sender);
            if id.is_some_and(|id| id.peer == Origin::Peer) {
                self.revealed.push(packet);
            }
            return;
        }
        *self.sent.entry(packet.kind).or_insert(0) += 1;
        self.network.send(packet, self.now, &mut self.random);
    }

    /// Lets a machine take a step, does what it asks for, and looks whether it may.
    fn step(
        &mut self,
        side: Side,
        name: u32,
        transition: impl FnOnce(&mut Machine) -> Result<Actions, Refused>,
    ) -> bool {
        let node = self.node(side);
        let id = node.living(name).expect("only living identifiers step");
        let before = id.machine.name();
        let qpn = id.machine.remote_qpn().or(id.peer_qpn);
        let Ok(actions) = transition(&mut id.machine) else {
            assert_eq!(id.machine.name(), before);
            return false;
        };
        let after = id.machine.name();
        assert!(
            before == after || allowed::is_allowed(before, after),
            "{before} to {after}"
        );
        id.peer_qpn = id.machine.remote_qpn().or(qpn);
        self.act(side, name, &actions);
        true
    }

    /// Does what a machine asks for.
    fn act(&mut self, side: Side, name: u32, actions: &Actions) {
        self.send_for(side, name, actions);
        self.keep(side, name, actions);
        self.report(side, name, actions);
    }

    fn send_for(&mut self, side: Side, name: u32, actions: &Actions) {
        let (now, node) = (self.now, self.node(side));
        let packet = match actions.send {
            None => return,
            Some(Send::New(outgoing)) => {
                let packet = node.build(name, outgoing);
                node.keep_request(name, packet, now);
                packet
            }
            // To where the duplicate came from.
            Some(Send::Saved(outgoing)) => {
                let packet = node.build(name, outgoing);
                return self.send(packet, self.source);
            }
            Some(Send::Again) => {
                let id = node.ids.get_mut(&name).expect("it has just stepped");
                let request = id.request.as_mut().expect("the request has been kept");
                request.repeat(now);
                request.packet
            }
        };
        let to = self.node(side).ids[&name].peer;
        self.send(packet, to);
    }

    /// Timer, tables and kept request.
    fn keep(&mut self, side: Side, name: u32, actions: &Actions) {
        let (now, node) = (self.now, self.node(side));
        if actions.remote == RemoteAction::Forget {
            node.forget(name);
        }
        if actions.slot != SlotAction::Keep {
            node.half_open -= 1;
        }
        let id = node.ids.get_mut(&name).expect("it has just stepped");
        match actions.timer {
            TimerAction::Keep => {}
            TimerAction::Stop => id.timer = None,
            TimerAction::At(time) => id.timer = Some(time),
        }
        assert_eq!(id.timer, id.machine.due());
        if let Some(request) = &mut id.request {
            if let Some(sample) = actions.rtt_sample {
                assert_eq!(u64::from(sample.milliseconds), now.since(request.first));
            }
            if actions.report == Some(Report::MraReceived) {
                request.put_off = Some(now);
            }
            if actions.report.is_some_and(is_time_out) {
                request.fail(now);
            }
        } else {
            assert_eq!(actions.rtt_sample, None);
        }
        if !id.machine.awaits_answer() {
            id.request = None;
        }
    }

    fn report(&mut self, side: Side, name: u32, actions: &Actions) {
        let Some(report) = actions.report else { return };
        let temper = self.scenario.temper;
        let plan = temper.answer(report, &mut self.random);
        let node = self.node(side);
        let id = node.living(name).expect("only living identifiers report");
        id.reports.add(report);
        self.plan_all(side, name, plan);
    }
}

fn is_time_out(report: Report) -> bool {
    [
        Report::ReqError(Failure::Timeout),
        Report::RepError(Failure::Timeout),
        Report::DreqError(Failure::Timeout),
    ]
    .contains(&report)
}
