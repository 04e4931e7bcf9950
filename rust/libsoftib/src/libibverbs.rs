// SPDX-License-Identifier: GPL-2.0-only

//! Declarations of libibverbs' private interface, version 34 (rdma-core 34 to 56), by the names
//! that they have in rdma-core's `driver.h`, `verbs.h`, `cmd_ioctl.h` and `kern-abi.h`.
//!
//! Only what this library reads or writes has a name. The other fields of a type that it allocates
//! are a `filler`. `cargo test` compares each layout and number with `layouts.txt`, which
//! `scripts/provider layouts` writes with rdma-core's own headers.

use crate::memory::Zeroable;
use std::ffi::{
    c_char,
    c_int,
    c_void, //
};
use std::marker::{
    PhantomData,
    PhantomPinned, //
};

/// The layout of a type: its size, and the offset and size of each field.
#[cfg(test)]
pub(crate) struct Layout {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) fields: Vec<(&'static str, usize, usize)>,
}

/// Declares types with the layout of C, and for the tests a function that returns the layouts.
macro_rules! types {
    ($(
        $(#[$attribute:meta])*
        struct $name:ident {
            $($(#[$about:meta])* $visible:vis $field:ident: $type:ty,)*
        }
    )*) => {
        $(
            $(#[$attribute])*
            #[repr(C)]
            pub(crate) struct $name {
                $($(#[$about])* $visible $field: $type,)*
            }
        )*

        /// Returns the layouts of the types, without fillers.
        #[cfg(test)]
        pub(crate) fn layouts_of_types() -> Vec<Layout> {
            vec![$(
                Layout {
                    name: stringify!($name),
                    size: size_of::<$name>(),
                    fields: [$(
                        (
                            stringify!($field),
                            std::mem::offset_of!($name, $field),
                            size_of::<$type>(),
                        ),
                    )*]
                    .into_iter()
                    .filter(|(field, ..): &(&str, usize, usize)| !field.starts_with("filler"))
                    .collect(),
                }
            ),*]
        }
    };
}

/// Declares the buffers of commands and of their responses, which libibverbs alone reads and
/// writes, with their sizes in bytes.
macro_rules! buffers {
    ($($name:ident = $size:literal;)*) => {
        $(
            #[doc = concat!("A buffer for a `", stringify!($name), "`.")]
            #[repr(C, align(8))]
            pub(crate) struct $name([u8; $size]);

            impl $name {
                /// The size that libibverbs is told: without padding.
                pub(crate) const SIZE: usize = $size;

                /// Makes an empty one.
                pub(crate) const fn new() -> Self {
                    Self([0; $size])
                }
            }
        )*

        /// Returns the sizes of the buffers.
        #[cfg(test)]
        pub(crate) fn layouts_of_buffers() -> Vec<Layout> {
            vec![$(Layout { name: stringify!($name), size: $name::SIZE, fields: Vec::new() }),*]
        }
    };
}

/// Declares types that this library has only pointers to.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("A `", stringify!($name), "` of libibverbs.")]
            #[repr(C)]
            pub(crate) struct $name {
                nothing: [u8; 0],
                neither_moved_nor_shared: PhantomData<(*mut u8, PhantomPinned)>,
            }
        )*
    };
}

/// Declares numbers, and for the tests a table of them.
macro_rules! numbers {
    ($($(#[$about:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$about])* pub(crate) const $name: $type = $value;)*

        /// The numbers by their names.
        #[cfg(test)]
        pub(crate) const NUMBERS: &[(&str, u64)] = &[$((stringify!($name), $name as u64)),*];
    };
}

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
    ibv_recv_wr
    ibv_send_wr
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

    /// The verbs of a context.
    struct verbs_context_ops {
        pub(crate) advise_mr: Unused,
        pub(crate) alloc_dm: Unused,
        pub(crate) alloc_mw: Unused,
        pub(crate) alloc_null_mr: Unused,
        pub(crate) alloc_parent_domain: Unused,
        pub(crate) alloc_pd: Option<unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_pd>,
        pub(crate) alloc_td: Unused,
        pub(crate) async_event: Unused,
        pub(crate) attach_counters_point_flow: Unused,
        pub(crate) attach_mcast: Option<
            unsafe extern "C" fn(*mut ibv_qp, *const ibv_gid, u16) -> c_int,
        >,
        pub(crate) bind_mw: Unused,
        pub(crate) close_xrcd: Unused,
        pub(crate) cq_event: Unused,
        pub(crate) create_ah: Option<
            unsafe extern "C" fn(*mut ibv_pd, *mut ibv_ah_attr) -> *mut ibv_ah,
        >,
        pub(crate) create_counters: Unused,
        pub(crate) create_cq: Option<
            unsafe extern "C" fn(
                *mut ibv_context,
                c_int,
                *mut ibv_comp_channel,
                c_int,
            ) -> *mut ibv_cq,
        >,
        pub(crate) create_cq_ex: Unused,
        pub(crate) create_flow: Unused,
        pub(crate) create_flow_action_esp: Unused,
        pub(crate) create_qp: Option<
            unsafe extern "C" fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp,
        >,
        pub(crate) create_qp_ex: Unused,
        pub(crate) create_rwq_ind_table: Unused,
        pub(crate) create_srq: Option<
            unsafe extern "C" fn(*mut ibv_pd, *mut ibv_srq_init_attr) -> *mut ibv_srq,
        >,
        pub(crate) create_srq_ex: Unused,
        pub(crate) create_wq: Unused,
        pub(crate) dealloc_mw: Unused,
        pub(crate) dealloc_pd: Option<unsafe extern "C" fn(*mut ibv_pd) -> c_int>,
        pub(crate) dealloc_td: Unused,
        pub(crate) dereg_mr: Option<unsafe extern "C" fn(*mut verbs_mr) -> c_int>,
        pub(crate) destroy_ah: Option<unsafe extern "C" fn(*mut ibv_ah) -> c_int>,
        pub(crate) destroy_counters: Unused,
        pub(crate) destroy_cq: Option<unsafe extern "C" fn(*mut ibv_cq) -> c_int>,
        pub(crate) destroy_flow: Unused,
        pub(crate) destroy_flow_action: Unused,
        pub(crate) destroy_qp: Option<unsafe extern "C" fn(*mut ibv_qp) -> c_int>,
        pub(crate) destroy_rwq_ind_table: Unused,
        pub(crate) destroy_srq: Option<unsafe extern "C" fn(*mut ibv_srq) -> c_int>,
        pub(crate) destroy_wq: Unused,
        pub(crate) detach_mcast: Option<
            unsafe extern "C" fn(*mut ibv_qp, *const ibv_gid, u16) -> c_int,
        >,
        pub(crate) free_context: Option<unsafe extern "C" fn(*mut ibv_context)>,
        pub(crate) free_dm: Unused,
        pub(crate) get_srq_num: Unused,
        pub(crate) import_dm: Unused,
        pub(crate) import_mr: Unused,
        pub(crate) import_pd: Unused,
        pub(crate) modify_cq: Unused,
        pub(crate) modify_flow_action_esp: Unused,
        pub(crate) modify_qp: Option<
            unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int,
        >,
        pub(crate) modify_qp_rate_limit: Unused,
        pub(crate) modify_srq: Option<
            unsafe extern "C" fn(*mut ibv_srq, *mut ibv_srq_attr, c_int) -> c_int,
        >,
        pub(crate) modify_wq: Unused,
        pub(crate) open_qp: Unused,
        pub(crate) open_xrcd: Unused,
        pub(crate) poll_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int>,
        pub(crate) post_recv: Option<
            unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int,
        >,
        pub(crate) post_send: Option<
            unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int,
        >,
        pub(crate) post_srq_ops: Unused,
        pub(crate) post_srq_recv: Option<
            unsafe extern "C" fn(*mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int,
        >,
        pub(crate) query_device_ex: Option<
            unsafe extern "C" fn(
                *mut ibv_context,
                *const ibv_query_device_ex_input,
                *mut ibv_device_attr_ex,
                usize,
            ) -> c_int,
        >,
        pub(crate) query_ece: Unused,
        pub(crate) query_port: Option<
            unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int,
        >,
        pub(crate) query_qp: Option<
            unsafe extern "C" fn(
                *mut ibv_qp,
                *mut ibv_qp_attr,
                c_int,
                *mut ibv_qp_init_attr,
            ) -> c_int,
        >,
        pub(crate) query_qp_data_in_order: Unused,
        pub(crate) query_rt_values: Unused,
        pub(crate) query_srq: Option<
            unsafe extern "C" fn(*mut ibv_srq, *mut ibv_srq_attr) -> c_int,
        >,
        pub(crate) read_counters: Unused,
        pub(crate) reg_dm_mr: Unused,
        pub(crate) reg_dmabuf_mr: Unused,
        pub(crate) reg_mr: Option<
            unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, u64, c_int) -> *mut ibv_mr,
        >,
        pub(crate) req_notify_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int>,
        pub(crate) rereg_mr: Option<
            unsafe extern "C" fn(
                *mut verbs_mr,
                c_int,
                *mut ibv_pd,
                *mut c_void,
                usize,
                c_int,
            ) -> c_int,
        >,
        pub(crate) resize_cq: Unused,
        pub(crate) set_ece: Unused,
        pub(crate) unimport_dm: Unused,
        pub(crate) unimport_mr: Unused,
        pub(crate) unimport_pd: Unused,
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
// SAFETY: Slots, where null is none.
unsafe impl Zeroable for verbs_context_ops {}
// SAFETY: Numbers and arrays of them.
unsafe impl Zeroable for ib_uverbs_ex_query_device_resp {}
// SAFETY: Numbers.
unsafe impl Zeroable for ib_uverbs_wc {}

// SAFETY: The table is a constant. Its pointers are null or lead to constants.
unsafe impl Sync for verbs_device_ops {}
// SAFETY: The entry is a constant. Its pointer is null.
unsafe impl Sync for verbs_match_ent {}

// Each function gets pointers to what the types say: objects that are there or about to be filled,
// and buffers with their sizes. They return 0 or an error number, if nothing else is said.
extern "C" {
    pub(crate) fn verbs_register_driver_34(operations: *const verbs_device_ops);
    /// Returns zeroed memory of that size, made with `calloc`, with a context at
    /// `context_offset`, an offset in the guise of a pointer; null with `errno` if that fails.
    pub(crate) fn _verbs_init_and_alloc_context(
        device: *mut ibv_device,
        command_file: c_int,
        size: usize,
        context_offset: *mut verbs_context,
        driver: u32,
    ) -> *mut c_void;
    pub(crate) fn verbs_uninit_context(context: *mut verbs_context);
    pub(crate) fn verbs_set_ops(context: *mut verbs_context, operations: *const verbs_context_ops);
    /// The command has room for its attributes, up to `last_attr`.
    pub(crate) fn execute_ioctl(
        context: *mut ibv_context,
        command: *mut ibv_command_buffer,
    ) -> c_int;

    pub(crate) fn ibv_cmd_get_context(
        context: *mut verbs_context,
        command: *mut ibv_get_context,
        command_size: usize,
        response: *mut ib_uverbs_get_context_resp,
        response_size: usize,
    ) -> c_int;
    pub(crate) fn ibv_cmd_query_device_any(
        context: *mut ibv_context,
        input: *const ibv_query_device_ex_input,
        attributes: *mut ibv_device_attr_ex,
        attributes_size: usize,
        response: *mut ib_uverbs_ex_query_device_resp,
        response_size: *mut usize,
    ) -> c_int;
    pub(crate) fn ibv_cmd_query_port(
        context: *mut ibv_context,
        port: u8,
        attributes: *mut ibv_port_attr,
        command: *mut ibv_query_port,
        command_size: usize,
    ) -> c_int;

    pub(crate) fn ibv_cmd_alloc_pd(
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        command: *mut ibv_alloc_pd,
        command_size: usize,
        response: *mut ib_uverbs_alloc_pd_resp,
        response_size: usize,
    ) -> c_int;
    pub(crate) fn ibv_cmd_dealloc_pd(pd: *mut ibv_pd) -> c_int;

    pub(crate) fn ibv_cmd_reg_mr(
        pd: *mut ibv_pd,
        address: *mut c_void,
        length: usize,
        hca_address: u64,
        access: c_int,
        mr: *mut verbs_mr,
        command: *mut ibv_reg_mr,
        command_size: usize,
        response: *mut ib_uverbs_reg_mr_resp,
        response_size: usize,
    ) -> c_int;
    pub(crate) fn ibv_cmd_rereg_mr(
        mr: *mut verbs_mr,
        flags: u32,
        address: *mut c_void,
        length: usize,
        hca_address: u64,
        access: c_int,
        pd: *mut ibv_pd,
        command: *mut ibv_rereg_mr,
        command_size: usize,
        response: *mut ib_uverbs_rereg_mr_resp,
        response_size: usize,
    ) -> c_int;
    pub(crate) fn ibv_cmd_dereg_mr(mr: *mut verbs_mr) -> c_int;

    pub(crate) fn ibv_cmd_create_cq(
        context: *mut ibv_context,
        entries: c_int,
        channel: *mut ibv_comp_channel,
        vector: c_int,
        cq: *mut ibv_cq,
        command: *mut ibv_create_cq,
        command_size: usize,
        response: *mut ib_uverbs_create_cq_resp,
        response_size: usize,
    ) -> c_int;
    pub(crate) fn ibv_cmd_req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int;
    pub(crate) fn ibv_cmd_destroy_cq(cq: *mut ibv_cq) -> c_int;

    pub(crate) fn ibv_cmd_create_srq(
        pd: *mut ibv_pd,
        srq: *mut ibv_srq,
        attributes: *mut ibv_srq_init_attr,
        command: *mut ibv_create_srq,
        command_size: usize,
        response: *mut ib_uverbs_create_srq_resp,
        response_size: usize,
    ) -> c_int;
    pub(crate) fn ibv_cmd_modify_srq(
        srq: *mut ibv_srq,
        attributes: *mut ibv_srq_attr,
        mask: c_int,
        command: *mut ibv_modify_srq,
        command_size: usize,
    ) -> c_int;
    pub(crate) fn ibv_cmd_query_srq(
        srq: *mut ibv_srq,
        attributes: *mut ibv_srq_attr,
        command: *mut ibv_query_srq,
        command_size: usize,
    ) -> c_int;
    pub(crate) fn ibv_cmd_destroy_srq(srq: *mut ibv_srq) -> c_int;
    pub(crate) fn ibv_cmd_post_srq_recv(
        srq: *mut ibv_srq,
        request: *mut ibv_recv_wr,
        bad: *mut *mut ibv_recv_wr,
    ) -> c_int;

    pub(crate) fn ibv_cmd_create_qp(
        pd: *mut ibv_pd,
        qp: *mut ibv_qp,
        attributes: *mut ibv_qp_init_attr,
        command: *mut ibv_create_qp,
        command_size: usize,
        response: *mut ib_uverbs_create_qp_resp,
        response_size: usize,
    ) -> c_int;
    pub(crate) fn ibv_cmd_query_qp(
        qp: *mut ibv_qp,
        attributes: *mut ibv_qp_attr,
        mask: c_int,
        initial: *mut ibv_qp_init_attr,
        command: *mut ibv_query_qp,
        command_size: usize,
    ) -> c_int;
    pub(crate) fn ibv_cmd_modify_qp(
        qp: *mut ibv_qp,
        attributes: *mut ibv_qp_attr,
        mask: c_int,
        command: *mut ibv_modify_qp,
        command_size: usize,
    ) -> c_int;
    pub(crate) fn ibv_cmd_destroy_qp(qp: *mut ibv_qp) -> c_int;
    pub(crate) fn ibv_cmd_post_send(
        qp: *mut ibv_qp,
        request: *mut ibv_send_wr,
        bad: *mut *mut ibv_send_wr,
    ) -> c_int;
    pub(crate) fn ibv_cmd_post_recv(
        qp: *mut ibv_qp,
        request: *mut ibv_recv_wr,
        bad: *mut *mut ibv_recv_wr,
    ) -> c_int;
    pub(crate) fn ibv_cmd_attach_mcast(qp: *mut ibv_qp, gid: *const ibv_gid, lid: u16) -> c_int;
    pub(crate) fn ibv_cmd_detach_mcast(qp: *mut ibv_qp, gid: *const ibv_gid, lid: u16) -> c_int;

    pub(crate) fn ibv_cmd_create_ah(
        pd: *mut ibv_pd,
        ah: *mut ibv_ah,
        attributes: *mut ibv_ah_attr,
        response: *mut ib_uverbs_create_ah_resp,
        response_size: usize,
    ) -> c_int;
    pub(crate) fn ibv_cmd_destroy_ah(ah: *mut ibv_ah) -> c_int;
}
