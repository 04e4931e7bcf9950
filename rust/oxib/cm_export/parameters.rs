// SPDX-License-Identifier: GPL-2.0-only

//! Conversion of the parameters that a consumer in C gives.

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
        path::PathRecord, //
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
    // SAFETY: `data` is not null, so the caller promises that it is valid for `length` bytes during
    // `'a`.
    unsafe { core::slice::from_raw_parts(data.cast(), length.into()) }
}

/// The record of a path, which is there.
///
/// # Safety
///
/// Null or valid.
unsafe fn path(raw: *const bindings::sa_path_rec) -> Result<PathRecord> {
    // SAFETY: The caller promises that `raw` is null or valid; the record is copied at once.
    unsafe { PathRecord::borrow(raw) }.copied().ok_or(EINVAL)
}

/// The LID where a path of an InfiniBand subnet ends, if there is a path.
///
/// # Safety
///
/// Null or valid.
unsafe fn end_of(raw: *const bindings::sa_path_rec) -> Option<u16> {
    // SAFETY: The caller promises that `raw` is null or valid; the LID is copied at once.
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

/// The type of a queue pair that answers a request over this transport. Others than these three
/// are refused before a consumer is told.
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

/// Returns the number of an alternate path's status, as it stands in a REP (Failover Accepted).
pub(super) fn failover_number(failover: Failover) -> u32 {
    match failover {
        Failover::Accepted => 0,
        Failover::Unsupported => 1,
        Failover::Rejected => 2,
        Failover::Reserved => 3,
    }
}

/// Converts the parameters of a REQ.
///
/// # Errors
///
/// `EINVAL` without a path, for a type of queue pair that does not ask, and for a number of one
/// that there cannot be.
///
/// # Safety
///
/// Each pointer in `given` is valid during `'a`, or null.
pub(super) unsafe fn req<'a>(given: &bindings::ib_cm_req_param) -> Result<ReqParameters<'a>> {
    // SAFETY: The caller promises that each pointer in `given` is null, or valid during `'a`.
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
        // SAFETY: The caller promises that the pointer is null, or valid during `'a`.
        inbound_dlid: unsafe { end_of(given.primary_path_inbound) },
        // SAFETY: The caller promises that the pointer is null, or valid during `'a`.
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

/// Converts the parameters of a REP.
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
        // SAFETY: The caller promises that the private data is null, or valid during `'a`.
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

/// Converts the parameters of a SIDR_REQ.
///
/// # Errors
///
/// `EINVAL` without a path.
///
/// # Safety
///
/// Each pointer in `given` is valid during `'a`, or null.
pub(super) unsafe fn sidr_req<'a>(
    given: &bindings::ib_cm_sidr_req_param,
) -> Result<SidrReqParameters<'a>> {
    // SAFETY: The caller promises that each pointer in `given` is null, or valid during `'a`.
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

/// Converts the parameters of a SIDR_REP.
///
/// # Errors
///
/// `EINVAL` for a number of a queue pair that there cannot be.
///
/// # Safety
///
/// Each pointer in `given` is valid during `'a`, or null.
pub(super) unsafe fn sidr_rep<'a>(
    given: &bindings::ib_cm_sidr_rep_param,
) -> Result<SidrRepParameters<'a>> {
    // SAFETY: The caller promises that each pointer in `given` is null, or valid during `'a`.
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

#[kernel::prelude::kunit_tests(oxib_cm_export)]
mod tests {
    use super::*;

    fn record() -> bindings::sa_path_rec {
        let mut path = PathRecord::new(crate::rdma::path::PathKind::Infiniband);
        path.set_dlid(0x1234);
        // SAFETY: Valid, and copied at once.
        unsafe { *path.as_raw() }
    }

    fn given(path: &mut bindings::sa_path_rec) -> bindings::ib_cm_req_param {
        bindings::ib_cm_req_param {
            primary_path: path,
            qp_num: 0x0000_4567,
            qp_type: bindings::ib_qp_type_IB_QPT_RC,
            service_id: 0x0102_0304_0506_0708_u64.to_be(),
            ..bindings::ib_cm_req_param::default()
        }
    }

    #[test]
    fn a_req_is_taken_as_it_is_given() -> Result {
        let mut path = record();
        let private_data = [7; 3];
        let mut given = given(&mut path);
        given.private_data = private_data.as_ptr().cast();
        given.private_data_len = 3;
        given.srq = 1;
        // SAFETY: All that is pointed to is valid here.
        let taken = unsafe { req(&given) }?;
        assert_eq!(taken.service.get(), 0x0102_0304_0506_0708);
        assert_eq!(taken.qpn.get(), 0x4567);
        assert_eq!(taken.primary.dlid(), 0x1234);
        assert_eq!(taken.private_data, &private_data[..]);
        assert!(taken.srq && !taken.flow_control);
        assert!(taken.alternate.is_none() && taken.source.is_none());
        assert!(taken.inbound_dlid.is_none() && taken.outbound_dlid.is_none());
        Ok(())
    }

    #[test]
    fn the_lids_of_both_directions_are_taken() -> Result {
        let (mut path, mut back) = (record(), record());
        back.__bindgen_anon_1.ib.dlid = 0x0a0b_u16.to_be();
        let mut given = given(&mut path);
        given.primary_path_inbound = &mut back;
        given.primary_path_outbound = given.primary_path;
        // SAFETY: All that is pointed to is valid here.
        let taken = unsafe { req(&given) }?;
        assert_eq!(taken.inbound_dlid, Some(0x0a0b));
        assert_eq!(taken.outbound_dlid, Some(0x1234));
        Ok(())
    }

    #[test]
    fn what_there_cannot_be_is_refused() {
        let mut path = record();
        let refused: [fn(&mut bindings::ib_cm_req_param); 4] = [
            |given| given.primary_path = core::ptr::null_mut(),
            |given| given.qp_type = bindings::ib_qp_type_IB_QPT_XRC_TGT,
            |given| given.qp_type = bindings::ib_qp_type_IB_QPT_UD,
            |given| given.qp_num = 0x0100_0000,
        ];
        for spoil in refused {
            let mut given = given(&mut path);
            spoil(&mut given);
            // SAFETY: All that is pointed to is valid here, or null.
            assert!(matches!(unsafe { req(&given) }, Err(EINVAL)));
        }
    }

    #[test]
    fn data_that_is_not_there_is_empty_however_long() {
        // SAFETY: Null.
        assert!(unsafe { bytes(core::ptr::null(), 255) }.is_empty());
    }

    #[test]
    fn what_became_of_a_path_has_two_bits() {
        for number in 0..4 {
            assert_eq!(failover_number(failover(number)), number.into());
        }
    }
}
