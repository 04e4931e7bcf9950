/* SPDX-License-Identifier: GPL-2.0-only */
/* Commands that make, change, ask for and end objects. */

#ifndef OBJECTS_H
#define OBJECTS_H

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "../command.h"
#include "contexts.h"
#include "draw.h"

/* Now and then with data of a driver, a length that is too short or too long, or a response that is nowhere. */
static int give(const struct context *context, uint32_t number, const void *request, size_t request_size, void *response,
		size_t response_size)
{
	struct command command = { "", number, request, request_size, response, response_size };
	uint8_t bytes[64];
	struct data data = {};

	fill_with_garbage(bytes, sizeof(bytes));
	switch (below(2 * rare)) {
	case 0:
		data = (struct data){ bytes, below(sizeof(bytes)), bytes, below(sizeof(bytes)) };
		break;
	case 1:
		data = (struct data){ (void *)address(), draw(), (void *)address(), draw() };
		break;
	case 2:
		command.request_size = below(request_size + 1);
		break;
	case 3:
		command.response = (void *)address();
		break;
	case 4:
		command.response_size = below(response_size + 1);
		break;
	}
	return execute(context->fd, &command, &data);
}

#define GIVE(context, number, request, response) \
	give(context, number, &(request), sizeof(request), &(response), sizeof(response))
#define GIVE_SILENTLY(context, number, request) give(context, number, &(request), sizeof(request), NULL, 0)
#define COMMAND(verb) IB_USER_VERBS_CMD_##verb

static int remember(struct context *context, enum kind kind, int error, uint32_t handle, int *place)
{
	int where = chosen >= 0 ? chosen : (int)below(MANY);

	if (place)
		*place = where;
	if (!error)
		context->handles[kind][where] = handle;
	return error;
}

static int alloc_pd(struct context *context)
{
	struct ib_uverbs_alloc_pd request = {};
	struct ib_uverbs_alloc_pd_resp response = {};
	int error = GIVE(context, COMMAND(ALLOC_PD), request, response);

	return remember(context, PD, error, response.pd_handle, NULL);
}

static uint32_t access_flags(void)
{
	return mostly(one_in(4) ? below(16) : IBV_ACCESS_LOCAL_WRITE | below(16));
}

static int reg_mr(struct context *context)
{
	struct ib_uverbs_reg_mr request = { .pd_handle = handle_of(context, PD), .access_flags = access_flags() };
	struct ib_uverbs_reg_mr_resp response = {};
	int error, place;

	request.start = address();
	request.length = mostly(length());
	if (chosen >= 0) {
		request.start = (uintptr_t)arena + PAGE * below(ARENA / PAGE - 1);
		request.length = PAGE;
		request.access_flags = 15;
	}
	request.hca_va = mostly(request.start);
	error = GIVE(context, COMMAND(REG_MR), request, response);
	error = remember(context, MR, error, response.mr_handle, &place);
	if (!error) {
		context->keys[place] = response.lkey;
		context->starts[place] = request.hca_va;
	}
	return error;
}

static int rereg_mr(struct context *context)
{
	struct ib_uverbs_rereg_mr request = { .mr_handle = handle_of(context, MR), .flags = mostly(below(8)) };
	struct ib_uverbs_rereg_mr_resp response;

	request.pd_handle = handle_of(context, PD);
	request.access_flags = access_flags();
	request.start = address();
	request.hca_va = mostly(request.start);
	request.length = length();
	return GIVE(context, COMMAND(REREG_MR), request, response);
}

static int create_channel(struct context *context)
{
	struct ib_uverbs_create_comp_channel request = {};
	struct ib_uverbs_create_comp_channel_resp response = {};
	int place = below(MANY), error = GIVE(context, COMMAND(CREATE_COMP_CHANNEL), request, response);
	int old;

	if (error)
		return error;
	/* Each is closed once: its number is another file's then. */
	old = __atomic_exchange_n(&context->handles[CHANNEL][place], response.fd, __ATOMIC_RELAXED);
	if (old)
		close(old);
	return 0;
}

static int32_t channel(const struct context *context)
{
	int32_t fd = one_in(2) ? -1 : (int32_t)handle_of(context, CHANNEL);

	return fd ? fd : -1;
}

static int create_cq(struct context *context)
{
	struct ib_uverbs_create_cq request = { .cqe = size(), .comp_vector = mostly(0), .comp_channel = channel(context) };
	struct ib_uverbs_create_cq_resp response = {};
	struct ib_uverbs_ex_create_cq extended = { .cqe = size(), .comp_channel = channel(context), .flags = one_in(8) ? draw() : 0 };
	struct ib_uverbs_ex_create_cq_resp extended_response = {};
	int error;

	if (one_in(2)) {
		error = GIVE(context, COMMAND(CREATE_CQ), request, response);
		return remember(context, CQ, error, response.cq_handle, NULL);
	}
	error = GIVE(context, EXTENDED(CREATE_CQ), extended, extended_response);
	return remember(context, CQ, error, extended_response.base.cq_handle, NULL);
}

static int create_srq(struct context *context)
{
	struct ib_uverbs_create_srq request = {
		.pd_handle = handle_of(context, PD), .max_wr = size(), .max_sge = mostly(below(4)), .srq_limit = mostly(0),
	};
	struct ib_uverbs_create_srq_resp response = {};
	int error = GIVE(context, COMMAND(CREATE_SRQ), request, response);

	return remember(context, SRQ, error, response.srq_handle, NULL);
}

static int modify_srq(struct context *context)
{
	struct ib_uverbs_modify_srq request = {
		.srq_handle = handle_of(context, SRQ), .attr_mask = mostly(IBV_SRQ_LIMIT), .max_wr = size(), .srq_limit = below(32),
	};

	return GIVE_SILENTLY(context, COMMAND(MODIFY_SRQ), request);
}

static int query_srq(struct context *context)
{
	struct ib_uverbs_query_srq request = { .srq_handle = handle_of(context, SRQ) };
	struct ib_uverbs_query_srq_resp response;

	return GIVE(context, COMMAND(QUERY_SRQ), request, response);
}

static int create_qp(struct context *context)
{
	static const uint8_t types[] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	struct ib_uverbs_create_qp request = {
		.pd_handle = handle_of(context, PD), .send_cq_handle = handle_of(context, CQ),
		.recv_cq_handle = handle_of(context, CQ), .srq_handle = handle_of(context, SRQ), .max_send_wr = size(),
		.max_recv_wr = size(), .max_send_sge = mostly(1 + below(3)), .max_recv_sge = mostly(1 + below(3)),
		.max_inline_data = mostly(below(200)), .sq_sig_all = mostly(below(2)), .qp_type = mostly(types[below(4)]),
		.is_srq = one_in(4),
	};
	struct ib_uverbs_create_qp_resp response = {};
	int place, error = GIVE(context, COMMAND(CREATE_QP), request, response);

	error = remember(context, QP, error, response.qp_handle, &place);
	if (!error)
		context->numbers[place] = response.qpn;
	return error;
}

/* The attributes of each step from Reset to Ready to Send, for a connected queue pair and for one of datagrams. */
static uint32_t mask_of(uint32_t state, int is_datagram)
{
	switch (state) {
	case IBV_QPS_INIT:
		return IBV_QP_PKEY_INDEX | IBV_QP_PORT | (is_datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	case IBV_QPS_RTR:
		return is_datagram ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	case IBV_QPS_RTS:
		return is_datagram ? IBV_QP_SQ_PSN : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
							     IBV_QP_MAX_QP_RD_ATOMIC;
	default:
		return 0;
	}
}

static int modify_to(struct context *context, uint32_t handle, uint32_t to, uint32_t state, int is_datagram)
{
	struct ib_uverbs_modify_qp request = {
		.qp_handle = handle, .attr_mask = mostly(IBV_QP_STATE | mask_of(state, is_datagram)), .qp_state = mostly(state),
		.qkey = mostly(1), .rq_psn = mostly(0), .sq_psn = mostly(0), .dest_qp_num = mostly(to),
		.qp_access_flags = mostly(15), .path_mtu = mostly(1 + below(5)), .pkey_index = mostly(0), .port_num = mostly(1),
		.max_rd_atomic = mostly(below(4)), .max_dest_rd_atomic = mostly(1 + below(4)), .min_rnr_timer = mostly(1),
		.timeout = mostly(5 + below(5)), .retry_cnt = mostly(1), .rnr_retry = mostly(below(2)), .cur_qp_state = draw(),
		.dest = { .dlid = mostly(lid), .port_num = mostly(1), .sl = mostly(0), .is_global = one_in(16) },
	};

	return GIVE_SILENTLY(context, COMMAND(MODIFY_QP), request);
}

static int modify_qp(struct context *context)
{
	return modify_to(context, handle_of(context, QP), context->numbers[below(MANY)], below(8), one_in(4));
}

static int query_qp(struct context *context)
{
	struct ib_uverbs_query_qp request = { .qp_handle = handle_of(context, QP), .attr_mask = draw() };
	struct ib_uverbs_query_qp_resp response;

	return GIVE(context, COMMAND(QUERY_QP), request, response);
}

static int create_ah(struct context *context)
{
	struct ib_uverbs_create_ah request = { .pd_handle = handle_of(context, PD) };
	struct ib_uverbs_create_ah_resp response = {};
	int error;

	request.attr.dlid = mostly(lid);
	request.attr.port_num = mostly(1);
	request.attr.is_global = one_in(8);
	error = GIVE(context, COMMAND(CREATE_AH), request, response);
	return remember(context, AH, error, response.ah_handle, NULL);
}

static int group(struct context *context, uint32_t number)
{
	struct ib_uverbs_attach_mcast request = {
		.qp_handle = handle_of(context, QP), .mlid = mostly(0xc000 + below(4)), .gid = { mostly(0xff), 0x12, [15] = below(4) },
	};

	return GIVE_SILENTLY(context, number, request);
}

/* The commands that end an object take its handle at the same place, but for those with a response. */
static int destroy(struct context *context, uint32_t number, enum kind kind)
{
	uint32_t request[6] = { handle_of(context, kind) };
	struct {
		uint64_t response;
		uint32_t handle, reserved;
	} answered = { .handle = request[0] };
	uint32_t response[4];

	if (kind == CQ || kind == SRQ || kind == QP)
		return GIVE(context, number, answered, response);
	return give(context, number, request, sizeof(request[0]), NULL, 0);
}

static int query_device(struct context *context)
{
	struct ib_uverbs_ex_query_device request = { .comp_mask = mostly(0) };
	struct ib_uverbs_ex_query_device_resp response;

	return GIVE(context, EXTENDED(QUERY_DEVICE), request, response);
}

static int query_port(struct context *context)
{
	struct ib_uverbs_query_port request = { .port_num = one_in(4) ? draw() : 1 };
	struct ib_uverbs_query_port_resp response;

	return GIVE(context, COMMAND(QUERY_PORT), request, response);
}

#endif
