// SPDX-License-Identifier: GPL-2.0-only

//! Requests for connections: which of them are new, and which listener they are for (IBTA
//! 12.9.7).

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::Address,
    arrive::NoReplyAddress,
    half_open::HalfOpen,
    id::{
        Id,
        Next, //
    },
    listen::{
        Listener,
        Listening, //
    },
    machine::{
        actions::Actions,
        arrival::{
            self,
            IncomingReq,
            New,
            Reception,
            Unanswered,
            Verdict, //
        },
        backlog::Refused,
        claim::{
            Adapter,
            Remote,
            Taken, //
        },
        input::{
            self,
            Incoming,
            QpType, //
        },
        route::{
            self,
            Completion, //
        },
        source::Source,
        Machine, //
    },
    message,
    notice::{
        Notice,
        Origin, //
    },
    port::Port,
    table::Reserved,
    Manager, //
};
use crate::{
    rdma::{
        cm_counters::Cause,
        mad::Received,
        path::{
            PathKind,
            PathRecord, //
        },
        route::AddressVector, //
    },
    wire::{
        cm::{
            comm_id::CommId,
            path::Path,
            reason::Reason,
            rej::Rejected,
            req::Req,
            service_id::ServiceId,
            Kind,
            Message, //
        },
        grh::Grh,
        lid::Lid,
        qpn::Qpn, //
    },
};

/// The reasons for which a REQ makes no identifier.
enum Turned {
    /// The REQ gets no answer.
    Away(Cause),
    /// The REQ came twice, so close together that both were new.
    Twin,
    /// The REQ is rejected.
    Rejected(Reason),
    /// The REQ is rejected, and the connection that had the queue pair is ended.
    Stale(CommId),
}

impl From<Taken> for Turned {
    fn from(taken: Taken) -> Self {
        match taken {
            Taken::Id(_) => Self::Twin,
            Taken::Qpn(other) => Self::Stale(other),
        }
    }
}

impl From<Error> for Turned {
    /// Drops the REQ without memory, as if it had been lost: the peer repeats it.
    fn from(_: Error) -> Self {
        Self::Away(Cause::NoMemory)
    }
}

/// Turns a REQ away of which a path failed with `error`. Without memory the path may be valid, so
/// the REQ is not rejected.
fn turned(error: Error, reason: Reason) -> Turned {
    match error {
        ENOMEM => Turned::from(error),
        _ => Turned::Rejected(reason),
    }
}

/// Returns the cause that a rejection is counted by.
fn cause(reason: Reason) -> Cause {
    match reason {
        Reason::INVALID_SERVICE_ID => Cause::NoListener,
        _ => Cause::Invalid,
    }
}

/// The tables and listeners of the node, for a request that comes by a port.
struct Arriving<'a> {
    manager: &'a Manager,
    port: &'a Arc<Port>,
    request: &'a Notice,
    /// The address of its sender, once it was looked up.
    back: Option<core::result::Result<Address, NoReplyAddress>>,
    /// The slot of a copy that waited for that address.
    waited: Option<HalfOpen>,
}

impl Arriving<'_> {
    /// Looks up the address of its sender, once. Sleeps.
    fn back(&mut self) -> &core::result::Result<Address, NoReplyAddress> {
        let (port, request) = (self.port, self.request);
        self.back.get_or_insert_with(|| port.reply_address(request))
    }
}

impl Reception for Arriving<'_> {
    type Connection = Arc<Id>;
    type Listener = (Listener, Listening);
    type Slot = (CommId, HalfOpen);

    fn forget_copies(&mut self) {
        self.waited = self.manager.forget_copies(self.port, self.request);
    }

    fn by_id(&self, id: &Remote<CommId>) -> Option<Arc<Id>> {
        self.manager.addressed(self.manager.remote_ids.get(id)?)
    }

    fn by_qpn(&self, qpn: &Remote<Qpn>) -> Option<CommId> {
        self.manager.remote_qpns.get(qpn)
    }

    fn listener(&self, service: ServiceId) -> Option<(Listener, Listening)> {
        self.manager.listener(self.port.key, service)
    }

    /// On RoCE the sender's address is looked up for a slot, and the sender may be asked: not for
    /// a request that gets none in any case.
    fn admits(&self, (listener, _): &(Listener, Listening), source: &Source) -> bool {
        !self.port.roce || listener.slots.admit(source)
    }

    /// Takes a slot for the connection with a new identifier of ours. A request that cannot be
    /// answered has none: another connection may have to give its slot up.
    fn take_slot(
        &mut self,
        (listener, _): &(Listener, Listening),
        source: &Source,
    ) -> core::result::Result<(CommId, HalfOpen), Unanswered> {
        self.back().as_ref().map_err(|_| Unanswered::NoSlot)?;
        let local = self.manager.name();
        match self.manager.half_open(&listener.slots, source, local) {
            Ok(slot) => Ok((local, slot)),
            Err(Refused::Full) => Err(Unanswered::NoSlot),
            Err(Refused::Memory(_)) => Err(Unanswered::NoMemory),
        }
    }
}

/// A REQ that makes a connection, with the use of its listener, our identifier and its slot.
type Admitted = New<(Listener, Listening), (CommId, HalfOpen)>;

/// The data of a REQ besides its own fields.
struct Request {
    /// Type of the queue pair on our side.
    qp_type: QpType,
    completion: Completion,
    /// The address of its sender.
    back: Address,
    /// The use of the listener that the REQ is for.
    listening: Listening,
    half_open: HalfOpen,
}

impl Manager {
    /// Handles a REQ that came by `port`.
    pub(super) fn req(self: &Arc<Self>, port: &Arc<Port>, mut notice: KBox<Notice>) {
        let Some(Message::Req(req)) = notice.parsed() else {
            return;
        };
        // The rest of it is read in the notice: a copy of a REQ costs more than to parse it again.
        let tid = req.header().tid();
        let Some(received) = notice.message() else {
            return;
        };
        let adapter = Adapter {
            guid: req.local_ca_guid(),
            source: port.source(received),
        };
        let incoming = IncomingReq {
            adapter,
            id: req.local_comm_id(),
            qpn: req.local_qpn(),
            service: req.service_id(),
            req: input::Req::try_from(req).ok(),
        };
        let (verdict, back, waited) = {
            let mut node = Arriving {
                manager: self,
                port,
                request: &notice,
                back: None,
                waited: None,
            };
            let verdict = arrival::request(&mut node, &incoming);
            (verdict, node.back, node.waited)
        };
        notice.slot = waited.or(notice.slot.take());
        let verdict = match verdict {
            Verdict::Duplicate(id) => return self.answer_again(port, &id, notice),
            Verdict::Dropped(Unanswered::NoMemory) => return port.count_dropped(Cause::NoMemory),
            Verdict::Dropped(Unanswered::NoSlot) => {
                return match back {
                    // Without the sender's address no slot was asked for, so the REQ may still
                    // get one later.
                    Some(Err(why)) => port.put_off(notice, why),
                    _ => port.count_dropped(Cause::HalfOpen),
                };
            }
            Verdict::Rejected(reason) => Err(Turned::Rejected(reason)),
            Verdict::Stale(other) => Err(Turned::Stale(other)),
            Verdict::New(new) => Ok(new),
        };
        let back = match back.unwrap_or_else(|| port.reply_address(&notice)) {
            Ok(back) => back,
            Err(why) => return port.put_off(notice, why),
        };
        notice.end_wait();
        match verdict.and_then(|new| self.admit(port, (&incoming, tid), new, &back, notice)) {
            Ok((id, next)) => id.then(next),
            Err(turned) => self.turn_away(port, (&incoming, tid), &back, turned),
        }
    }

    /// Counts a REQ that makes no identifier, and rejects it if it is one that is rejected.
    fn turn_away(
        &self,
        port: &Port,
        (req, tid): (&IncomingReq, u64),
        back: &Address,
        turned: Turned,
    ) {
        // No identifier was made, so the rejection has no name of ours to tell.
        let names = (req.id, CommId::ZERO);
        let reject = |reason| {
            let ari = port.valid_instead(reason);
            let ari = ari.as_ref().map_or(&[][..], |gid| &gid[..]);
            message::reject(back, tid, names, Rejected::Req, (reason, ari));
        };
        match turned {
            Turned::Away(cause) => port.count_dropped(cause),
            Turned::Twin => port.count_duplicate(Kind::Req),
            Turned::Rejected(reason) => {
                port.count_dropped(cause(reason));
                reject(reason);
            }
            Turned::Stale(other) => {
                port.count_dropped(Cause::Stale);
                reject(Reason::STALE_CONNECTION);
                self.end_stale(other);
            }
        }
    }

    /// Answers a REQ again that connection `id` was made for. The first one came from the same
    /// address: the answer gives our name for the connection, which no other node may learn.
    fn answer_again(&self, port: &Arc<Port>, id: &Arc<Id>, notice: KBox<Notice>) {
        let incoming = Incoming::DuplicateReq;
        let Ok(source) = id.reply_address(port, &notice, &incoming) else {
            return self.defer(port, notice);
        };
        let now = self.now();
        let nothing = id.with(|inner| {
            let actions = inner.machine.receive(&incoming, now);
            port.count(actions.counted);
            inner.send(id, &actions, source.as_ref());
            inner.follow(id, &actions, now, None)
        });
        id.then(nothing);
    }

    /// Makes the identifier for a REQ that is new.
    fn admit(
        self: &Arc<Self>,
        port: &Arc<Port>,
        (req, tid): (&IncomingReq, u64),
        new: Admitted,
        back: &Address,
        notice: KBox<Notice>,
    ) -> core::result::Result<(Arc<Id>, Next), Turned> {
        let ((_, listening), (local, half_open)) = (new.listener, new.slot);
        let received = notice.message().ok_or(EINVAL)?;
        let request = Request {
            qp_type: new.req.qp_type,
            completion: port.completion(received, back.vector()),
            back: back.clone(),
            listening,
            half_open,
        };
        let (machine, actions) = Machine::accept_req(local, &new.req, self.now());
        // The listener cannot end meanwhile, nor its consumer: `listening` is one of its uses.
        let consumer = request.listening.id().consumer().accept()?;
        let id = Id::unlisted(self, port.key, consumer, local, (machine, req.service))?;
        match self.finish(&id, port, (req, tid), request, actions, notice) {
            Ok(next) => Ok((id, next)),
            Err(turned) => {
                // Takes its names out of the tables and gives its slot back. The consumer that
                // `accept` made has been told nothing.
                id.forget();
                Err(turned)
            }
        }
    }

    /// Gives a new identifier what the REQ says, enters it under its peer's names, and lets
    /// messages and its consumer have it. Another REQ with these names may have been faster.
    fn finish(
        &self,
        id: &Arc<Id>,
        port: &Arc<Port>,
        (req, tid): (&IncomingReq, u64),
        request: Request,
        actions: Actions,
        mut notice: KBox<Notice>,
    ) -> core::result::Result<Next, Turned> {
        let qp_type = request.qp_type;
        let paths = match notice.parsed() {
            Some(Message::Req(req)) => Paths::new(id, port.roce, req, &request)?,
            // Not reached: it was parsed as one.
            _ => return Err(Turned::Away(Cause::Malformed)),
        };
        notice.origin = Some(
            KBox::new(
                Origin {
                    listening: Some(request.listening),
                    port: paths.address.port().number.get(),
                    pkey: port.pkey(notice.message()),
                    primary: Some(paths.primary),
                    alternate: paths.alternate.as_ref().map(|(record, _)| *record),
                },
                GFP_KERNEL,
            )
            .map_err(Error::from)?,
        );
        // Allocated before the lock, under which nothing may sleep.
        let (name, qpn) = (Reserved::new(GFP_KERNEL)?, Reserved::new(GFP_KERNEL)?);
        let memory = Reserved::new(GFP_KERNEL)?;
        let now = self.now();
        // Out of the step if that fails: its drop takes the lock of the listener.
        let mut notice = Some(notice);
        // In one step: a message that finds the identifier is reported after the REQ. The consumer
        // does not know the identifier before that.
        id.with(|inner| -> core::result::Result<Next, Turned> {
            // From here `forget` finds all that a failure below leaves, the slot included.
            inner.address = Some(paths.address);
            inner.alternate = paths.alternate.map(|(_, address)| address);
            inner.data_lid = paths.data_lid;
            inner.tid = tid;
            inner.peer_qpn = req.qpn;
            inner.qp_type = qp_type;
            inner.begin_half_open(request.half_open);
            inner.claims.claim(
                id.local(),
                req.adapter,
                (&self.remote_ids, req.id, name),
                (&self.remote_qpns, req.qpn, qpn),
            )?;
            id.enlist(memory)?;
            Ok(inner.follow(id, &actions, now, notice.take()))
        })
    }
}

/// The paths of a passive identifier.
struct Paths {
    primary: PathRecord,
    /// The address of the first one, whose port may be another than the REQ came by.
    address: Address,
    alternate: Option<(PathRecord, KBox<Address>)>,
    data_lid: u16,
}

impl Paths {
    /// Makes the paths that a REQ and the headers it came with describe. Sleeps.
    fn new(
        id: &Id,
        roce: bool,
        req: &Req,
        request: &Request,
    ) -> core::result::Result<Self, Turned> {
        let Request {
            completion, back, ..
        } = request;
        let (port, back) = (back.port(), back.vector());
        let kind = back
            .source()
            .map_or(PathKind::Infiniband, |entry| match roce {
                true => PathKind::of_roce(entry),
                false => PathKind::Infiniband,
            });
        let described = req.primary();
        let path = route::primary(&described, completion);
        let mut primary = record(kind, &path, &described, req);
        // A REQ carries no Ethernet address: that of the way back is the peer's.
        if let Some(dmac) = back.dmac() {
            primary.set_dmac(dmac);
        }
        primary.set_hop_limit(back.hop_limit());
        // Without a GRH the REQ alone says for which GID it is. A peer with an old LID reaches
        // another node than it wants.
        let address = match back.source() {
            // It is an entry of the port that the REQ came by.
            Some(source) => port.clone().address_along(&mut primary, Some(source)),
            None => id.address_along(&mut primary, None),
        };
        let address = address.map_err(|error| turned(error, Reason::INVALID_GID))?;
        let alternate = match req.alternate() {
            None => None,
            Some(described) => {
                let path = route::alternate(&described, completion);
                let mut record = record(kind, &path, &described, req);
                let address = id
                    .address_along(&mut record, None)
                    .map_err(|error| turned(error, Reason::INVALID_ALTERNATE_GID))?;
                let address = KBox::new(address, GFP_KERNEL).map_err(Error::from)?;
                Some((record, address))
            }
        };
        Ok(Self {
            primary,
            address,
            alternate,
            data_lid: path.data_dlid.map_or(0, Lid::get),
        })
    }
}

/// A path in the kernel's terms.
fn record(kind: PathKind, path: &route::Path, described: &Path, req: &Req) -> PathRecord {
    let mut record = path_record(kind, path, described);
    record.set_pkey(req.pkey().get());
    record.set_mtu(req.path_mtu().get());
    record.set_service_id(req.service_id().get());
    record
}

/// Makes the part of a path record that does not depend on the message that describes the path.
pub(super) fn path_record(kind: PathKind, path: &route::Path, described: &Path) -> PathRecord {
    let mut record = PathRecord::new(kind);
    record.set_dgid(path.dgid);
    record.set_sgid(path.sgid);
    record.set_dlid(path.dlid.get());
    record.set_slid(path.slid.get());
    record.set_flow_label(path.flow_label);
    record.set_hop_limit(path.hop_limit);
    record.set_traffic_class(path.traffic_class);
    record.set_reversible();
    record.set_sl(path.sl);
    record.set_rate(described.packet_rate);
    // The time-out is the way there and back: one more than the life time (IBTA 12.7.34).
    let timeout = described.local_ack_timeout.exponent();
    record.set_packet_life_time(timeout.saturating_sub(1));
    record
}

impl Port {
    /// Returns the fields of a message's headers that describe its path.
    pub(super) fn completion(&self, received: &Received, back: &AddressVector) -> Completion {
        Completion {
            slid: Lid::new(received.slid() as u16),
            sl: received.sl(),
            dlid_path_bits: received.dlid_path_bits(),
            grh: back.dgid().zip(back.source()).map(|(sgid, entry)| {
                // On RoCE it may have been an IPv4 header, of which only the addresses are used.
                let grh = received.grh().filter(|_| !self.roce).map(Grh::route);
                route::RouteHeader {
                    sgid,
                    dgid: entry.gid(),
                    flow_label: grh.map_or(0, |grh| grh.flow_label),
                    traffic_class: grh.map_or(0, |grh| grh.traffic_class),
                    hop_limit: grh.map_or(0, |grh| grh.hop_limit),
                }
            }),
            roce: self.roce,
        }
    }

    /// Returns the GID that a rejection for an invalid GID gives as a valid one: the first GID
    /// (IBTA 12.6.7.2).
    fn valid_instead(&self, reason: Reason) -> Option<[u8; 16]> {
        if reason != Reason::INVALID_GID && reason != Reason::INVALID_ALTERNATE_GID {
            return None;
        }
        Some(self.device().ok()?.gid(self.number, 0)?.gid().bytes())
    }

    /// The partition key that a message came with; 0 if the port does not have it any more.
    pub(super) fn pkey(&self, received: Option<&Received>) -> u16 {
        let Some(received) = received else { return 0 };
        let key = self
            .device()
            .and_then(|device| device.pkey(self.number, received.pkey_index()));
        key.unwrap_or(0)
    }
}
