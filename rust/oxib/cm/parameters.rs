// SPDX-License-Identifier: GPL-2.0-only

//! Parameters that a consumer gives for a message, and the message that is made of them.

use super::{
    id::{
        Id,
        Inner, //
    },
    machine::{
        input,
        route,
        time, //
    },
    port::Port, //
};
use crate::{
    rdma::{
        gid::Entry,
        path::PathRecord, //
    },
    wire::{
        cm::{
            rep,
            req,
            sidr_rep,
            CommId,
            Ece,
            Mtu,
            Path,
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

/// Parameters of a REQ.
pub(crate) struct ReqParameters<'a> {
    /// The path of the connection, and of its messages.
    pub(crate) primary: PathRecord,
    /// Destination LID of the path by which packets come back, if the consumer knows it.
    pub(crate) inbound_dlid: Option<u16>,
    /// Destination LID of the queue pair's packets, if it is not that of the path.
    pub(crate) outbound_dlid: Option<u16>,
    /// The path to migrate to.
    pub(crate) alternate: Option<PathRecord>,
    /// The GID that the path begins at, with its port.
    pub(crate) source: Option<&'a Entry>,
    /// The service asked for.
    pub(crate) service: ServiceId,
    /// The consumer's queue pair.
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
    /// Whether the consumer's channel adapter does end-to-end flow control.
    pub(crate) flow_control: bool,
    /// Retries of the transport.
    pub(crate) retry_count: u8,
    /// Retries of the transport when the receiver is not ready.
    pub(crate) rnr_retry_count: u8,
    /// Tries after the first.
    pub(crate) max_retries: u8,
    /// The queue pair receives by a shared receive queue.
    pub(crate) srq: bool,
    /// Options of the vendor, opaque to the connection manager (enhanced connection
    /// establishment).
    pub(crate) ece: Ece,
}

/// Parameters of a REP.
pub(crate) struct RepParameters<'a> {
    /// The consumer's queue pair.
    pub(crate) qpn: Qpn,
    /// First packet sequence number that the consumer sends with.
    pub(crate) psn: Psn,
    /// Private data, as much as a REP has room for.
    pub(crate) private_data: &'a [u8],
    /// RDMA reads and atomics that the peer may have outstanding.
    pub(crate) responder_resources: u8,
    /// RDMA reads and atomics that the consumer wants to have outstanding.
    pub(crate) initiator_depth: u8,
    /// The answer on the alternate path.
    pub(crate) failover: rep::Failover,
    /// Whether the consumer's channel adapter does end-to-end flow control.
    pub(crate) flow_control: bool,
    /// Retries of the transport when the receiver is not ready.
    pub(crate) rnr_retry_count: u8,
    /// The queue pair receives by a shared receive queue.
    pub(crate) srq: bool,
    /// Options of the vendor, opaque to the connection manager (enhanced connection
    /// establishment).
    pub(crate) ece: Ece,
}

/// Parameters of a SIDR_REQ.
pub(crate) struct SidrReqParameters<'a> {
    /// The path of the request.
    pub(crate) path: PathRecord,
    /// The GID that the path begins at, with its port.
    pub(crate) source: Option<&'a Entry>,
    /// The service asked for.
    pub(crate) service: ServiceId,
    /// Time-out of each try, in milliseconds.
    pub(crate) timeout: u32,
    /// Tries after the first.
    pub(crate) max_retries: u8,
    /// Private data, as much as a SIDR_REQ has room for.
    pub(crate) private_data: &'a [u8],
}

/// Parameters of a SIDR_REP.
pub(crate) struct SidrRepParameters<'a> {
    /// The answer to the request.
    pub(crate) status: sidr_rep::Status,
    /// The queue pair of the service.
    pub(crate) qpn: Qpn,
    /// The Q_Key of that queue pair.
    pub(crate) qkey: u32,
    /// Additional information, as much as a SIDR_REP has room for.
    pub(crate) information: &'a [u8],
    /// Private data, as much as a SIDR_REP has room for.
    pub(crate) private_data: &'a [u8],
    /// Options of the vendor, opaque to the connection manager (enhanced connection
    /// establishment).
    pub(crate) ece: Ece,
}

impl ReqParameters<'_> {
    pub(super) fn step(&self, rto: u32) -> input::ReqParam {
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

    pub(super) fn message<'a>(&'a self, id: &Id, port: &Port) -> req::Parameters<'a> {
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
    // On RoCE there are none; larger ones are Omni-Path's, of which the paths were refused.
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
    pub(super) fn message(&self, inner: &Inner, port: &Port) -> rep::Parameters<'a> {
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
