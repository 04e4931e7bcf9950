// SPDX-License-Identifier: GPL-2.0-only

//! What a consumer in C gives, for the engine.

use kernel::prelude::*;

use crate::{
    bindings,
    cm::{
        QpType,
        RepParameters,
        ReqParameters,
        SidrRepParameters,
        SidrReqParameters, //
    },
    rdma::{
        gid::Entry,
        route::PathRecord, //
    },
    wire::{
        cm::{
            ece::Ece,
            rep::Failover,
            service_id::ServiceId,
            sidr_rep::Status,
            transport::Transport, //
        },
        psn::Psn,
        qpn::Qpn, //
    }, //
};

/// The private data, or other information, that a consumer gives.
///
/// # Safety
///
/// Null, or valid for `length` bytes during `'a`.
pub(super) unsafe fn bytes<'a>(data: *const c_void, length: u8) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: The caller's promise.
    unsafe { core::slice::from_raw_parts(data.cast(), length.into()) }
}

/// The record of a path, which is there.
///
/// # Safety
///
/// Null or valid.
unsafe fn path(raw: *const bindings::sa_path_rec) -> Result<PathRecord> {
    // SAFETY: The caller's promise; it is copied at once.
    unsafe { PathRecord::borrow(raw) }.copied().ok_or(EINVAL)
}

/// The LID where a path of an InfiniBand subnet ends, if there is a path.
///
/// # Safety
///
/// Null or valid.
unsafe fn end_of(raw: *const bindings::sa_path_rec) -> Option<u16> {
    // SAFETY: The caller's promise.
    unsafe { PathRecord::borrow(raw) }.map(|path| path.dlid() as u16)
}

fn qpn(number: u32) -> Result<Qpn> {
    Qpn::new(number).ok_or(EINVAL)
}

fn ece(given: bindings::rdma_ucm_ece) -> Ece {
    Ece {
        vendor_id: given.vendor_id,
        options: given.attr_mod,
    }
}

/// The type of a queue pair that asks for a connection.
fn qp_type(raw: bindings::ib_qp_type) -> Result<QpType> {
    match raw {
        bindings::ib_qp_type_IB_QPT_RC => Ok(QpType::Rc),
        bindings::ib_qp_type_IB_QPT_UC => Ok(QpType::Uc),
        bindings::ib_qp_type_IB_QPT_XRC_INI => Ok(QpType::XrcIni),
        _ => Err(EINVAL),
    }
}

/// The type of a queue pair that answers a request over this transport. Others than these three are
/// refused before a consumer is told.
pub(super) fn qp_type_of(transport: Transport) -> bindings::ib_qp_type {
    match transport {
        Transport::Uc => bindings::ib_qp_type_IB_QPT_UC,
        Transport::Xrc => bindings::ib_qp_type_IB_QPT_XRC_TGT,
        _ => bindings::ib_qp_type_IB_QPT_RC,
    }
}

fn failover(number: u8) -> Failover {
    match number {
        0 => Failover::Accepted,
        1 => Failover::Unsupported,
        2 => Failover::Rejected,
        _ => Failover::Reserved,
    }
}

/// What became of an alternate path, as a number.
pub(super) fn failover_number(failover: Failover) -> u32 {
    match failover {
        Failover::Accepted => 0,
        Failover::Unsupported => 1,
        Failover::Rejected => 2,
        Failover::Reserved => 3,
    }
}

/// For a REQ.
///
/// # Errors
///
/// `EINVAL` without a path, for a type of queue pair that does not ask, and for a number of one that
/// there cannot be.
///
/// # Safety
///
/// What `given` points to is valid during `'a`, or null.
pub(super) unsafe fn req<'a>(given: &bindings::ib_cm_req_param) -> Result<ReqParameters<'a>> {
    // SAFETY: The caller's promise.
    let (primary, alternate, source, private_data) = unsafe {
        (
            path(given.primary_path)?,
            PathRecord::borrow(given.alternate_path).copied(),
            Entry::borrow(given.ppath_sgid_attr),
            bytes(given.private_data, given.private_data_len),
        )
    };
    Ok(ReqParameters {
        primary,
        // SAFETY: The caller's promise.
        inbound_dlid: unsafe { end_of(given.primary_path_inbound) },
        // SAFETY: The caller's promise.
        outbound_dlid: unsafe { end_of(given.primary_path_outbound) },
        alternate,
        source,
        service: ServiceId::new(u64::from_be(given.service_id)),
        qpn: qpn(given.qp_num)?,
        qp_type: qp_type(given.qp_type)?,
        psn: Psn::wrapping(given.starting_psn),
        private_data,
        responder_resources: given.responder_resources,
        initiator_depth: given.initiator_depth,
        remote_response_timeout: given.remote_cm_response_timeout,
        local_response_timeout: given.local_cm_response_timeout,
        flow_control: given.flow_control != 0,
        retry_count: given.retry_count,
        rnr_retry_count: given.rnr_retry_count,
        max_retries: given.max_cm_retries,
        srq: given.srq != 0,
        ece: ece(given.ece),
    })
}

/// For a REP.
///
/// # Errors
///
/// `EINVAL` for a number of a queue pair that there cannot be.
///
/// # Safety
///
/// The private data is valid during `'a`, or null.
pub(super) unsafe fn rep<'a>(given: &bindings::ib_cm_rep_param) -> Result<RepParameters<'a>> {
    Ok(RepParameters {
        qpn: qpn(given.qp_num)?,
        psn: Psn::wrapping(given.starting_psn),
        // SAFETY: The caller's promise.
        private_data: unsafe { bytes(given.private_data, given.private_data_len) },
        responder_resources: given.responder_resources,
        initiator_depth: given.initiator_depth,
        failover: failover(given.failover_accepted),
        flow_control: given.flow_control != 0,
        rnr_retry_count: given.rnr_retry_count,
        srq: given.srq != 0,
        ece: ece(given.ece),
    })
}

/// For a SIDR_REQ.
///
/// # Errors
///
/// `EINVAL` without a path.
///
/// # Safety
///
/// What `given` points to is valid during `'a`, or null.
pub(super) unsafe fn sidr_req<'a>(
    given: &bindings::ib_cm_sidr_req_param,
) -> Result<SidrReqParameters<'a>> {
    // SAFETY: The caller's promise.
    let (path, source, private_data) = unsafe {
        (
            path(given.path)?,
            Entry::borrow(given.sgid_attr),
            bytes(given.private_data, given.private_data_len),
        )
    };
    Ok(SidrReqParameters {
        path,
        source,
        service: ServiceId::new(u64::from_be(given.service_id)),
        timeout: u32::try_from(given.timeout_ms).unwrap_or(u32::MAX),
        max_retries: given.max_cm_retries,
        private_data,
    })
}

/// For a SIDR_REP.
///
/// # Errors
///
/// `EINVAL` for a number of a queue pair that there cannot be.
///
/// # Safety
///
/// What `given` points to is valid during `'a`, or null.
pub(super) unsafe fn sidr_rep<'a>(
    given: &bindings::ib_cm_sidr_rep_param,
) -> Result<SidrRepParameters<'a>> {
    // SAFETY: The caller's promise.
    let (information, private_data) = unsafe {
        (
            bytes(given.info, given.info_length),
            bytes(given.private_data, given.private_data_len),
        )
    };
    Ok(SidrRepParameters {
        status: Status::new(given.status as u8),
        qpn: qpn(given.qp_num)?,
        qkey: given.qkey,
        information,
        private_data,
        ece: ece(given.ece),
    })
}
