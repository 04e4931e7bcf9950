// SPDX-License-Identifier: GPL-2.0-only

//! A peer that means what it says: a machine for each of its connections.

use std::collections::BTreeMap;

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
use oxib_cm_machine::time::Time;
use oxib_cm_machine::Machine;
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::mtu::Mtu;
use oxib_wire::pkey::Pkey;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;

use super::node::{
    Body,
    Packet, //
};

/// Queue pairs of a peer: few, so that they are used again.
pub const QPNS: u8 = 4;

const RTO: u32 = 50;

#[derive(Debug)]
pub struct Connection {
    pub machine: Machine,
    timer: Option<Time>,
    qpn: u8,
    /// The node's queue pair, once known.
    remote_qpn: Option<Qpn>,
    request: Option<Packet>,
}

#[derive(Debug)]
pub struct Peer {
    pub guid: u64,
    pub address: u32,
    /// The name of its next connection.
    pub next: u32,
    pub connections: BTreeMap<u32, Connection>,
    pub sent: Vec<Packet>,
}

pub fn request(sender: CommId, qpn: u8) -> Req {
    Req {
        sender,
        qp_type: QpType::Rc,
        qpn: Qpn::from_bytes([0, 1, qpn]),
        psn: Psn::wrapping(1),
        pkey: Pkey::DEFAULT,
        mtu: Mtu::new(3),
        responder_resources: 1,
        initiator_depth: 1,
        retry_count: 7,
        rnr_retry_count: 7,
        remote_response_timeout: 20,
        local_response_timeout: 20,
        max_retries: 15,
        ack_timeout: 14,
        alternate_ack_timeout: None,
    }
}

impl Peer {
    /// Asks for a connection, with a queue pair that it does not use.
    pub fn connect(&mut self, now: Time) -> Option<u32> {
        let used = |qpn: &u8| self.connections.values().any(|other| other.qpn == *qpn);
        let qpn = (0..QPNS).find(|qpn| !used(qpn))?;
        self.next += 1;
        let name = self.next;
        let mut machine = Machine::new(CommId::new(name));
        let req = request(CommId::new(name), qpn);
        let param = ReqParam {
            qp_type: req.qp_type,
            qpn: req.qpn,
            psn: req.psn,
            pkey: req.pkey,
            mtu: req.mtu,
            responder_resources: 1,
            initiator_depth: 1,
            retry_count: 7,
            packet_life_time: 13,
            alternate_life_time: None,
            remote_response_timeout: req.remote_response_timeout,
            local_response_timeout: req.local_response_timeout,
            retries: req.max_retries,
            rto: RTO,
        };
        let actions = machine.send_req(&param, now).expect("it is idle");
        let connection = Connection {
            machine,
            timer: None,
            qpn,
            remote_qpn: None,
            request: None,
        };
        self.connections.insert(name, connection);
        self.act(name, &actions, Some(Body::Req(req)), now);
        Some(name)
    }

    /// Ends a connection, in order or not.
    pub fn end(&mut self, name: u32, is_orderly: bool, now: Time) {
        let Some(connection) = self.connections.get_mut(&name) else {
            return;
        };
        let actions = match is_orderly {
            true => match connection.machine.send_dreq(RTO, now) {
                Ok(actions) => actions,
                Err(_) => return,
            },
            false => connection.machine.destroy(false),
        };
        self.act(name, &actions, None, now);
    }

    pub fn receive(&mut self, packet: &Packet, now: Time) {
        let name = packet.receiver.get();
        let (Some(connection), Body::Other(message)) =
            (self.connections.get_mut(&name), packet.body)
        else {
            return;
        };
        let actions = connection.machine.receive(&message, now);
        self.act(name, &actions, None, now);
    }

    pub fn expire(&mut self, now: Time) {
        for name in self.connections.keys().copied().collect::<Vec<_>>() {
            let connection = &self.connections[&name];
            if connection.timer.is_some_and(|due| due <= now) {
                let connection = self.connections.get_mut(&name).expect("it is there");
                connection.timer = None;
                let actions = connection.machine.timer(RTO, now);
                self.act(name, &actions, None, now);
            }
        }
    }

    /// The time at which its next timer is due.
    pub fn due(&self) -> Option<Time> {
        self.connections
            .values()
            .filter_map(|other| other.timer)
            .min()
    }

    fn act(&mut self, name: u32, actions: &Actions, req: Option<Body>, now: Time) {
        let connection = self.connections.get_mut(&name).expect("it is there");
        match actions.timer {
            TimerAction::Keep => {}
            TimerAction::Stop => connection.timer = None,
            TimerAction::At(due) => connection.timer = Some(due),
        }
        connection.remote_qpn = connection.machine.remote_qpn().or(connection.remote_qpn);
        let (sender, receiver) = connection.machine.ids();
        let body = match actions.send {
            None => None,
            Some(Send::Again) => connection.request.map(|kept| kept.body),
            Some(Send::New(outgoing) | Send::Saved(outgoing)) => match outgoing {
                Outgoing::Req => req,
                Outgoing::Rtu => Some(Body::Other(Incoming::Rtu { sender })),
                Outgoing::Drep => Some(Body::Other(Incoming::Drep { sender })),
                Outgoing::Dreq => {
                    let qpn = connection.remote_qpn.expect("the connection worked");
                    Some(Body::Other(Incoming::Dreq { sender, qpn }))
                }
                Outgoing::Rej { reason, of, local } => Some(Body::Other(Incoming::Rej {
                    sender: local,
                    of,
                    reason,
                })),
                other => panic!("{other:?} is sent by no end that asks"),
            },
        };
        if let Some(body) = body {
            let packet = Packet {
                address: self.address,
                guid: self.guid,
                receiver,
                body,
            };
            if connection.machine.awaits_answer() {
                connection.request = Some(packet);
            }
            self.sent.push(packet);
        }
        match actions.report {
            Some(Report::RepReceived) => {
                let actions = connection.machine.send_rtu().expect("a REP came");
                self.act(name, &actions, None, now);
            }
            Some(Report::DreqReceived) => {
                let actions = connection.machine.send_drep(now).expect("a DREQ came");
                self.act(name, &actions, None, now);
            }
            _ => {
                if connection.machine.name() == StateName::Idle {
                    self.connections.remove(&name);
                }
            }
        }
    }
}
