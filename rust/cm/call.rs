// SPDX-License-Identifier: GPL-2.0-only

//! What a consumer asks of an identifier.
//!
//! A call that fails has changed nothing, unless it says so.

use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

use super::{
    id::{
        Id,
        Inner, //
    },
    machine::{
        actions::{
            Actions,
            Outgoing,
            Report,
            Send, //
        },
        input,
        qp::{
            QpInit,
            QpRtr,
            QpRts, //
        },
        route,
        time,
        Machine,
        Refused,
        Request, //
    },
    message::{
        Bytes,
        Extra, //
    },
    notice::Notice,
    port::Port, //
};
use crate::{
    rdma::{
        gid::Entry,
        mad,
        port::PortNumber,
        route::{
            AddressVector,
            PathRecord, //
        }, //
    },
    wire::{
        cm::{
            rep,
            req,
            sidr_rep,
            sidr_req,
            CommId,
            Ece,
            Kind,
            Mtu,
            Path,
            Reason,
            ServiceId,
            Timeout,
            Transport, //
        },
        lid::Lid,
        pkey::Pkey,
        psn::Psn,
        qpn::Qpn, //
    }, //
};

pub(crate) use super::machine::input::QpType;

/// What a consumer gives for a REQ.
pub(crate) struct ReqParameters<'a> {
    /// The path.
    pub(crate) primary: PathRecord,
    /// Where the path ends by which packets come back, if the consumer knows it.
    pub(crate) inbound_dlid: Option<u16>,
    /// Where the queue pair's packets go, if not where the path ends.
    pub(crate) outbound_dlid: Option<u16>,
    /// The path to migrate to.
    pub(crate) alternate: Option<PathRecord>,
    /// The GID that the path begins at, with its port.
    pub(crate) source: Option<&'a Entry>,
    /// The service asked for.
    pub(crate) service: ServiceId,
    /// The queue pair.
    pub(crate) qpn: Qpn,
    /// Its type, one that asks: not an XRC target.
    pub(crate) qp_type: QpType,
    /// First packet sequence number that the consumer sends with.
    pub(crate) psn: Psn,
    /// Private data, as much as a REQ has room for.
    pub(crate) private_data: &'a [u8],
    /// RDMA reads and atomics that the peer may have outstanding.
    pub(crate) responder_resources: u8,
    /// RDMA reads and atomics that the consumer wants to have outstanding.
    pub(crate) initiator_depth: u8,
    /// Time in which the peer has to answer, as an exponent.
    pub(crate) remote_response_timeout: u8,
    /// Time in which the consumer will answer, as an exponent.
    pub(crate) local_response_timeout: u8,
    /// End-to-end flow control.
    pub(crate) flow_control: bool,
    /// Retries of the transport.
    pub(crate) retry_count: u8,
    /// Retries of the transport when the receiver is not ready.
    pub(crate) rnr_retry_count: u8,
    /// Tries after the first.
    pub(crate) max_retries: u8,
    /// The queue pair receives by a shared receive queue.
    pub(crate) srq: bool,
    /// Vendor's options.
    pub(crate) ece: Ece,
}

/// What a consumer gives for a REP.
pub(crate) struct RepParameters<'a> {
    /// The queue pair.
    pub(crate) qpn: Qpn,
    /// First packet sequence number that the consumer sends with.
    pub(crate) psn: Psn,
    /// Private data, as much as a REP has room for.
    pub(crate) private_data: &'a [u8],
    /// RDMA reads and atomics that the peer may have outstanding.
    pub(crate) responder_resources: u8,
    /// RDMA reads and atomics that the consumer wants to have outstanding.
    pub(crate) initiator_depth: u8,
    /// What becomes of the alternate path.
    pub(crate) failover: rep::Failover,
    /// End-to-end flow control.
    pub(crate) flow_control: bool,
    /// Retries of the transport when the receiver is not ready.
    pub(crate) rnr_retry_count: u8,
    /// The queue pair receives by a shared receive queue.
    pub(crate) srq: bool,
    /// Vendor's options.
    pub(crate) ece: Ece,
}

/// What a consumer gives for a SIDR_REQ.
pub(crate) struct SidrReqParameters<'a> {
    /// The path.
    pub(crate) path: PathRecord,
    /// The GID that the path begins at, with its port.
    pub(crate) source: Option<&'a Entry>,
    /// The service asked for.
    pub(crate) service: ServiceId,
    /// How long to wait for each try, in milliseconds.
    pub(crate) timeout: u32,
    /// Tries after the first.
    pub(crate) max_retries: u8,
    /// Private data, as much as a SIDR_REQ has room for.
    pub(crate) private_data: &'a [u8],
}

/// What a consumer gives for a SIDR_REP.
pub(crate) struct SidrRepParameters<'a> {
    /// The answer.
    pub(crate) status: sidr_rep::Status,
    /// The queue pair of the service.
    pub(crate) qpn: Qpn,
    /// Its key.
    pub(crate) qkey: u32,
    /// Additional information, as much as a SIDR_REP has room for.
    pub(crate) information: &'a [u8],
    /// Private data, as much as a SIDR_REP has room for.
    pub(crate) private_data: &'a [u8],
    /// Vendor's options.
    pub(crate) ece: Ece,
}

/// Attributes of a queue pair, and the ways that belong to them.
pub(crate) struct Ways<'a> {
    /// The first path.
    pub(crate) address: Option<&'a AddressVector>,
    /// The alternate path.
    pub(crate) alternate: Option<&'a AddressVector>,
    /// The LID that the queue pair's packets go to, if not that of `address`; 0: none.
    pub(crate) data_lid: u16,
}

/// `EISCONN`, which the `kernel` crate does not name.
fn is_connected() -> Error {
    Error::from_errno(-106)
}

fn refused(_: Refused) -> Error {
    EINVAL
}

impl Id {
    /// Asks for a connection.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the identifier is in use, the paths are not from a port with a connection
    /// manager, differ in P_Key or MTU, or there is too much private data; `ENOMEM`, and what the
    /// device says.
    pub(crate) fn send_req(self: &Arc<Self>, mut given: ReqParameters<'_>) -> Result {
        check_private_data(Kind::Req, given.private_data)?;
        if given.alternate.as_ref().is_some_and(|alternate| {
            alternate.pkey() != given.primary.pkey() || alternate.mtu() != given.primary.mtu()
        }) {
            return Err(EINVAL);
        }
        self.check_idle()?;
        let (port, address) = self.way_along(&mut given.primary, given.source)?;
        let alternate = match &mut given.alternate {
            Some(path) => Some(self.way_along(path, None)?.1),
            None => None,
        };
        let mut request = new_request()?;
        let step = given.step(port.round_trip.patience());
        self.with(|inner| {
            let before = Before::of(inner);
            let now = self.manager.now();
            let actions = inner.machine.send_req(&step, now).map_err(refused)?;
            inner.port = Some(port.clone());
            inner.address = Some(address);
            inner.alternate = alternate;
            inner.data_lid = given.outbound_dlid.unwrap_or(0);
            inner.service = given.service;
            inner.qp_type = given.qp_type;
            inner.tid = inner.own_tid(self);
            let message = given.message(self, &port);
            let sent = message
                .build(inner.tid, &mut request)
                .map_err(|_| EINVAL)
                .and_then(|()| inner.post(Kind::Req, &request));
            inner.settle(self, before, sent, &actions, Some(request))
        })
    }

    /// Accepts a connection that a peer asked for.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such request, or too much private data; `ENOMEM`, and what the device
    /// says.
    pub(crate) fn send_rep(self: &Arc<Self>, given: &RepParameters<'_>) -> Result {
        check_private_data(Kind::Rep, given.private_data)?;
        let mut request = new_request()?;
        self.with(|inner| {
            let before = Before::of(inner);
            let now = self.manager.now();
            let port = inner.port.clone().ok_or(EINVAL)?;
            let step = input::RepParam {
                qpn: given.qpn,
                psn: given.psn,
                responder_resources: given.responder_resources,
                initiator_depth: given.initiator_depth,
                rto: port.round_trip.patience(),
            };
            let actions = inner.machine.send_rep(&step, now).map_err(refused)?;
            let message = given.message(inner, &port);
            let sent = message
                .build(inner.tid, &mut request)
                .map_err(|_| EINVAL)
                .and_then(|()| inner.post(Kind::Rep, &request));
            inner.settle(self, before, sent, &actions, Some(request))
        })
    }

    /// Says that the connection can be used.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no reply to a REQ, or too much private data; `ENOMEM`, and what the
    /// device says.
    pub(crate) fn send_rtu(self: &Arc<Self>, private_data: &[u8]) -> Result {
        check_private_data(Kind::Rtu, private_data)?;
        let saved = saved(private_data)?;
        self.with(|inner| {
            let before = Before::of(inner);
            let actions = inner.machine.send_rtu().map_err(refused)?;
            let sent = inner.send_step(self, &actions, private_data);
            inner.settle(self, before, sent, &actions, None)?;
            inner.saved = saved;
            Ok(())
        })
    }

    /// Disconnects.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no connection, or too much private data. On other errors the connection
    /// is over all the same.
    pub(crate) fn send_dreq(self: &Arc<Self>, private_data: &[u8]) -> Result {
        check_private_data(Kind::Dreq, private_data)?;
        let request = new_request();
        self.with(|inner| {
            let now = self.manager.now();
            let patience = inner
                .port
                .as_ref()
                .map_or(0, |port| port.round_trip.patience());
            let actions = inner.machine.send_dreq(patience, now).map_err(refused)?;
            let sent = request.and_then(|mut request| {
                let extra = Extra {
                    private_data,
                    ..Extra::default()
                };
                inner
                    .build(self, Outgoing::Dreq, &extra, &mut request)
                    .map_err(|_| EINVAL)?;
                inner.post(Kind::Dreq, &request)?;
                Ok(request)
            });
            // There is nothing to tell: the call says how it went.
            match sent {
                Ok(request) => {
                    inner.request = Some(request);
                    let _ = inner.follow(self, &actions, now, None);
                    Ok(())
                }
                Err(error) => {
                    let failed = inner.machine.send_failed(Request::Dreq, now);
                    let _ = inner.follow(self, &actions, now, None);
                    let _ = inner.follow(self, &failed, now, None);
                    Err(error)
                }
            }
        })
    }

    /// Answers that the peer has disconnected. The connection is over, whether the answer can be
    /// sent or not.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it has not, or if there is too much private data; then nothing has changed. What
    /// sending says.
    pub(crate) fn send_drep(self: &Arc<Self>, private_data: &[u8]) -> Result {
        check_private_data(Kind::Drep, private_data)?;
        let saved = saved(private_data)?;
        self.with(|inner| {
            let now = self.manager.now();
            let actions = inner.machine.send_drep(now).map_err(refused)?;
            let sent = inner.send_step(self, &actions, private_data);
            inner.saved = saved;
            let _ = inner.follow(self, &actions, now, None);
            sent
        })
    }

    /// Rejects a connection. It is over, whether the rejection can be sent or not.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is nothing to reject, or too much to say; then nothing has changed. What
    /// sending says.
    pub(crate) fn send_rej(
        self: &Arc<Self>,
        reason: Reason,
        information: &[u8],
        private_data: &[u8],
    ) -> Result {
        check_private_data(Kind::Rej, private_data)?;
        if information.len() > crate::wire::cm::INFORMATION_LEN {
            return Err(EINVAL);
        }
        self.with(|inner| {
            let now = self.manager.now();
            let actions = inner.machine.send_rej(reason, now).map_err(refused)?;
            let sent = match actions.send {
                Some(Send::New(outgoing)) => inner.send_new(
                    self,
                    outgoing,
                    &Extra {
                        information,
                        private_data,
                    },
                ),
                _ => Ok(()),
            };
            let _ = inner.follow(self, &actions, now, None);
            sent
        })
    }

    /// Says that the answer will take longer.
    ///
    /// # Errors
    ///
    /// `EINVAL` if nothing is to be answered.
    pub(crate) fn prepare_mra(self: &Arc<Self>) -> Result {
        self.with(|inner| {
            let now = self.manager.now();
            let actions = inner.machine.prepare_mra().map_err(refused)?;
            inner.send(self, &actions, None);
            let _ = inner.follow(self, &actions, now, None);
            Ok(())
        })
    }

    /// Asks a peer for the queue pair of a service.
    ///
    /// # Errors
    ///
    /// As [`Id::send_req`].
    pub(crate) fn send_sidr_req(self: &Arc<Self>, mut given: SidrReqParameters<'_>) -> Result {
        check_private_data(Kind::SidrReq, given.private_data)?;
        self.check_idle()?;
        let (port, address) = self.way_along(&mut given.path, given.source)?;
        let mut request = new_request()?;
        let step = input::SidrReqParam {
            patience: input::Patience {
                timeout: given.timeout,
                retries: given.max_retries,
            },
            rto: port.round_trip.patience(),
        };
        self.with(|inner| {
            let before = Before::of(inner);
            let now = self.manager.now();
            let actions = inner.machine.send_sidr_req(&step, now).map_err(refused)?;
            inner.port = Some(port);
            inner.address = Some(address);
            inner.service = given.service;
            inner.tid = inner.own_tid(self);
            let message = sidr_req::Parameters {
                request_id: self.local(),
                pkey: Pkey::new(given.path.pkey()),
                service_id: given.service,
                private_data: given.private_data,
            };
            let sent = message
                .build(inner.tid, &mut request)
                .map_err(|_| EINVAL)
                .and_then(|()| inner.post(Kind::SidrReq, &request));
            inner.settle(self, before, sent, &actions, Some(request))
        })
    }

    /// Answers a peer that asked for the queue pair of a service.
    ///
    /// # Errors
    ///
    /// `EINVAL` if nobody asked, or if there is too much to say; `ENOMEM`, and what the device says.
    pub(crate) fn send_sidr_rep(self: &Arc<Self>, given: &SidrRepParameters<'_>) -> Result {
        self.with(|inner| {
            let before = Before::of(inner);
            let actions = inner.machine.send_sidr_rep(given.status).map_err(refused)?;
            let message = sidr_rep::Parameters {
                request_id: before.machine.ids().1,
                status: given.status,
                qpn: given.qpn,
                service_id: inner.service,
                qkey: given.qkey,
                ece: given.ece,
                information: given.information,
                private_data: given.private_data,
            };
            let sent = inner.way().and_then(|(port, address)| {
                port.post(Kind::SidrRep, address, |out| message.build(inner.tid, out))
            });
            inner.settle(self, before, sent, &actions, None)
        })
    }

    /// The consumer has seen the connection work before it was told so. Does not sleep, and may be
    /// called with interrupts disabled.
    ///
    /// # Errors
    ///
    /// `EISCONN` if it is known to work, `EINVAL` if it cannot, `ENODEV` if the device goes,
    /// `ENOMEM`.
    pub(crate) fn established(self: &Arc<Self>) -> Result {
        let mut notice = Notice::new(Report::UserEstablished, GFP_ATOMIC)?;
        notice.id = Some(self.clone());
        self.with(|inner| -> Result {
            let now = self.manager.now();
            let actions = inner
                .machine
                .established()
                .map_err(|refused| match refused.state {
                    super::StateName::Established => is_connected(),
                    _ => EINVAL,
                })?;
            // The consumer is told later, and not if it has let go by then.
            let _ = inner.follow(self, &actions, now, None);
            Ok(())
        })?;
        self.manager
            .lanes
            .push(&self.manager.queue, self.local(), notice);
        Ok(())
    }

    /// The consumer has seen the queue pair take its alternate path. Does not sleep, and may be
    /// called with interrupts disabled.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no connection.
    pub(crate) fn migrated(self: &Arc<Self>) -> Result {
        self.with(|inner| {
            let now = self.manager.now();
            let actions = inner.machine.migrated().map_err(refused)?;
            inner.address = inner.alternate.clone();
            let _ = inner.follow(self, &actions, now, None);
            Ok(())
        })
    }

    /// Lets `use_them` have the attributes for a queue pair's transition to INIT.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the state has none.
    pub(crate) fn qp_init(&self, use_them: impl FnOnce(&QpInit, &Ways<'_>)) -> Result {
        self.attributes(Machine::qp_init, use_them)
    }

    /// Lets `use_them` have the attributes for a queue pair's transition to RTR.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the state has none.
    pub(crate) fn qp_rtr(&self, use_them: impl FnOnce(&QpRtr, &Ways<'_>)) -> Result {
        self.attributes(Machine::qp_rtr, use_them)
    }

    /// Lets `use_them` have the attributes for a queue pair's transition to RTS.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the state has none.
    pub(crate) fn qp_rts(&self, use_them: impl FnOnce(&QpRts, &Ways<'_>)) -> Result {
        self.attributes(Machine::qp_rts, use_them)
    }

    fn attributes<A>(
        &self,
        of: impl FnOnce(&Machine) -> core::result::Result<A, Refused>,
        use_them: impl FnOnce(&A, &Ways<'_>),
    ) -> Result {
        self.with(|inner| {
            let attributes = of(&inner.machine).map_err(refused)?;
            let ways = Ways {
                address: inner.address.as_ref(),
                alternate: inner.alternate.as_ref(),
                data_lid: inner.data_lid,
            };
            use_them(&attributes, &ways);
            Ok(())
        })
    }

    /// The GID that messages and the first path begin at, if packets have one.
    pub(crate) fn source(&self) -> Option<ARef<Entry>> {
        self.with(|inner| inner.address.as_ref()?.source().map(ARef::from))
    }

    /// Whether the consumer's queue pair is an XRC initiator.
    pub(crate) fn is_xrc_initiator(&self) -> bool {
        self.with(|inner| inner.qp_type == QpType::XrcIni)
    }

    /// Refuses calls early that the machine would refuse later, when more has been done.
    fn check_idle(&self) -> Result {
        match self.with(|inner| inner.machine.name()) {
            super::StateName::Idle => Ok(()),
            _ => Err(EINVAL),
        }
    }

    /// The port and the way of a path. Sleeps.
    pub(super) fn way_along(
        &self,
        path: &mut PathRecord,
        source: Option<&Entry>,
    ) -> Result<(Arc<Port>, AddressVector)> {
        let port = match source {
            Some(entry) => self.manager.port(self.device(), entry.port())?,
            None => self.manager.port_of(self.device(), path)?,
        };
        let device = port.device()?;
        if source.is_some_and(|entry| !entry.is_of(&device)) {
            return Err(EINVAL);
        }
        let address = AddressVector::from_path(&device, port.number, path, source)?;
        Ok((port, address))
    }
}

impl super::Manager {
    /// The port where `path` begins.
    fn port_of(&self, key: super::DeviceKey, path: &PathRecord) -> Result<Arc<Port>> {
        let device = self.devices.get(&key).ok_or(EINVAL)?.device()?;
        let number: PortNumber = device.port_of_path(path).ok_or(EINVAL)?;
        self.port(key, number)
    }
}

/// What is put back if a call's message cannot be sent.
struct Before {
    machine: Machine,
    service: ServiceId,
}

impl Before {
    fn of(inner: &Inner) -> Self {
        Self {
            machine: inner.machine.clone(),
            service: inner.service,
        }
    }
}

impl Inner {
    /// Sends a request that was built.
    fn post(&self, kind: Kind, request: &Bytes) -> Result {
        let (port, address) = self.way()?;
        port.post(kind, address, |out| {
            *out = *request;
            Ok(())
        })
    }

    /// Sends the message of a step that needs private data alone.
    fn send_step(&self, id: &Id, actions: &Actions, private_data: &[u8]) -> Result {
        let extra = Extra {
            private_data,
            ..Extra::default()
        };
        match actions.send {
            Some(Send::New(outgoing)) => self.send_new(id, outgoing, &extra),
            _ => Ok(()),
        }
    }

    /// Ends a call: by what its step asks for if its message was sent, and else by undoing it.
    fn settle(
        &mut self,
        id: &Arc<Id>,
        before: Before,
        sent: Result,
        actions: &Actions,
        request: Option<KBox<Bytes>>,
    ) -> Result {
        if let Err(error) = sent {
            self.machine = before.machine;
            self.service = before.service;
            return Err(error);
        }
        if request.is_some() {
            self.request = request;
        }
        // Calls tell nothing.
        let _ = self.follow(id, actions, id.manager.now(), None);
        Ok(())
    }
}

impl ReqParameters<'_> {
    fn step(&self, rto: u32) -> input::ReqParam {
        input::ReqParam {
            qp_type: self.qp_type,
            qpn: self.qpn,
            psn: self.psn,
            pkey: Pkey::new(self.primary.pkey()),
            mtu: Mtu::new(self.primary.mtu()),
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            retry_count: self.retry_count,
            packet_life_time: self.primary.packet_life_time(),
            alternate_life_time: self.alternate.as_ref().map(PathRecord::packet_life_time),
            remote_response_timeout: self.remote_response_timeout,
            local_response_timeout: self.local_response_timeout,
            retries: self.max_retries,
            rto,
        }
    }

    fn message<'a>(&'a self, id: &Id, port: &Port) -> req::Parameters<'a> {
        // An XRC initiator answers nothing and does not repeat: these fields are not its.
        let asks_only = self.qp_type == QpType::XrcIni;
        let unless = |value: u8| if asks_only { 0 } else { value };
        req::Parameters {
            local_comm_id: id.local(),
            service_id: self.service,
            local_ca_guid: port.node_guid,
            local_qkey: 0,
            local_qpn: self.qpn,
            responder_resources: unless(self.responder_resources),
            initiator_depth: self.initiator_depth,
            local_eecn: Qpn::from_bytes([0; 3]),
            remote_eecn: Qpn::from_bytes([0; 3]),
            remote_cm_response_timeout: Timeout::saturating(self.remote_response_timeout),
            transport: transport(self.qp_type),
            flow_control: self.flow_control,
            starting_psn: self.psn,
            local_cm_response_timeout: Timeout::saturating(self.local_response_timeout),
            retry_count: unless(self.retry_count),
            pkey: Pkey::new(self.primary.pkey()),
            path_mtu: Mtu::new(self.primary.mtu()),
            rdc_exists: false,
            rnr_retry_count: unless(self.rnr_retry_count),
            max_cm_retries: self.max_retries,
            srq: self.srq && !asks_only,
            primary: path(&self.primary, self.inbound_dlid, port.ack_delay),
            alternate: self
                .alternate
                .as_ref()
                .map(|alternate| path(alternate, None, port.ack_delay)),
            sap_supported: false,
            ece: self.ece,
            private_data: self.private_data,
        }
    }
}

fn transport(qp_type: QpType) -> Transport {
    match qp_type {
        QpType::Rc => Transport::Rc,
        QpType::Uc => Transport::Uc,
        QpType::XrcIni | QpType::XrcTgt => Transport::Xrc,
    }
}

/// A path as a REQ describes it.
fn path(record: &PathRecord, inbound_dlid: Option<u16>, ack_delay: u8) -> Path {
    // On RoCE there are none; larger ones are Omni-Path's, whose paths were refused.
    let lid = |number: u32| Lid::new(number as u16);
    let lids = route::req_lids(
        lid(record.slid()),
        lid(record.dlid()),
        record.hop_limit(),
        inbound_dlid.map(Lid::new),
    );
    let ack_timeout = time::ack_timeout(ack_delay, record.packet_life_time());
    Path {
        local_lid: lids.local,
        remote_lid: lids.remote,
        local_gid: record.sgid(),
        remote_gid: record.dgid(),
        flow_label: record.flow_label(),
        packet_rate: record.rate(),
        traffic_class: record.traffic_class(),
        hop_limit: record.hop_limit(),
        sl: record.sl(),
        subnet_local: lids.subnet_local,
        local_ack_timeout: Timeout::saturating(ack_timeout),
    }
}

impl<'a> RepParameters<'a> {
    fn message(&self, inner: &Inner, port: &Port) -> rep::Parameters<'a> {
        let (local_comm_id, remote_comm_id): (CommId, CommId) = inner.machine.ids();
        let none = Qpn::from_bytes([0; 3]);
        // An XRC target has no queue pair to the peer, but an end-to-end context.
        let is_target = inner.qp_type == QpType::XrcTgt;
        rep::Parameters {
            local_comm_id,
            remote_comm_id,
            local_qkey: 0,
            local_qpn: if is_target { none } else { self.qpn },
            local_eecn: if is_target { self.qpn } else { none },
            starting_psn: self.psn,
            responder_resources: self.responder_resources,
            initiator_depth: if is_target { 0 } else { self.initiator_depth },
            target_ack_delay: Timeout::saturating(port.ack_delay),
            failover: self.failover,
            flow_control: self.flow_control && !is_target,
            rnr_retry_count: self.rnr_retry_count,
            srq: self.srq || is_target,
            local_ca_guid: port.node_guid,
            ece: self.ece,
            private_data: self.private_data,
        }
    }
}

fn check_private_data(kind: Kind, private_data: &[u8]) -> Result {
    if private_data.len() > kind.private_data_len() {
        return Err(EINVAL);
    }
    Ok(())
}

/// Room for a request, which is kept until it is answered.
fn new_request() -> Result<KBox<Bytes>> {
    Ok(KBox::new([0; mad::LEN], GFP_ATOMIC)?)
}

/// A copy of private data, for duplicates.
fn saved(private_data: &[u8]) -> Result<KVec<u8>> {
    let mut saved = KVec::new();
    saved.extend_from_slice(private_data, GFP_ATOMIC)?;
    Ok(saved)
}
