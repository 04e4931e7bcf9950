// SPDX-License-Identifier: GPL-2.0-only

//! The table of a context's verbs.

use super::*;
use crate::memory::Zeroable;
use std::ffi::{
    c_int,
    c_void, //
};

types! {
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

// SAFETY: Slots, where null is none.
unsafe impl Zeroable for verbs_context_ops {}
