// SPDX-License-Identifier: GPL-2.0-only

//! An adapter without a subnet, which is asked directly.

use super::{
    adapter,
    no_counts, //
};
use oxib_softib_fabric::{
    Events,
    Node,
    Outcome,
    Port, //
};
use oxib_wire::lid::Lid;
use oxib_wire::mad::{
    Header,
    Subject,
    CLASS_SUBNET_LID,
    METHOD_GET,
    METHOD_GET_RESP,
    METHOD_SET, //
};
use oxib_wire::smp::port::PortInfo;
use oxib_wire::smp::{
    Attribute,
    Smp,
    LEN, //
};

/// An adapter alone, asked by itself.
pub struct Alone {
    pub node: Node<Vec<Port>>,
    /// The time that the agent is told, in nanoseconds.
    pub time: u64,
}

impl Alone {
    pub fn new() -> Alone {
        Alone {
            node: adapter(0x100, 2),
            time: 0,
        }
    }

    pub fn smp(method: u8, attribute: u16, modifier: u32) -> Smp {
        let subject = Subject {
            class: CLASS_SUBNET_LID,
            class_version: 1,
            method,
            tid: 7,
            attribute,
            modifier,
        };
        Smp::new(Header::new(subject), 0)
    }

    pub fn process(&mut self, smp: &Smp) -> (Outcome, Smp, Events) {
        self.process_at(1, smp)
    }

    pub fn process_at(&mut self, port: u8, smp: &Smp) -> (Outcome, Smp, Events) {
        let mut answer = [0; LEN];
        let slid = Lid::new(3);
        let question = smp.bytes();
        let done = self
            .node
            .process(port, &question, slid, self.time, &no_counts, &mut answer);
        (done.outcome, *Smp::from_bytes(&answer), done.events)
    }

    pub fn ask(&mut self, smp: &Smp) -> (u16, Smp, Events) {
        let (outcome, answer, events) = self.process(smp);
        assert_eq!(outcome, Outcome::Reply);
        assert_eq!(answer.header().method(), METHOD_GET_RESP);
        assert_eq!(answer.header().tid(), 7);
        (answer.header().status(), answer, events)
    }

    pub fn get<A: Attribute>(&mut self, modifier: u32) -> A {
        let (status, answer, _events) = self.ask(&Self::smp(METHOD_GET, A::ID, modifier));
        assert_eq!(status, 0);
        answer.get()
    }

    pub fn set<A: Attribute>(&mut self, modifier: u32, value: &A) -> (u16, Events) {
        let mut smp = Self::smp(METHOD_SET, A::ID, modifier);
        smp.put(value);
        let (status, _answer, events) = self.ask(&smp);
        (status, events)
    }

    pub fn info(&self) -> PortInfo {
        *self.node.port(1).unwrap().info()
    }
}
