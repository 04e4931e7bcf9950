// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints the layouts and numbers of rdma-core that the library declares for itself. See
 * `scripts/provider layouts`; `cargo test` compares the output with the declarations.
 */

#include <stddef.h>
#include <stdio.h>

#include <infiniband/driver.h>
#include <rdma/ib_user_ioctl_cmds.h>

#define SIZE(type) printf("%s %zu\n", #type, sizeof(struct type))
#define FIELD(type, field) \
	printf("%s.%s %zu %zu\n", #type, #field, offsetof(struct type, field), sizeof(((struct type *)0)->field))
#define NUMBER(name) printf("%s = %llu\n", #name, (unsigned long long)(name))

static void numbers(void)
{
	NUMBER(IBVERBS_PABI_VERSION);
	NUMBER(VERBS_MATCH_DRIVER_ID);
	NUMBER(UVERBS_OBJECT_CQ);
	NUMBER(UVERBS_ID_NS_SHIFT);
	NUMBER(UVERBS_ATTR_F_MANDATORY);
	NUMBER(_UHW_NO_INDEX);
	NUMBER(IBV_WC_GRH);
	NUMBER(IBV_WC_WITH_IMM);
	NUMBER(IBV_WC_IP_CSUM_OK);
	NUMBER(IBV_WC_WITH_INV);
}

static void devices(void)
{
	SIZE(verbs_match_ent);
	FIELD(verbs_match_ent, driver_data);
	FIELD(verbs_match_ent, u);
	FIELD(verbs_match_ent, vendor);
	FIELD(verbs_match_ent, device);
	FIELD(verbs_match_ent, kind);
	SIZE(verbs_device);
	SIZE(verbs_device_ops);
	FIELD(verbs_device_ops, name);
	FIELD(verbs_device_ops, match_min_abi_version);
	FIELD(verbs_device_ops, match_max_abi_version);
	FIELD(verbs_device_ops, match_table);
	FIELD(verbs_device_ops, static_providers);
	FIELD(verbs_device_ops, match_device);
	FIELD(verbs_device_ops, alloc_context);
	FIELD(verbs_device_ops, import_context);
	FIELD(verbs_device_ops, alloc_device);
	FIELD(verbs_device_ops, uninit_device);
	SIZE(verbs_context);
	FIELD(verbs_context, context);
	SIZE(ibv_context);
}

static void objects(void)
{
	SIZE(ibv_pd);
	SIZE(verbs_mr);
	FIELD(verbs_mr, ibv_mr);
	SIZE(ibv_mr);
	SIZE(ibv_cq);
	FIELD(ibv_cq, context);
	FIELD(ibv_cq, handle);
	SIZE(ibv_srq);
	SIZE(verbs_qp);
	FIELD(verbs_qp, qp);
	SIZE(ibv_qp);
	SIZE(ibv_ah);
	SIZE(ibv_send_wr);
	FIELD(ibv_send_wr, wr_id);
	FIELD(ibv_send_wr, next);
	FIELD(ibv_send_wr, num_sge);
	SIZE(ibv_recv_wr);
	FIELD(ibv_recv_wr, wr_id);
	FIELD(ibv_recv_wr, next);
	FIELD(ibv_recv_wr, num_sge);
}

static void completions(void)
{
	SIZE(ibv_wc);
	FIELD(ibv_wc, wr_id);
	FIELD(ibv_wc, status);
	FIELD(ibv_wc, opcode);
	FIELD(ibv_wc, vendor_err);
	FIELD(ibv_wc, byte_len);
	FIELD(ibv_wc, imm_data);
	FIELD(ibv_wc, qp_num);
	FIELD(ibv_wc, src_qp);
	FIELD(ibv_wc, wc_flags);
	FIELD(ibv_wc, pkey_index);
	FIELD(ibv_wc, slid);
	FIELD(ibv_wc, sl);
	FIELD(ibv_wc, dlid_path_bits);
	SIZE(ib_uverbs_wc);
	FIELD(ib_uverbs_wc, wr_id);
	FIELD(ib_uverbs_wc, status);
	FIELD(ib_uverbs_wc, opcode);
	FIELD(ib_uverbs_wc, vendor_err);
	FIELD(ib_uverbs_wc, byte_len);
	FIELD(ib_uverbs_wc, ex);
	FIELD(ib_uverbs_wc, qp_num);
	FIELD(ib_uverbs_wc, src_qp);
	FIELD(ib_uverbs_wc, wc_flags);
	FIELD(ib_uverbs_wc, pkey_index);
	FIELD(ib_uverbs_wc, slid);
	FIELD(ib_uverbs_wc, sl);
	FIELD(ib_uverbs_wc, dlid_path_bits);
	FIELD(ib_uverbs_wc, port_num);
	FIELD(ib_uverbs_wc, reserved);
}

static void attributes(void)
{
	SIZE(ibv_device_attr_ex);
	FIELD(ibv_device_attr_ex, orig_attr);
	SIZE(ibv_device_attr);
	FIELD(ibv_device_attr, fw_ver);
	SIZE(ib_uverbs_ex_query_device_resp);
	FIELD(ib_uverbs_ex_query_device_resp, base);
	SIZE(ib_uverbs_query_device_resp);
	FIELD(ib_uverbs_query_device_resp, fw_ver);
}

static void commands(void)
{
	SIZE(ib_uverbs_attr);
	FIELD(ib_uverbs_attr, attr_id);
	FIELD(ib_uverbs_attr, len);
	FIELD(ib_uverbs_attr, flags);
	FIELD(ib_uverbs_attr, attr_data);
	FIELD(ib_uverbs_attr, data);
	SIZE(ib_uverbs_ioctl_hdr);
	FIELD(ib_uverbs_ioctl_hdr, length);
	FIELD(ib_uverbs_ioctl_hdr, object_id);
	FIELD(ib_uverbs_ioctl_hdr, method_id);
	FIELD(ib_uverbs_ioctl_hdr, num_attrs);
	FIELD(ib_uverbs_ioctl_hdr, reserved1);
	FIELD(ib_uverbs_ioctl_hdr, driver_id);
	FIELD(ib_uverbs_ioctl_hdr, reserved2);
	SIZE(ibv_command_buffer);
	FIELD(ibv_command_buffer, next);
	FIELD(ibv_command_buffer, next_attr);
	FIELD(ibv_command_buffer, last_attr);
	FIELD(ibv_command_buffer, uhw_in_idx);
	FIELD(ibv_command_buffer, uhw_out_idx);
	FIELD(ibv_command_buffer, uhw_in_headroom_dwords);
	FIELD(ibv_command_buffer, uhw_out_headroom_dwords);
	FIELD(ibv_command_buffer, hdr);
	SIZE(ibv_get_context);
	SIZE(ib_uverbs_get_context_resp);
	SIZE(ibv_query_port);
	SIZE(ibv_alloc_pd);
	SIZE(ib_uverbs_alloc_pd_resp);
	SIZE(ibv_reg_mr);
	SIZE(ib_uverbs_reg_mr_resp);
	SIZE(ibv_rereg_mr);
	SIZE(ib_uverbs_rereg_mr_resp);
	SIZE(ibv_create_cq);
	SIZE(ib_uverbs_create_cq_resp);
	SIZE(ibv_create_srq);
	SIZE(ib_uverbs_create_srq_resp);
	SIZE(ibv_modify_srq);
	SIZE(ibv_query_srq);
	SIZE(ibv_create_qp);
	SIZE(ib_uverbs_create_qp_resp);
	SIZE(ibv_query_qp);
	SIZE(ibv_modify_qp);
	SIZE(ib_uverbs_create_ah_resp);
	SIZE(ib_uverbs_send_wr);
	SIZE(ib_uverbs_recv_wr);
	SIZE(ib_uverbs_sge);
}

static void operations(void)
{
	SIZE(verbs_context_ops);
	FIELD(verbs_context_ops, advise_mr);
	FIELD(verbs_context_ops, alloc_dm);
	FIELD(verbs_context_ops, alloc_mw);
	FIELD(verbs_context_ops, alloc_null_mr);
	FIELD(verbs_context_ops, alloc_parent_domain);
	FIELD(verbs_context_ops, alloc_pd);
	FIELD(verbs_context_ops, alloc_td);
	FIELD(verbs_context_ops, async_event);
	FIELD(verbs_context_ops, attach_counters_point_flow);
	FIELD(verbs_context_ops, attach_mcast);
	FIELD(verbs_context_ops, bind_mw);
	FIELD(verbs_context_ops, close_xrcd);
	FIELD(verbs_context_ops, cq_event);
	FIELD(verbs_context_ops, create_ah);
	FIELD(verbs_context_ops, create_counters);
	FIELD(verbs_context_ops, create_cq);
	FIELD(verbs_context_ops, create_cq_ex);
	FIELD(verbs_context_ops, create_flow);
	FIELD(verbs_context_ops, create_flow_action_esp);
	FIELD(verbs_context_ops, create_qp);
	FIELD(verbs_context_ops, create_qp_ex);
	FIELD(verbs_context_ops, create_rwq_ind_table);
	FIELD(verbs_context_ops, create_srq);
	FIELD(verbs_context_ops, create_srq_ex);
	FIELD(verbs_context_ops, create_wq);
	FIELD(verbs_context_ops, dealloc_mw);
	FIELD(verbs_context_ops, dealloc_pd);
	FIELD(verbs_context_ops, dealloc_td);
	FIELD(verbs_context_ops, dereg_mr);
	FIELD(verbs_context_ops, destroy_ah);
	FIELD(verbs_context_ops, destroy_counters);
	FIELD(verbs_context_ops, destroy_cq);
	FIELD(verbs_context_ops, destroy_flow);
	FIELD(verbs_context_ops, destroy_flow_action);
	FIELD(verbs_context_ops, destroy_qp);
	FIELD(verbs_context_ops, destroy_rwq_ind_table);
	FIELD(verbs_context_ops, destroy_srq);
	FIELD(verbs_context_ops, destroy_wq);
	FIELD(verbs_context_ops, detach_mcast);
	FIELD(verbs_context_ops, free_context);
	FIELD(verbs_context_ops, free_dm);
	FIELD(verbs_context_ops, get_srq_num);
	FIELD(verbs_context_ops, import_dm);
	FIELD(verbs_context_ops, import_mr);
	FIELD(verbs_context_ops, import_pd);
	FIELD(verbs_context_ops, modify_cq);
	FIELD(verbs_context_ops, modify_flow_action_esp);
	FIELD(verbs_context_ops, modify_qp);
	FIELD(verbs_context_ops, modify_qp_rate_limit);
	FIELD(verbs_context_ops, modify_srq);
	FIELD(verbs_context_ops, modify_wq);
	FIELD(verbs_context_ops, open_qp);
	FIELD(verbs_context_ops, open_xrcd);
	FIELD(verbs_context_ops, poll_cq);
	FIELD(verbs_context_ops, post_recv);
	FIELD(verbs_context_ops, post_send);
	FIELD(verbs_context_ops, post_srq_ops);
	FIELD(verbs_context_ops, post_srq_recv);
	FIELD(verbs_context_ops, query_device_ex);
	FIELD(verbs_context_ops, query_ece);
	FIELD(verbs_context_ops, query_port);
	FIELD(verbs_context_ops, query_qp);
	FIELD(verbs_context_ops, query_qp_data_in_order);
	FIELD(verbs_context_ops, query_rt_values);
	FIELD(verbs_context_ops, query_srq);
	FIELD(verbs_context_ops, read_counters);
	FIELD(verbs_context_ops, reg_dm_mr);
	FIELD(verbs_context_ops, reg_dmabuf_mr);
	FIELD(verbs_context_ops, reg_mr);
	FIELD(verbs_context_ops, req_notify_cq);
	FIELD(verbs_context_ops, rereg_mr);
	FIELD(verbs_context_ops, resize_cq);
	FIELD(verbs_context_ops, set_ece);
	FIELD(verbs_context_ops, unimport_dm);
	FIELD(verbs_context_ops, unimport_mr);
	FIELD(verbs_context_ops, unimport_pd);
}

int main(void)
{
	numbers();
	devices();
	objects();
	completions();
	attributes();
	commands();
	operations();
	return 0;
}
