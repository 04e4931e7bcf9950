// SPDX-License-Identifier: GPL-2.0-only

//! Attributes of a connection's queue pair, for `struct ib_qp_attr`.

use kernel::prelude::*;

use crate::{
    bindings,
    cm::{
        Addresses,
        Id,
        QpInit,
        QpRtr,
        QpRts,
        Requester, //
    },
    rdma::{
        device::Device,
        route::AddressVector, //
    },
};

/// The LID that stands for none (IBTA 4.1.3).
const PERMISSIVE_LID: u16 = 0xffff;

type Attributes = bindings::ib_qp_attr;

/// Fills in what the transition to `attributes.qp_state` takes; which attributes those are.
///
/// # Errors
///
/// `EINVAL` for other states than INIT, RTR and RTS, and if the connection's state has no
/// attributes. Then nothing was filled in.
pub(super) fn fill(id: &Id, device: &Device, attributes: &mut Attributes) -> Result<u32> {
    let mut mask = 0;
    match attributes.qp_state {
        bindings::ib_qp_state_IB_QPS_INIT => {
            let can_flush = device.can_flush();
            id.qp_init(|given, addresses| mask = init(given, addresses, can_flush, attributes))?;
        }
        bindings::ib_qp_state_IB_QPS_RTR => {
            id.qp_rtr(|given, addresses| mask = ready_to_receive(given, addresses, attributes))?;
        }
        bindings::ib_qp_state_IB_QPS_RTS => {
            id.qp_rts(|given, addresses| mask = ready_to_send(given, addresses, attributes))?;
        }
        _ => return Err(EINVAL),
    }
    Ok(mask)
}

fn init(
    given: &QpInit,
    addresses: &Addresses<'_>,
    can_flush: bool,
    attributes: &mut Attributes,
) -> u32 {
    let mut access = bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE;
    if given.responder_resources != 0 {
        access |= bindings::ib_access_flags_IB_ACCESS_REMOTE_READ
            | bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC;
        if can_flush {
            access |= bindings::ib_access_flags_IB_ACCESS_FLUSH_GLOBAL
                | bindings::ib_access_flags_IB_ACCESS_FLUSH_PERSISTENT;
        }
    }
    attributes.qp_access_flags = access as i32;
    if let Some(address) = addresses.address {
        attributes.pkey_index = address.pkey_index();
        attributes.port_num = address.port().get();
    }
    bindings::ib_qp_attr_mask_IB_QP_STATE
        | bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS
        | bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX
        | bindings::ib_qp_attr_mask_IB_QP_PORT
}

fn ready_to_receive(given: &QpRtr, addresses: &Addresses<'_>, attributes: &mut Attributes) -> u32 {
    let mut mask = bindings::ib_qp_attr_mask_IB_QP_STATE
        | bindings::ib_qp_attr_mask_IB_QP_AV
        | bindings::ib_qp_attr_mask_IB_QP_PATH_MTU
        | bindings::ib_qp_attr_mask_IB_QP_DEST_QPN
        | bindings::ib_qp_attr_mask_IB_QP_RQ_PSN;
    if let Some(address) = addresses.address {
        attributes.ah_attr = *address.as_attributes();
        if addresses.data_lid != 0 && addresses.data_lid != PERMISSIVE_LID {
            lead_to(&mut attributes.ah_attr, addresses.data_lid);
        }
    }
    attributes.path_mtu = given.mtu.get().into();
    attributes.dest_qp_num = given.dest_qpn.get();
    attributes.rq_psn = given.rq_psn.get();
    if let Some(depth) = given.max_dest_rd_atomic {
        mask |= bindings::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC
            | bindings::ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER;
        attributes.max_dest_rd_atomic = depth;
        attributes.min_rnr_timer = 0;
    }
    if let Some(address) = alternate(addresses) {
        mask |= bindings::ib_qp_attr_mask_IB_QP_ALT_PATH;
        let timeout = given.alternate_timeout.unwrap_or(address.timeout());
        fill_alternate(address, timeout, attributes);
    }
    mask
}

fn ready_to_send(given: &QpRts, addresses: &Addresses<'_>, attributes: &mut Attributes) -> u32 {
    match *given {
        QpRts::First {
            sq_psn,
            ref requester,
            timeout,
            ..
        } => {
            let mut mask =
                bindings::ib_qp_attr_mask_IB_QP_STATE | bindings::ib_qp_attr_mask_IB_QP_SQ_PSN;
            attributes.sq_psn = sq_psn.get();
            if let Some(requester) = requester {
                mask |= fill_requester(requester, attributes);
            }
            if let Some(timeout) = timeout {
                mask |= bindings::ib_qp_attr_mask_IB_QP_TIMEOUT;
                attributes.timeout = timeout;
            }
            if alternate(addresses).is_some() {
                mask |= bindings::ib_qp_attr_mask_IB_QP_PATH_MIG_STATE;
                attributes.path_mig_state = bindings::ib_mig_state_IB_MIG_REARM;
            }
            mask
        }
        QpRts::Alternate { timeout } => {
            if let Some(address) = addresses.alternate {
                fill_alternate(address, timeout, attributes);
            }
            attributes.path_mig_state = bindings::ib_mig_state_IB_MIG_REARM;
            bindings::ib_qp_attr_mask_IB_QP_ALT_PATH
                | bindings::ib_qp_attr_mask_IB_QP_PATH_MIG_STATE
        }
    }
}

fn fill_requester(requester: &Requester, attributes: &mut Attributes) -> u32 {
    attributes.retry_cnt = requester.retry_count;
    attributes.rnr_retry = requester.rnr_retry_count;
    attributes.max_rd_atomic = requester.max_rd_atomic;
    bindings::ib_qp_attr_mask_IB_QP_RETRY_CNT
        | bindings::ib_qp_attr_mask_IB_QP_RNR_RETRY
        | bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC
}

/// The alternate path, where queue pairs can have one: it has a LID, so not on RoCE.
fn alternate<'a>(addresses: &Addresses<'a>) -> Option<&'a AddressVector> {
    addresses.alternate.filter(|address| address.dlid() != 0)
}

/// Fills in the alternate path. Its time-out has the peer's delay in it, which its address has
/// not.
fn fill_alternate(address: &AddressVector, timeout: u8, attributes: &mut Attributes) {
    attributes.alt_port_num = address.port().get();
    attributes.alt_pkey_index = address.pkey_index();
    attributes.alt_timeout = timeout;
    attributes.alt_ah_attr = *address.as_attributes();
}

/// Changes where packets go in an InfiniBand subnet.
fn lead_to(attribute: &mut bindings::rdma_ah_attr, lid: u16) {
    if attribute.type_ == bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_IB {
        attribute.__bindgen_anon_1.ib.dlid = lid;
    }
}
