// SPDX-License-Identifier: GPL-2.0-only

//! One end: its identifiers, and the tables in which messages find them.

use std::collections::BTreeMap;

use oxib_cm_machine::actions::{
    Outgoing,
    SERVICE_TIMEOUT, //
};
use oxib_cm_machine::arrival;
use oxib_cm_machine::claim::{
    Claims,
    Remote,
    Taken, //
};
use oxib_cm_machine::input::{
    Incoming,
    Rep,
    RepParam,
    Req,
    ReqParam, //
};
use oxib_cm_machine::peer;
use oxib_cm_machine::time::Time;
use oxib_cm_machine::Machine;
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::kind::Kind;
use oxib_wire::cm::mra::Acknowledged;
use oxib_wire::cm::reason::Reason;
use oxib_wire::cm::rej::Rejected;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;

use super::network::{
    Body,
    Origin,
    Packet,
    Side, //
};
use super::record::{
    Reports,
    Request,
    Waits, //
};
use crate::directory::Directory;

/// An identifier with what the shell keeps for it.
#[derive(Debug)]
pub struct Id {
    pub machine: Machine,
    /// The address of its peer.
    pub peer: Origin,
    pub timer: Option<Time>,
    pub request: Option<Request>,
    pub reports: Reports,
    pub req: ReqParam,
    pub rep: RepParam,
    /// The peer's queue pair, once known.
    pub peer_qpn: Option<Qpn>,
    /// The names of the peer under which the tables have it.
    pub claims: Claims,
    pub waits: Waits,
    /// The consumer has let go of it.
    pub destroyed: bool,
}

/// An end of the conversation, with its identifiers.
#[derive(Debug)]
pub struct Node {
    pub side: Side,
    pub ids: BTreeMap<u32, Id>,
    /// Identifiers by the names that peers chose, and their channel adapters.
    pub by_remote_id: Directory<CommId>,
    pub by_remote_qpn: Directory<Qpn>,
    /// Passive connections that are not established yet.
    pub half_open: i32,
}

impl Node {
    pub fn new(side: Side) -> Node {
        Node {
            side,
            ids: BTreeMap::new(),
            by_remote_id: Directory::new(),
            by_remote_qpn: Directory::new(),
            half_open: 0,
        }
    }

    /// A name that has not been used, other than any of the other end's.
    pub fn next_name(&self) -> CommId {
        let base = match self.side {
            Side::Active => 0xa000,
            Side::Passive => 0xb000,
        };
        CommId::new(base + self.ids.len() as u32)
    }

    /// Puts an identifier into its place.
    pub fn insert(
        &mut self,
        machine: Machine,
        peer: Origin,
        (req, rep): (ReqParam, RepParam),
        waits: Waits,
    ) -> u32 {
        let name = machine.ids().0.get();
        let id = Id {
            machine,
            peer,
            timer: None,
            request: None,
            reports: Reports::default(),
            req,
            rep,
            peer_qpn: None,
            claims: Claims::default(),
            waits,
            destroyed: false,
        };
        assert!(self.ids.insert(name, id).is_none());
        name
    }

    /// The identifier of this name, if its consumer still has it.
    pub fn living(&mut self, name: u32) -> Option<&mut Id> {
        self.ids.get_mut(&name).filter(|id| !id.destroyed)
    }

    /// The identifier that a message is for.
    pub fn find(&self, packet: &Packet) -> Option<u32> {
        let adapter = packet.sent_by();
        let by_name = |name| self.by_remote_id.get(&Remote { name, adapter });
        let found = match packet.body {
            Body::Req(req) => by_name(req.sender),
            Body::Answer(Incoming::Rej { sender, reason, .. }) if reason == Reason::TIMEOUT => {
                by_name(sender)
            }
            Body::Answer(_) => Some(packet.receiver.get()),
        };
        found.filter(|name| self.ids.get(name).is_some_and(|id| !id.destroyed))
    }

    /// Returns whether the identifier of this name may be told of a message: what its peer may
    /// have sent.
    pub fn may_hear(&self, name: u32, packet: &Packet) -> bool {
        let id = &self.ids[&name];
        let (known, named) = (id.machine.ids(), (packet.receiver, packet.sender()));
        let is_from_peer = || packet.from == id.peer;
        match packet.body {
            // It is the machine that compares the sender's name.
            Body::Answer(Incoming::Dreq { .. } | Incoming::Lap { .. }) => true,
            // It was found by the address that the first one came from.
            Body::Req(_) => true,
            Body::Answer(Incoming::Rej { reason, .. }) => {
                arrival::is_rejected(known, named, reason, id.machine.is_half_open())
                    && peer::may_be(known, named, is_from_peer)
            }
            Body::Answer(_) => peer::may_be(known, named, is_from_peer),
        }
    }

    /// Enters an identifier under the names that its peer gives in `packet`.
    ///
    /// # Errors
    ///
    /// Another identifier that has one of them.
    pub fn claim(
        &self,
        local: CommId,
        packet: &Packet,
        (id, qpn): (CommId, Qpn),
    ) -> Result<Claims, Taken> {
        let mut claims = Claims::default();
        claims.claim(
            local,
            packet.sent_by(),
            (&self.by_remote_id, id, ()),
            (&self.by_remote_qpn, qpn, ()),
        )?;
        Ok(claims)
    }

    /// Keeps a message if it is a request.
    pub fn keep_request(&mut self, name: u32, packet: Packet, now: Time) {
        let Some(id) = self.ids.get_mut(&name) else {
            return;
        };
        if id.machine.awaits_answer() {
            let rto = match packet.kind {
                Kind::Rep => id.rep.rto,
                _ => id.req.rto,
            };
            id.request = Some(Request::new(packet, id.waits, rto, now));
        }
    }

    /// Removes an identifier from the tables of the peer's names.
    pub fn forget(&mut self, name: u32) {
        if let Some(id) = self.ids.get_mut(&name) {
            let ours = CommId::new(name);
            id.claims
                .release(ours, &self.by_remote_id, &self.by_remote_qpn);
        }
    }

    /// Builds the message that a machine has asked for.
    pub fn build(&self, name: u32, outgoing: Outgoing) -> Packet {
        let id = &self.ids[&name];
        let (local, remote) = id.machine.ids();
        let (kind, body) = match outgoing {
            Outgoing::Req => (Kind::Req, Body::Req(self.req(id))),
            _ => answer(id, local, outgoing),
        };
        Packet {
            to: self.side.other(),
            from: Origin::Peer,
            adapter: Origin::Peer,
            kind,
            receiver: remote,
            body,
        }
    }

    fn req(&self, id: &Id) -> Req {
        let param = &id.req;
        Req {
            sender: id.machine.ids().0,
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
}

fn answer(id: &Id, sender: CommId, outgoing: Outgoing) -> (Kind, Body) {
    let (kind, message) = match outgoing {
        Outgoing::Rep => (Kind::Rep, Incoming::Rep(rep(id, sender))),
        Outgoing::Rtu => (Kind::Rtu, Incoming::Rtu { sender }),
        Outgoing::Dreq => {
            let qpn = id.peer_qpn.expect("an end that disconnects has a peer");
            (Kind::Dreq, Incoming::Dreq { sender, qpn })
        }
        Outgoing::Drep => (Kind::Drep, Incoming::Drep { sender }),
        Outgoing::Rej { reason, of, local } => (
            Kind::Rej,
            Incoming::Rej {
                sender: local,
                of,
                reason,
            },
        ),
        Outgoing::Mra { of } => (Kind::Mra, mra(sender, of)),
        other => panic!("{other:?} is no message of a connection"),
    };
    (kind, Body::Answer(message))
}

fn rep(id: &Id, sender: CommId) -> Rep {
    Rep {
        sender,
        qpn: id.rep.qpn,
        eecn: id.rep.qpn,
        psn: Psn::wrapping(2),
        responder_resources: id.rep.responder_resources,
        initiator_depth: id.rep.initiator_depth,
        rnr_retry_count: 7,
        target_ack_delay: 15,
    }
}

fn mra(sender: CommId, of: Acknowledged) -> Incoming {
    Incoming::Mra {
        sender,
        of,
        service_timeout: SERVICE_TIMEOUT,
    }
}

/// The rejection of a message for which there is no identifier.
pub fn reject_stale(packet: &Packet) -> Packet {
    let (receiver, of) = match packet.body {
        Body::Req(req) => (req.sender, Rejected::Req),
        Body::Answer(Incoming::Rep(rep)) => (rep.sender, Rejected::Rep),
        _ => panic!("{packet:?} cannot be stale"),
    };
    Packet {
        to: packet.to.other(),
        from: Origin::Peer,
        adapter: Origin::Peer,
        kind: Kind::Rej,
        receiver,
        body: Body::Answer(Incoming::Rej {
            sender: packet.receiver,
            of,
            reason: Reason::STALE_CONNECTION,
        }),
    }
}

/// The answer to a DREQ for which there is no identifier.
pub fn release_unknown(packet: &Packet) -> Option<Packet> {
    let Body::Answer(Incoming::Dreq { sender, .. }) = packet.body else {
        return None;
    };
    Some(Packet {
        to: packet.to.other(),
        from: Origin::Peer,
        adapter: Origin::Peer,
        kind: Kind::Drep,
        receiver: sender,
        body: Body::Answer(Incoming::Drep {
            sender: packet.receiver,
        }),
    })
}
