// SPDX-License-Identifier: GPL-2.0-only

//! The events that a consumer in C is told: `struct ib_cm_event`, made of a notice of the
//! engine's.

use core::ptr::null_mut;

use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

use super::id::CmId;
use crate::{
    bindings,
    cm::{
        Failure,
        Id,
        Notice,
        Origin,
        Report, //
    },
    rdma::{
        gid::Entry,
        path::PathRecord, //
    },
    wire::cm::{
        lap::Lap,
        mra::Mra,
        rej::Rej,
        rep::Rep,
        req::Req,
        sidr_rep::SidrRep,
        sidr_req::SidrReq,
        Message, //
    }, //
};

type Event = bindings::ib_cm_event;

/// Tells the consumer of `cm_id` what happened; what it says.
pub(super) fn tell(cm_id: &CmId, id: &Arc<Id>, notice: &Notice) -> i32 {
    let message = notice
        .message()
        .and_then(|mad| Message::parse(mad.bytes()).ok());
    // What the event points to, beside the message. Most events name no GID entry.
    let source = match message {
        Some(Message::Req(_) | Message::SidrReq(_) | Message::SidrRep(_)) => id.source(),
        _ => None,
    };
    let mut paths = EventPaths::new(notice.origin(), source);
    let mut event = new(notice.report());
    match message {
        Some(Message::Req(req)) => requested(&mut event, req, &mut paths),
        Some(Message::Rep(rep)) => replied(&mut event, rep, id.is_xrc_initiator()),
        Some(Message::Rej(rej)) => rejected(&mut event, rej),
        Some(Message::Mra(mra)) => acknowledged(&mut event, mra),
        Some(Message::Lap(lap)) => path_offered(&mut event, lap, &mut paths),
        Some(Message::SidrReq(request)) => asked(&mut event, request, &paths),
        Some(Message::SidrRep(reply)) => resolved(&mut event, reply, &paths),
        Some(_) | None => {}
    }
    event.private_data = message.map_or(null_mut(), |message| pointer(message.private_data()));
    cm_id.call(&event)
}

/// The paths and the GID entry that an event names, as long as the consumer is told.
struct EventPaths<'a> {
    origin: Option<&'a Origin>,
    primary: Option<PathRecord>,
    alternate: Option<PathRecord>,
    source: Option<ARef<Entry>>,
}

impl<'a> EventPaths<'a> {
    fn new(origin: Option<&'a Origin>, source: Option<ARef<Entry>>) -> Self {
        Self {
            origin,
            primary: origin.and_then(|origin| origin.primary),
            alternate: origin.and_then(|origin| origin.alternate),
            source,
        }
    }

    fn primary(&mut self) -> *mut bindings::sa_path_rec {
        self.primary.as_mut().map_or(null_mut(), PathRecord::as_raw)
    }

    fn alternate(&mut self) -> *mut bindings::sa_path_rec {
        self.alternate
            .as_mut()
            .map_or(null_mut(), PathRecord::as_raw)
    }

    fn source(&self) -> *const bindings::ib_gid_attr {
        self.source
            .as_ref()
            .map_or(core::ptr::null(), |entry| entry.as_raw())
    }

    /// The consumer's handle of its listener; null if there is none.
    fn listener(&self) -> *mut bindings::ib_cm_id {
        self.origin
            .and_then(Origin::listener)
            .and_then(|id| CmId::of(id))
            .map_or(null_mut(), CmId::as_raw)
    }

    fn port(&self) -> u8 {
        // Numbers of ports have been wider than this field for a while.
        self.origin.map_or(0, |origin| origin.port as u8)
    }

    fn pkey(&self) -> u16 {
        self.origin.map_or(0, |origin| origin.pkey)
    }
}

/// An event of which only what happened is known.
fn new(report: Report) -> Event {
    let mut event: Event = pin_init::zeroed();
    let (kind, failure) = match report {
        Report::ReqError(failure) => (bindings::ib_cm_event_type_IB_CM_REQ_ERROR, Some(failure)),
        Report::ReqReceived => (bindings::ib_cm_event_type_IB_CM_REQ_RECEIVED, None),
        Report::RepError(failure) => (bindings::ib_cm_event_type_IB_CM_REP_ERROR, Some(failure)),
        Report::RepReceived => (bindings::ib_cm_event_type_IB_CM_REP_RECEIVED, None),
        Report::RtuReceived => (bindings::ib_cm_event_type_IB_CM_RTU_RECEIVED, None),
        Report::UserEstablished => (bindings::ib_cm_event_type_IB_CM_USER_ESTABLISHED, None),
        Report::DreqError(failure) => (bindings::ib_cm_event_type_IB_CM_DREQ_ERROR, Some(failure)),
        Report::DreqReceived => (bindings::ib_cm_event_type_IB_CM_DREQ_RECEIVED, None),
        Report::DrepReceived => (bindings::ib_cm_event_type_IB_CM_DREP_RECEIVED, None),
        Report::TimewaitExit => (bindings::ib_cm_event_type_IB_CM_TIMEWAIT_EXIT, None),
        Report::MraReceived => (bindings::ib_cm_event_type_IB_CM_MRA_RECEIVED, None),
        Report::RejReceived => (bindings::ib_cm_event_type_IB_CM_REJ_RECEIVED, None),
        Report::LapReceived => (bindings::ib_cm_event_type_IB_CM_LAP_RECEIVED, None),
        Report::SidrReqError(failure) => (
            bindings::ib_cm_event_type_IB_CM_SIDR_REQ_ERROR,
            Some(failure),
        ),
        Report::SidrReqReceived => (bindings::ib_cm_event_type_IB_CM_SIDR_REQ_RECEIVED, None),
        Report::SidrRepReceived => (bindings::ib_cm_event_type_IB_CM_SIDR_REP_RECEIVED, None),
    };
    event.event = kind;
    if let Some(failure) = failure {
        event.param.send_status = match failure {
            Failure::Timeout => bindings::ib_wc_status_IB_WC_RESP_TIMEOUT_ERR,
            Failure::Send => bindings::ib_wc_status_IB_WC_GENERAL_ERR,
        };
    }
    event
}

/// Bytes of a message as C has them. Consumers read as many as that kind of message has.
fn pointer(bytes: &[u8]) -> *mut c_void {
    bytes.as_ptr().cast_mut().cast()
}

fn ece(ece: crate::wire::cm::ece::Ece) -> bindings::rdma_ucm_ece {
    bindings::rdma_ucm_ece {
        vendor_id: ece.vendor_id,
        attr_mod: ece.options,
    }
}

/// Reports a REQ. The sender's depth is the receiver's resources, and what the sender calls
/// remote is local to the receiver.
fn requested(event: &mut Event, req: &Req, paths: &mut EventPaths<'_>) {
    let mut param = bindings::ib_cm_req_event_param {
        listen_id: paths.listener(),
        bth_pkey: paths.pkey(),
        port: paths.port(),
        primary_path: paths.primary(),
        alternate_path: paths.alternate(),
        ppath_sgid_attr: paths.source(),
        remote_ca_guid: req.local_ca_guid().to_be(),
        remote_qkey: req.local_qkey(),
        remote_qpn: req.local_qpn().get(),
        qp_type: super::parameters::qp_type_of(req.transport()),
        starting_psn: req.starting_psn().get(),
        responder_resources: req.initiator_depth(),
        initiator_depth: req.responder_resources(),
        ece: ece(req.ece()),
        ..bindings::ib_cm_req_event_param::default()
    };
    param.set_local_cm_response_timeout(req.remote_cm_response_timeout().exponent().into());
    param.set_flow_control(req.flow_control().into());
    param.set_remote_cm_response_timeout(req.local_cm_response_timeout().exponent().into());
    param.set_retry_count(req.retry_count().into());
    // SAFETY: `param` is a valid structure of ours, which the function writes to and does not
    // keep.
    unsafe {
        bindings::oxib_cm_req_event_set_tail(&mut param, req.rnr_retry_count(), req.srq());
    }
    event.param.req_rcvd = param;
}

/// A REP. An XRC initiator is connected to the target's end-to-end context.
fn replied(event: &mut Event, rep: &Rep, to_xrc_initiator: bool) {
    let qpn = if to_xrc_initiator {
        rep.local_eecn()
    } else {
        rep.local_qpn()
    };
    let mut param = bindings::ib_cm_rep_event_param {
        remote_ca_guid: rep.local_ca_guid().to_be(),
        remote_qkey: rep.local_qkey(),
        remote_qpn: qpn.get(),
        starting_psn: rep.starting_psn().get(),
        responder_resources: rep.initiator_depth(),
        initiator_depth: rep.responder_resources(),
        ece: ece(rep.ece()),
        ..bindings::ib_cm_rep_event_param::default()
    };
    param.set_target_ack_delay(rep.target_ack_delay().exponent().into());
    param.set_failover_accepted(super::parameters::failover_number(rep.failover()));
    param.set_flow_control(rep.flow_control().into());
    param.set_rnr_retry_count(rep.rnr_retry_count().into());
    param.set_srq(rep.srq().into());
    event.param.rep_rcvd = param;
}

fn rejected(event: &mut Event, rej: &Rej) {
    let information = rej.ari();
    event.param.rej_rcvd = bindings::ib_cm_rej_event_param {
        reason: rej.reason().get().into(),
        ari: pointer(information),
        ari_length: information.len() as u8,
    };
}

fn acknowledged(event: &mut Event, mra: &Mra) {
    event.param.mra_rcvd = bindings::ib_cm_mra_event_param {
        service_timeout: mra.service_timeout().exponent(),
    };
}

fn path_offered(event: &mut Event, _lap: &Lap, paths: &mut EventPaths<'_>) {
    event.param.lap_rcvd = bindings::ib_cm_lap_event_param {
        alternate_path: paths.primary(),
    };
}

fn asked(event: &mut Event, request: &SidrReq, paths: &EventPaths<'_>) {
    event.param.sidr_req_rcvd = bindings::ib_cm_sidr_req_event_param {
        listen_id: paths.listener(),
        service_id: request.service_id().get().to_be(),
        sgid_attr: paths.source(),
        bth_pkey: paths.pkey(),
        port: paths.port(),
        pkey: request.pkey().get(),
    };
}

fn resolved(event: &mut Event, reply: &SidrRep, paths: &EventPaths<'_>) {
    let information = reply.information();
    event.param.sidr_rep_rcvd = bindings::ib_cm_sidr_rep_event_param {
        status: reply.status().get().into(),
        qkey: reply.qkey(),
        qpn: reply.qpn().get(),
        info: pointer(information),
        sgid_attr: paths.source(),
        info_len: information.len() as u8,
    };
}
