// SPDX-License-Identifier: GPL-2.0-only

//! The functions of libibverbs that this library calls.

use super::*;
use std::ffi::{
    c_int,
    c_void, //
};

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
