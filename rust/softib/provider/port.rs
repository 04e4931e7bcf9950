// SPDX-License-Identifier: GPL-2.0-only

//! Queries and changes of a device and its ports.

use kernel::error::from_result;
use kernel::prelude::*;

use super::{
    device,
    udata, //
};
use crate::{
    bindings,
    hca::{
        limits,
        management,
        port, //
    },
    identity,
    linux::DeviceLimit, //
};

/// Returns the limits and capabilities of a device (`query_device`).
///
/// # Safety
///
/// Called by `ib_core` with a device of ours and room for the attributes, which are zero.
pub(super) unsafe extern "C" fn query_device(
    device: *mut bindings::ib_device,
    out: *mut bindings::ib_device_attr,
    data: *mut bindings::ib_udata,
) -> i32 {
    from_result(|| {
        // SAFETY: `ib_core` gives the data of a program's command, or none.
        unsafe { udata::refuse(data) }?;
        // SAFETY: The device is one of ours; the attributes are the caller's, and zero is a value
        // of each.
        let (options, device, out) = unsafe { (&device::hca(device).options, &*device, &mut *out) };
        out.sys_image_guid = device.node_guid;
        out.fw_ver = 1;
        out.vendor_id = identity::VENDOR;
        out.vendor_part_id = identity::DEVICE.into();
        out.max_mr_size = u64::MAX;
        out.page_size_cap = u64::from(u32::MAX) & !(bindings::PAGE_SIZE as u64 - 1);
        out.device_cap_flags = (bindings::ib_device_cap_flags_IB_DEVICE_BAD_PKEY_CNTR
            | bindings::ib_device_cap_flags_IB_DEVICE_BAD_QKEY_CNTR
            | bindings::ib_device_cap_flags_IB_DEVICE_PORT_ACTIVE_EVENT
            | bindings::ib_device_cap_flags_IB_DEVICE_SYS_IMAGE_GUID
            | bindings::ib_device_cap_flags_IB_DEVICE_RC_RNR_NAK_GEN
            | bindings::ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS)
            as u64;
        out.kernel_cap_flags = u64::from(
            bindings::ib_kernel_cap_flags_IBK_LOCAL_DMA_LKEY
                | bindings::ib_kernel_cap_flags_IBK_BLOCK_MULTICAST_LOOPBACK
                | bindings::ib_kernel_cap_flags_IBK_ALLOW_USER_UNREG,
        );
        if options.checksum {
            out.device_cap_flags |= bindings::ib_device_cap_flags_IB_DEVICE_UD_IP_CSUM as u64;
        }
        if options.tso {
            out.kernel_cap_flags |= u64::from(bindings::ib_kernel_cap_flags_IBK_UD_TSO);
        }
        out.max_qp = limits::QUEUE_PAIRS as DeviceLimit;
        out.max_qp_wr = options.max_wr as DeviceLimit;
        out.max_send_sge = options.max_sge as DeviceLimit;
        out.max_recv_sge = options.max_sge as DeviceLimit;
        out.max_sge_rd = options.max_sge as DeviceLimit;
        out.max_cq = limits::COMPLETION_QUEUES as DeviceLimit;
        out.max_cqe = limits::COMPLETIONS as DeviceLimit;
        out.max_mr = limits::REGIONS as DeviceLimit;
        out.max_pd = limits::DOMAINS as DeviceLimit;
        out.max_ah = limits::ADDRESS_HANDLES as DeviceLimit;
        out.max_qp_rd_atom = limits::READS as DeviceLimit;
        out.max_qp_init_rd_atom = limits::READS as DeviceLimit;
        out.max_res_rd_atom = (limits::READS * limits::QUEUE_PAIRS) as DeviceLimit;
        out.atomic_cap = bindings::ib_atomic_cap_IB_ATOMIC_HCA;
        if options.multicast {
            out.max_mcast_grp = limits::GROUPS as DeviceLimit;
            out.max_mcast_qp_attach = limits::GROUP_MEMBERS as DeviceLimit;
            out.max_total_mcast_qp_attach = limits::GROUPS as DeviceLimit;
        }
        if options.srq {
            out.max_srq = limits::SHARED_QUEUES as DeviceLimit;
            out.max_srq_wr = options.max_wr as DeviceLimit;
            out.max_srq_sge = options.max_sge as DeviceLimit;
        }
        out.max_fast_reg_page_list_len = limits::REGION_PAGES;
        out.max_pkeys = port::PKEYS as u16;
        out.local_ca_ack_delay = 15;
        Ok(0)
    })
}

/// Returns the attributes of a port that never change (`get_port_immutable`).
///
/// # Safety
///
/// Called by `ib_core` with a device of ours and room for the answer.
pub(super) unsafe extern "C" fn immutable(
    device: *mut bindings::ib_device,
    _port: u32,
    out: *mut bindings::ib_port_immutable,
) -> i32 {
    // SAFETY: The device is one of ours; the answer is the caller's alone.
    let (options, out) = unsafe { (&device::hca(device).options, &mut *out) };
    out.pkey_tbl_len = port::PKEYS as i32;
    out.gid_tbl_len = port::GIDS as i32;
    (out.core_cap_flags, out.max_mad_size) = match options.omni_path {
        true => (bindings::SOFTIB_PORT_INTEL_OPA, bindings::OPA_MGMT_MAD_SIZE),
        false => (bindings::SOFTIB_PORT_IBA_IB, bindings::IB_MGMT_MAD_SIZE),
    };
    0
}

/// Returns the link layer of a port: InfiniBand (`get_link_layer`).
///
/// # Safety
///
/// No requirements; the function is `unsafe` only by its type in the table of operations.
pub(super) unsafe extern "C" fn link_layer(
    _device: *mut bindings::ib_device,
    _port: u32,
) -> bindings::rdma_link_layer {
    bindings::rdma_link_layer_IB_LINK_LAYER_INFINIBAND
}

/// Returns the attributes of a port (`query_port`).
///
/// # Safety
///
/// Called by `ib_core` with a device of ours and room for the attributes, which are zero.
pub(super) unsafe extern "C" fn query(
    device: *mut bindings::ib_device,
    port: u32,
    out: *mut bindings::ib_port_attr,
) -> i32 {
    from_result(|| {
        // SAFETY: The device is one of ours; the attributes are the caller's, and zero is a value
        // of each.
        let (hca, out) = unsafe { (device::hca(device), &mut *out) };
        hca.begin_command()?;
        let known = hca.ports.attributes(port as u8).ok_or(EINVAL)?;
        out.state = known.state.into();
        out.phys_state = known.physical;
        out.max_mtu = known.max_mtu.into();
        out.active_mtu = known.active_mtu.into();
        out.gid_tbl_len = port::GIDS as i32;
        out.pkey_tbl_len = port::PKEYS as u16;
        out.port_cap_flags = known.capabilities;
        out.max_msg_sz = limits::MESSAGE;
        out.bad_pkey_cntr = known.bad_pkeys;
        out.qkey_viol_cntr = known.bad_qkeys;
        out.lid = known.lid.into();
        out.sm_lid = known.sm_lid.into();
        out.lmc = known.lmc;
        out.max_vl_num = known.lanes;
        out.sm_sl = known.sm_sl;
        out.subnet_timeout = known.subnet_timeout;
        out.init_type_reply = 0;
        out.active_width = known.width;
        out.active_speed = known.speed;
        Ok(0)
    })
}

/// Reads an entry of a port's GID table (`query_gid`).
///
/// # Safety
///
/// Called by `ib_core` with a device of ours and room for the GID.
pub(super) unsafe extern "C" fn query_gid(
    device: *mut bindings::ib_device,
    port: u32,
    index: i32,
    out: *mut bindings::ib_gid,
) -> i32 {
    from_result(|| {
        let index = usize::try_from(index)?;
        // SAFETY: The device is one of ours, and there is room for the GID.
        unsafe {
            let gid = device::hca(device).ports.gid(port as u8, index);
            (*out).raw = gid.ok_or(EINVAL)?.bytes();
        }
        Ok(0)
    })
}

/// Reads an entry of a port's P_Key table (`query_pkey`).
///
/// # Safety
///
/// Called by `ib_core` with a device of ours and room for the key.
pub(super) unsafe extern "C" fn query_pkey(
    device: *mut bindings::ib_device,
    port: u32,
    index: u16,
    out: *mut u16,
) -> i32 {
    from_result(|| {
        // SAFETY: The device is one of ours, and there is room for the key.
        unsafe {
            let pkey = device::hca(device).ports.pkey(port as u8, index.into());
            *out = pkey.ok_or(EINVAL)?.get();
        }
        Ok(0)
    })
}

/// Changes the capabilities of a port that software has (`modify_port`).
///
/// # Safety
///
/// Called by `ib_core` with a device of ours and valid changes.
pub(super) unsafe extern "C" fn modify(
    device: *mut bindings::ib_device,
    port: u32,
    mask: i32,
    change: *mut bindings::ib_port_modify,
) -> i32 {
    from_result(|| {
        // SAFETY: The device is one of ours, and the changes are valid.
        let (hca, change) = unsafe { (device::hca(device), &*change) };
        // The count of wrong Q_Keys is the subnet manager's to clear.
        if mask != 0 {
            return Err(super::unsupported());
        }
        hca.set_capabilities(
            port as u8,
            change.set_port_cap_mask,
            change.clr_port_cap_mask,
        )?;
        Ok(0)
    })
}

/// Changes the description of a device (`modify_device`).
///
/// # Safety
///
/// Called by `ib_core` with a device of ours and valid changes.
pub(super) unsafe extern "C" fn modify_device(
    device: *mut bindings::ib_device,
    mask: i32,
    change: *mut bindings::ib_device_modify,
) -> i32 {
    from_result(|| {
        let description = bindings::ib_device_modify_flags_IB_DEVICE_MODIFY_NODE_DESC;
        if mask as u32 & !description != 0 {
            return Err(super::unsupported());
        }
        if mask as u32 & description != 0 {
            // SAFETY: The device is one of ours, and the changes are valid.
            let (hca, text) = unsafe { (device::hca(device), (*change).node_desc) };
            // SAFETY: The device is valid; readers of the description take what they find.
            unsafe { (*device).node_desc = (*change).node_desc };
            hca.set_description(&text);
        }
        Ok(0)
    })
}

/// Serves a management datagram (`process_mad`).
///
/// # Safety
///
/// Called by `ib_core` with a device of ours, a valid datagram, and room for the answer.
pub(super) unsafe extern "C" fn process_mad(
    device: *mut bindings::ib_device,
    _flags: i32,
    port: u32,
    completion: *const bindings::ib_wc,
    _grh: *const bindings::ib_grh,
    question: *const bindings::ib_mad,
    answer: *mut bindings::ib_mad,
    _size: *mut usize,
    _pkey_index: *mut u16,
) -> i32 {
    // SAFETY: The device is one of ours; both datagrams are 256 bytes, and the answer is the
    // caller's alone.
    let (hca, question, answer) = unsafe {
        (
            device::hca(device),
            &*question.cast::<[u8; crate::wire::mad::LEN]>(),
            &mut *answer.cast::<[u8; crate::wire::mad::LEN]>(),
        )
    };
    // SAFETY: The completion is valid, or null for a datagram that this port sent itself.
    let source = unsafe { completion.as_ref() }.map_or(0, |completion| completion.slid as u16);
    match hca.process_mad(port as u8, source, question, answer) {
        management::Processed::Reply => {
            (bindings::ib_mad_result_IB_MAD_RESULT_SUCCESS
                | bindings::ib_mad_result_IB_MAD_RESULT_REPLY) as i32
        }
        management::Processed::Agents => bindings::ib_mad_result_IB_MAD_RESULT_SUCCESS as i32,
        management::Processed::Consumed => {
            (bindings::ib_mad_result_IB_MAD_RESULT_SUCCESS
                | bindings::ib_mad_result_IB_MAD_RESULT_CONSUMED) as i32
        }
    }
}
