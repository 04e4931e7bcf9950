// SPDX-License-Identifier: GPL-2.0-only

//! Declarations of libibverbs' private interface, version 34 (rdma-core 34 to 56), by the names
//! that they have in rdma-core's `driver.h`, `verbs.h`, `cmd_ioctl.h` and `kern-abi.h`.
//!
//! Only what this library reads or writes has a name. The other fields of a type that it allocates
//! are a `filler`. `cargo test` compares each layout and number with `layouts.txt`, which
//! `scripts/provider layouts` writes with rdma-core's own headers.

mod declare;
mod functions;
mod operations;

use crate::memory::Zeroable;
#[cfg(test)]
pub(crate) use declare::Layout;
use declare::{
    buffers,
    numbers,
    opaque,
    types, //
};
pub(crate) use functions::*;
#[cfg(test)]
pub(crate) use operations::layouts_of_types as layouts_of_operations;
pub(crate) use operations::verbs_context_ops;
use std::ffi::{
    c_char,
    c_int,
    c_void, //
};
use std::marker::{
    PhantomData,
    PhantomPinned, //
};

numbers! {
    /// The kind of an entry that has the identifier of a driver.
    VERBS_MATCH_DRIVER_ID: u8 = 3;
    /// The kind of objects that completion queues are.
    UVERBS_OBJECT_CQ: u16 = 3;
    /// The bits of a number that are not its name space.
    UVERBS_ID_NS_SHIFT: u32 = 12;
    /// The kernel has to know the attribute.
    UVERBS_ATTR_F_MANDATORY: u16 = 1;
    /// A command has no attribute of the driver's.
    _UHW_NO_INDEX: u8 = 0xff;
    /// The completion has a global route header.
    IBV_WC_GRH: u32 = 1 << 0;
    /// The completion has immediate data.
    IBV_WC_WITH_IMM: u32 = 1 << 1;
    /// The checksums of the packet are right.
    IBV_WC_IP_CSUM_OK: u32 = 1 << 2;
    /// The completion has a key that the peer invalidated.
    IBV_WC_WITH_INV: u32 = 1 << 3;
}

opaque! {
    ibv_ah_attr
    ibv_comp_channel
    ibv_device
    ibv_gid
    ibv_port_attr
    ibv_qp_attr
    ibv_qp_init_attr
    ibv_query_device_ex_input
    ibv_srq_attr
    ibv_srq_init_attr
    verbs_sysfs_dev
}

buffers! {
    ibv_get_context = 16;
    ib_uverbs_get_context_resp = 8;
    ibv_query_port = 24;
    ibv_alloc_pd = 16;
    ib_uverbs_alloc_pd_resp = 4;
    ibv_reg_mr = 48;
    ib_uverbs_reg_mr_resp = 12;
    ibv_rereg_mr = 56;
    ib_uverbs_rereg_mr_resp = 8;
    ibv_create_cq = 40;
    ib_uverbs_create_cq_resp = 8;
    ibv_create_srq = 40;
    ib_uverbs_create_srq_resp = 16;
    ibv_modify_srq = 24;
    ibv_query_srq = 24;
    ibv_create_qp = 64;
    ib_uverbs_create_qp_resp = 32;
    ibv_query_qp = 24;
    ibv_modify_qp = 120;
    ib_uverbs_create_ah_resp = 4;
}
/// A slot of [`verbs_context_ops`] that this library leaves to libibverbs, which answers
/// EOPNOTSUPP.
type Unused = Option<unsafe extern "C" fn()>;
types! {
    /// An entry of the table by which a driver's devices are known. The last one is zero.
    struct verbs_match_ent {
        pub(crate) driver_data: *mut c_void,
        pub(crate) u: u64,
        pub(crate) vendor: u16,
        pub(crate) device: u16,
        pub(crate) kind: u8,
    }

    /// A device of a driver.
    struct verbs_device {
        filler: [u64; 89],
    }

    /// The functions of a driver.
    struct verbs_device_ops {
        pub(crate) name: *const c_char,
        pub(crate) match_min_abi_version: u32,
        pub(crate) match_max_abi_version: u32,
        pub(crate) match_table: *const verbs_match_ent,
        pub(crate) static_providers: *const *const verbs_device_ops,
        pub(crate) match_device: Option<unsafe extern "C" fn(*mut verbs_sysfs_dev) -> bool>,
        pub(crate) alloc_context: Option<
            unsafe extern "C" fn(*mut ibv_device, c_int, *mut c_void) -> *mut verbs_context,
        >,
        pub(crate) import_context: Unused,
        pub(crate) alloc_device: Option<
            unsafe extern "C" fn(*mut verbs_sysfs_dev) -> *mut verbs_device,
        >,
        pub(crate) uninit_device: Option<unsafe extern "C" fn(*mut verbs_device)>,
    }

    /// A context with what verbs have in it that are newer than `ibv_context`.
    struct verbs_context {
        filler: [u64; 40],
        pub(crate) context: ibv_context,
    }

    /// A context: a device that a program has opened.
    struct ibv_context {
        filler: [u64; 41],
    }

    /// A protection domain; none of its fields is used here.
    struct ibv_pd {
        filler: [u64; 2],
    }

    /// A memory region with what libibverbs has of it.
    struct verbs_mr {
        pub(crate) ibv_mr: ibv_mr,
        filler: [u64; 1],
    }

    /// A memory region; none of its fields is used here.
    struct ibv_mr {
        filler: [u64; 6],
    }

    /// A completion queue with its context and the number that the kernel knows it by.
    struct ibv_cq {
        pub(crate) context: *mut ibv_context,
        filler: [u64; 2],
        pub(crate) handle: u32,
        filler_behind: [u32; 25],
    }

    /// A shared receive queue.
    struct ibv_srq {
        filler: [u64; 16],
    }

    /// A queue pair with what libibverbs looks for behind it.
    struct verbs_qp {
        pub(crate) qp: ibv_qp,
        filler: [u64; 27],
    }

    /// A queue pair; none of its fields is used here.
    struct ibv_qp {
        filler: [u64; 20],
    }

    /// An address handle; none of its fields is used here.
    struct ibv_ah {
        filler: [u64; 3],
    }

    /// A request to send.
    #[derive(Clone, Copy)]
    struct ibv_send_wr {
        pub(crate) wr_id: u64,
        pub(crate) next: *mut ibv_send_wr,
        filler_list: u64,
        pub(crate) num_sge: c_int,
        filler: [u32; 25],
    }

    /// A request to receive.
    #[derive(Clone, Copy)]
    struct ibv_recv_wr {
        pub(crate) wr_id: u64,
        pub(crate) next: *mut ibv_recv_wr,
        filler_list: u64,
        pub(crate) num_sge: c_int,
    }

    /// A request to send, as a command has it.
    struct ib_uverbs_send_wr {
        filler: [u64; 7],
    }

    /// A request to receive, as a command has it.
    struct ib_uverbs_recv_wr {
        filler: [u64; 2],
    }

    /// An entry of a request's scatter/gather list, as a command has it.
    struct ib_uverbs_sge {
        filler: [u64; 2],
    }

    /// A completion as programs have it.
    struct ibv_wc {
        pub(crate) wr_id: u64,
        pub(crate) status: u32,
        pub(crate) opcode: u32,
        pub(crate) vendor_err: u32,
        pub(crate) byte_len: u32,
        pub(crate) imm_data: u32,
        pub(crate) qp_num: u32,
        pub(crate) src_qp: u32,
        pub(crate) wc_flags: u32,
        pub(crate) pkey_index: u16,
        pub(crate) slid: u16,
        pub(crate) sl: u8,
        pub(crate) dlid_path_bits: u8,
    }

    /// A completion as the kernel writes it.
    struct ib_uverbs_wc {
        pub(crate) wr_id: u64,
        pub(crate) status: u32,
        pub(crate) opcode: u32,
        pub(crate) vendor_err: u32,
        pub(crate) byte_len: u32,
        pub(crate) ex: u32,
        pub(crate) qp_num: u32,
        pub(crate) src_qp: u32,
        pub(crate) wc_flags: u32,
        pub(crate) pkey_index: u16,
        pub(crate) slid: u16,
        pub(crate) sl: u8,
        pub(crate) dlid_path_bits: u8,
        pub(crate) port_num: u8,
        pub(crate) reserved: u8,
    }

    /// The attributes of a device. Programs that ask for `ibv_device_attr` have room for that
    /// only.
    struct ibv_device_attr_ex {
        pub(crate) orig_attr: ibv_device_attr,
        filler: [u64; 21],
    }

    /// The first attributes of a device.
    struct ibv_device_attr {
        pub(crate) fw_ver: [u8; 64],
        filler: [u64; 21],
    }

    /// The kernel's attributes of a device.
    struct ib_uverbs_ex_query_device_resp {
        pub(crate) base: ib_uverbs_query_device_resp,
        filler: [u64; 16],
    }

    /// The kernel's first attributes of a device.
    struct ib_uverbs_query_device_resp {
        pub(crate) fw_ver: u64,
        filler: [u64; 21],
    }

    /// An attribute of a command.
    struct ib_uverbs_attr {
        pub(crate) attr_id: u16,
        pub(crate) len: u16,
        pub(crate) flags: u16,
        pub(crate) attr_data: u16,
        pub(crate) data: u64,
    }

    /// The header of a command. Its attributes are behind it.
    struct ib_uverbs_ioctl_hdr {
        pub(crate) length: u16,
        pub(crate) object_id: u16,
        pub(crate) method_id: u16,
        pub(crate) num_attrs: u16,
        pub(crate) reserved1: u64,
        pub(crate) driver_id: u32,
        pub(crate) reserved2: u32,
    }

    /// A command. Its attributes are behind it, up to `next_attr`.
    struct ibv_command_buffer {
        pub(crate) next: *mut ibv_command_buffer,
        pub(crate) next_attr: *mut ib_uverbs_attr,
        pub(crate) last_attr: *mut ib_uverbs_attr,
        pub(crate) uhw_in_idx: u8,
        pub(crate) uhw_out_idx: u8,
        pub(crate) uhw_in_headroom_dwords: u8,
        pub(crate) uhw_out_headroom_dwords: u8,
        /// Bits that say how to do without the system call ioctl, and that an attribute is too
        /// long.
        pub(crate) filler: u8,
        pub(crate) hdr: ib_uverbs_ioctl_hdr,
    }
}

// SAFETY: Numbers and arrays of them, or pointers, which may be null.
unsafe impl Zeroable for verbs_device {}
// SAFETY: As for `verbs_device`.
unsafe impl Zeroable for verbs_match_ent {}
// SAFETY: As for `verbs_device`.
unsafe impl Zeroable for ibv_pd {}
// SAFETY: As for `verbs_device`.
unsafe impl Zeroable for verbs_mr {}
// SAFETY: As for `verbs_device`.
unsafe impl Zeroable for ibv_cq {}
// SAFETY: As for `verbs_device`.
unsafe impl Zeroable for ibv_srq {}
// SAFETY: As for `verbs_device`.
unsafe impl Zeroable for verbs_qp {}
// SAFETY: As for `verbs_device`.
unsafe impl Zeroable for ibv_ah {}
// SAFETY: As for `verbs_device`.
#[cfg(test)]
unsafe impl Zeroable for ibv_send_wr {}
// SAFETY: Numbers and arrays of them.
unsafe impl Zeroable for ib_uverbs_ex_query_device_resp {}
// SAFETY: Numbers.
unsafe impl Zeroable for ib_uverbs_wc {}

// SAFETY: The table is a constant. Its pointers are null or lead to constants.
unsafe impl Sync for verbs_device_ops {}
// SAFETY: The entry is a constant. Its pointer is null.
unsafe impl Sync for verbs_match_ent {}
