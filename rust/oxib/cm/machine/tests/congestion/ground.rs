// SPDX-License-Identifier: GPL-2.0-only

//! A node that is called and the nodes that call it, one processor on either side, the cable
//! between them, strangers that only ask, and time in microseconds.

use std::collections::{
    BTreeMap,
    VecDeque, //
};

use oxib_cm_machine::actions::TimerAction;
use oxib_cm_machine::backlog::Outcome;
use oxib_cm_machine::input::{
    Incoming,
    Req, //
};
use oxib_cm_machine::time::Time;
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::kind::Kind;

use super::caller::{
    strangers_req,
    Caller, //
};
use super::listener::Listener;
use crate::random::Random;

/// Datagrams that a management queue pair has room for (`ib_mad`'s default).
const ROOM: usize = 512;

/// Microseconds that a datagram is on its way.
const CABLE: u64 = 10;

/// A bound on the work of a run: storms end long before.
const MOST_EVENTS: u64 = 20_000_000;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    Caller,
    Listener,
}

#[derive(Clone, Copy, Debug)]
pub enum Body {
    Req(Req),
    Answer(Incoming),
    /// A rejection of what the listener answered to that request, of which it does not give the
    /// name.
    Rejection(Req),
}

/// A message between two nodes.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// The number of the node that it comes from: callers first, then strangers.
    pub from: usize,
    pub kind: Kind,
    /// The receiver's name for the connection, as far as the sender knows it.
    pub receiver: CommId,
    pub body: Body,
}

/// An event that happens later.
#[derive(Clone, Copy, Debug)]
enum Event {
    Arrive(End, Datagram),
    /// A processor has dealt with a datagram.
    Handled(End),
    /// The timer of an identifier goes off, if it has not been set again since.
    Timer(End, usize, u64),
    /// The listener's program has dealt with a request.
    Served,
    /// The next connection is opened.
    Connect,
    /// A stranger sends a request.
    Ask,
    /// A stranger rejects what it asked for, and asks again.
    Reject(usize, Req),
}

/// The costs of a storm, its size and its limits.
#[derive(Clone, Copy, Debug)]
pub struct Storm {
    /// Connections that are opened at once.
    pub clients: usize,
    /// Nodes that open them, as many each.
    pub nodes: usize,
    /// Microseconds from one opening to the next.
    pub pause: u64,
    /// Number of strangers, which ask by turns and never finish.
    pub strangers: usize,
    /// Microseconds from one request of theirs to the next.
    pub strangers_pause: u64,
    /// Microseconds after which a stranger rejects what it asked for and asks again; 0: it does
    /// not.
    pub strangers_patience: u64,
    /// `half_open` of the listener's node.
    pub slots: u32,
    /// Microseconds of a node's processor for each datagram that arrives.
    pub datagram: u64,
    /// Microseconds of the listener's program for each request.
    pub program: u64,
    /// Datagrams of a thousand that the cable loses, in each direction.
    pub loss: u64,
    pub seed: u64,
}

/// The timer of an identifier.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer {
    pub due: Option<Time>,
    generation: u64,
}

/// Effects of a node on the world outside.
pub struct Outside {
    now: u64,
    end: End,
    loss: u64,
    random: Random,
    events: BTreeMap<(u64, u64), Event>,
    planned: u64,
    pub sent: BTreeMap<(End, u16), u64>,
}

impl Outside {
    pub fn now(&self) -> Time {
        Time::new(1 + self.now / 1000)
    }

    pub fn micros(&self) -> u64 {
        self.now
    }

    fn plan(&mut self, at: u64, event: Event) {
        self.planned += 1;
        self.events.insert((at.max(self.now), self.planned), event);
    }

    pub fn send(&mut self, datagram: Datagram) {
        *self
            .sent
            .entry((self.end, datagram.kind.get()))
            .or_default() += 1;
        if self.random.below(1000) < self.loss {
            return;
        }
        let to = match self.end {
            End::Caller => End::Listener,
            End::Listener => End::Caller,
        };
        self.plan(self.now + CABLE, Event::Arrive(to, datagram));
    }

    pub fn set(&mut self, timer: &mut Timer, id: usize, action: TimerAction) {
        let due = match action {
            TimerAction::Keep => return,
            TimerAction::Stop => None,
            TimerAction::At(due) => Some(due),
        };
        timer.generation += 1;
        timer.due = due;
        if let Some(due) = due {
            let at = (due.get() - 1) * 1000;
            self.plan(
                at.max(self.now + 1000),
                Event::Timer(self.end, id, timer.generation),
            );
        }
    }

    /// The program is busy with a request from now on.
    pub fn serve(&mut self, micros: u64) {
        self.plan(self.now + micros, Event::Served);
    }
}

/// A management queue pair and the processor that empties it.
#[derive(Default)]
struct Inbox {
    waiting: VecDeque<Datagram>,
    busy: bool,
    overrun: u64,
}

pub struct Ground {
    storm: Storm,
    outside: Outside,
    inboxes: BTreeMap<End, Inbox>,
    /// Number of the strangers' requests.
    pub asked: usize,
    pub caller: Caller,
    pub listener: Listener,
}

impl Ground {
    pub fn new(storm: Storm) -> Ground {
        Ground {
            storm,
            outside: Outside {
                now: 0,
                end: End::Caller,
                loss: storm.loss,
                random: Random::new(storm.seed),
                events: BTreeMap::new(),
                planned: 0,
                sent: BTreeMap::new(),
            },
            asked: 0,
            inboxes: BTreeMap::from([
                (End::Caller, Inbox::default()),
                (End::Listener, Inbox::default()),
            ]),
            caller: Caller::new(storm.nodes),
            listener: Listener::new(storm.slots, storm.nodes, storm.program, storm.seed),
        }
    }

    /// Opens all connections at once, and lets everything happen until each is up or has failed.
    pub fn connect_all(&mut self) {
        self.outside.end = End::Caller;
        let begin = self.outside.now;
        self.caller.began = begin;
        self.caller.wanted += self.storm.clients;
        for client in 0..self.storm.clients as u64 {
            match self.storm.pause {
                0 => self.caller.connect(&mut self.outside),
                pause => self.outside.plan(begin + client * pause, Event::Connect),
            }
        }
        self.run();
    }

    /// A connection of earlier has failed, after so many milliseconds.
    pub fn fail_before(&mut self, milliseconds: u64) {
        let begin = self.outside.now();
        self.outside.now += 1000 * milliseconds;
        let end = self.outside.now();
        self.listener.pass(begin, Outcome::Failed, end);
    }

    /// An attack has ended so many seconds ago. Since then one connection a second was made.
    pub fn attack_before(&mut self, seconds: u64) {
        let begin = self.outside.now();
        let end = self.listener.crowd(begin);
        self.outside.now += 1000 * end.since(begin);
        for _ in 0..seconds {
            let begin = self.outside.now();
            self.listener.pass(begin, Outcome::Finished, begin.after(2));
            self.outside.now += 1_000_000;
        }
    }

    /// Lets the strangers ask for so many microseconds before a caller connects.
    pub fn ask_before(&mut self, micros: u64) {
        self.outside.plan(0, Event::Ask);
        while self.outside.now < micros {
            self.step();
        }
    }

    fn step(&mut self) {
        let ((at, _), event) = self.outside.events.pop_first().expect("something happens");
        self.outside.now = at;
        self.happen(event);
    }

    /// A request of the next stranger's arrives.
    fn ask(&mut self) {
        let from = self.storm.nodes + self.asked % self.storm.strangers;
        let req = strangers_req(self.asked);
        self.asked += 1;
        self.arrive_from(from, Kind::Req, Body::Req(req));
        if self.storm.strangers_patience > 0 {
            let over = self.outside.now + self.storm.strangers_patience;
            self.outside.plan(over, Event::Reject(from, req));
        }
    }

    /// A stranger's message arrives, which gives no name of the listener's.
    fn arrive_from(&mut self, from: usize, kind: Kind, body: Body) {
        let datagram = Datagram {
            from,
            kind,
            receiver: CommId::ZERO,
            body,
        };
        self.arrive(End::Listener, datagram);
    }

    fn run(&mut self) {
        for _ in 0..MOST_EVENTS {
            if self.caller.is_settled() {
                return;
            }
            self.step();
        }
        panic!("the storm does not end: {:?}", self.storm);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(end, datagram) => self.arrive(end, datagram),
            Event::Handled(end) => {
                let inbox = self.inboxes.get_mut(&end).expect("each end has one");
                let datagram = inbox.waiting.pop_front().expect("one is being handled");
                inbox.busy = false;
                self.outside.end = end;
                match end {
                    End::Caller => self.caller.receive(datagram, &mut self.outside),
                    End::Listener => self.listener.receive(datagram, &mut self.outside),
                }
                self.handle_next(end);
            }
            Event::Timer(end, id, generation) => {
                self.outside.end = end;
                let timer = match end {
                    End::Caller => self.caller.timer(id),
                    End::Listener => self.listener.timer(id),
                };
                if timer.generation == generation {
                    match end {
                        End::Caller => self.caller.expire(id, &mut self.outside),
                        End::Listener => self.listener.expire(id, &mut self.outside),
                    }
                }
            }
            Event::Served => {
                self.outside.end = End::Listener;
                self.listener.served(&mut self.outside);
            }
            Event::Connect => {
                self.outside.end = End::Caller;
                self.caller.connect(&mut self.outside);
            }
            Event::Ask => {
                self.ask();
                let next = self.outside.now + self.storm.strangers_pause;
                // Who rejects asks again then.
                if self.storm.strangers_patience == 0 || self.asked < self.storm.strangers {
                    self.outside.plan(next, Event::Ask);
                }
            }
            Event::Reject(from, req) => {
                self.arrive_from(from, Kind::Rej, Body::Rejection(req));
                self.ask();
            }
        }
    }

    fn arrive(&mut self, end: End, datagram: Datagram) {
        let inbox = self.inboxes.get_mut(&end).expect("each end has one");
        if inbox.waiting.len() == ROOM {
            inbox.overrun += 1;
            return;
        }
        inbox.waiting.push_back(datagram);
        self.handle_next(end);
    }

    fn handle_next(&mut self, end: End) {
        let inbox = self.inboxes.get_mut(&end).expect("each end has one");
        if !inbox.busy && !inbox.waiting.is_empty() {
            inbox.busy = true;
            let at = self.outside.now + self.storm.datagram;
            self.outside.plan(at, Event::Handled(end));
        }
    }

    /// The cable loses so many datagrams of a thousand from now on.
    pub fn lose(&mut self, loss: u64) {
        self.outside.loss = loss;
    }

    /// Milliseconds that the whole storm took.
    pub fn took(&self) -> u64 {
        (self.outside.now - self.caller.began) / 1000
    }

    /// Messages of a kind that an end has sent.
    pub fn sent(&self, end: End, kind: Kind) -> u64 {
        let sent = self.outside.sent.get(&(end, kind.get()));
        sent.copied().unwrap_or(0)
    }

    /// Datagrams that found no room at an end.
    pub fn overrun(&self, end: End) -> u64 {
        self.inboxes[&end].overrun
    }
}
