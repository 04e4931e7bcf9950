// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random sequences of commands to ib_uverbs, by several threads on the same files, drawn by a seed: handles that are right,
 * gone, of another kind, of another context or made up; regions that overlap, lie in the kernel or nowhere, or whose memory goes;
 * queue pairs of each state; lists of all lengths; objects that end while they are used; data of a driver; plain garbage. Nothing
 * is expected of a single command. At the end each kind has to have succeeded at times, and to have been refused. Prints a line
 * for each kind, `ok` or `not ok`, and a description.
 *
 * random_verbs DEVICE SECONDS SEED
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "command.h"
#include "device.h"
#include "report.h"

#define THREADS 3
#define FILES 2
#define MANY 8
#define ARENA (1 << 20)
#define PAGE 4096
#define LONGEST 0xffff

enum kind { PD, MR, CQ, SRQ, QP, AH, CHANNEL, KINDS };

/* A context with the handles of objects that there are, or were. Threads change them as they like. */
struct context {
	int fd;
	uint32_t handles[KINDS][MANY];
	uint32_t keys[MANY], numbers[MANY];
	uint64_t starts[MANY];
};

static struct context contexts[FILES];
static char path[200];
static uint8_t *arena;
static uint16_t lid;
/* It goes on until then, but for so many commands of each thread at least. */
static time_t end;
#define LEAST 5000

/* --- drawing --- */

static __thread uint64_t state;
/* One value in so many is not what it ought to be. */
static __thread uint32_t rare = 24;

/* xorshift64* (Vigna 2014). */
static uint32_t draw(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1d) >> 32;
}

static uint32_t below(uint32_t limit)
{
	return draw() % limit;
}

static int one_in(uint32_t number)
{
	return !below(number);
}

static uint64_t garbage(void)
{
	static const uint64_t edges[] = { 0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 1UL << 32,
					  1UL << 63, ~0UL };

	return one_in(2) ? edges[below(sizeof(edges) / sizeof(edges[0]))] : (uint64_t)draw() << 32 | draw();
}

static void fill_with_garbage(void *to, size_t length)
{
	uint8_t *bytes = to;

	while (length--)
		*bytes++ = one_in(3) ? 0 : draw();
}

/* Mostly this, else anything. */
static uint64_t mostly(uint64_t value)
{
	return one_in(rare) ? garbage() : value;
}

static struct context *any_context(void)
{
	return &contexts[below(FILES)];
}

/* Some are drawn more often, so that objects have to do with each other. */
static uint32_t any_place(void)
{
	return below(MANY) & below(MANY);
}

static uint32_t handle_of(const struct context *context, enum kind kind)
{
	if (one_in(rare))
		return garbage();
	if (one_in(rare))
		context = any_context(), kind = below(KINDS);
	return context->handles[kind][any_place()];
}

static uint64_t address(void)
{
	switch (below(16)) {
	case 0:
		return garbage();
	case 1:
		return 0xffff888000000000 + garbage();
	case 2:
		return (uintptr_t)arena + ARENA - below(64);
	default:
		return (uintptr_t)arena + below(ARENA);
	}
}

/* A key, and mostly an address in its region. */
static uint32_t draw_key(const struct context *context, uint64_t *where)
{
	uint32_t place = any_place();

	*where = one_in(rare / 4) ? address() : context->starts[place] + 8 * below(8);
	if (one_in(rare))
		return garbage();
	if (one_in(rare))
		return any_context()->keys[place] ^ below(2);
	return context->keys[place];
}

static uint32_t length(void)
{
	switch (below(16)) {
	case 0:
		return garbage();
	case 1:
		return below(ARENA);
	default:
		return below(one_in(2) ? 100 : 3 * PAGE);
	}
}

/* Small, or more than there can be: what is between costs memory. */
static uint32_t size(void)
{
	return one_in(rare) ? 1U << (24 + below(8)) : below(64);
}

/* --- commands --- */

enum verb {
	ALLOC_PD, DEALLOC_PD, REG_MR, REREG_MR, DEREG_MR, CREATE_CHANNEL, CREATE_CQ, NOTIFY_CQ, POLL_CQ, DESTROY_CQ, CREATE_SRQ,
	MODIFY_SRQ, QUERY_SRQ, POST_SRQ, DESTROY_SRQ, CREATE_QP, MODIFY_QP, QUERY_QP, POST_SEND, POST_RECEIVE, DESTROY_QP, CREATE_AH,
	DESTROY_AH, ATTACH, DETACH, QUERY_DEVICE, QUERY_PORT, CONNECT, ANY_COMMAND, ANY_WRITE, ANY_IOCTL, MEMORY, REOPEN, VERBS
};

static const char *const names[VERBS] = {
	"ALLOC_PD", "DEALLOC_PD", "REG_MR", "REREG_MR", "DEREG_MR", "CREATE_COMP_CHANNEL", "CREATE_CQ", "REQ_NOTIFY_CQ", "polling",
	"DESTROY_CQ", "CREATE_SRQ", "MODIFY_SRQ", "QUERY_SRQ", "POST_SRQ_RECV", "DESTROY_SRQ", "CREATE_QP", "MODIFY_QP", "QUERY_QP",
	"POST_SEND", "POST_RECV", "DESTROY_QP", "CREATE_AH", "DESTROY_AH", "ATTACH_MCAST", "DETACH_MCAST", "QUERY_DEVICE",
	"QUERY_PORT", "connecting", "any command", "any write()", "any ioctl()", "memory", "opening",
};

/* How often each was done, and refused. The threads' sums are not exact. */
static uint32_t successes[VERBS], refusals[VERBS], completions[32];

/* Now and then with data of a driver, a length that is too short or too long, or a response that is nowhere. */
static int give(const struct context *context, uint32_t number, const void *request, size_t request_size, void *response,
		size_t response_size)
{
	struct command command = { "", number, request, request_size, response, response_size };
	uint8_t bytes[64];
	struct data data = {};

	fill_with_garbage(bytes, sizeof(bytes));
	switch (below(40)) {
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
	int where = below(MANY);

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
	request.hca_va = mostly(request.start);
	request.length = mostly(length());
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

	if (error)
		return error;
	if (context->handles[CHANNEL][place])
		close(context->handles[CHANNEL][place]);
	fcntl(response.fd, F_SETFL, O_NONBLOCK);
	context->handles[CHANNEL][place] = response.fd;
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

static int notify_cq(struct context *context)
{
	struct ib_uverbs_req_notify_cq request = { .cq_handle = handle_of(context, CQ), .solicited_only = below(2) };
	uint64_t event[4];
	int fd = channel(context);

	/* A file that has no event does not wait. */
	if (fd > 2 && read(fd, event, sizeof(event)) < 0)
		errno = 0;
	return GIVE_SILENTLY(context, COMMAND(REQ_NOTIFY_CQ), request);
}

/* By softib's own command, of which the room may be for two thousand. */
static int poll_cq(struct context *context)
{
	struct ib_uverbs_wc taken[SOFTIB_POLLED] = {};
	uint32_t count = 0, i;
	struct {
		struct ib_uverbs_ioctl_hdr header;
		struct ib_uverbs_attr attributes[3];
	} all = {
		.header = { sizeof(all), UVERBS_OBJECT_CQ, SOFTIB_METHOD_CQ_POLL, 3, 0, SOFTIB_DRIVER_ID, 0 },
		.attributes = {
			{ .attr_id = SOFTIB_ATTR_CQ_POLL_HANDLE, .flags = UVERBS_ATTR_F_MANDATORY },
			{ .attr_id = SOFTIB_ATTR_CQ_POLL_COMPLETIONS, .flags = UVERBS_ATTR_F_MANDATORY },
			{ .attr_id = SOFTIB_ATTR_CQ_POLL_COUNT, .flags = UVERBS_ATTR_F_MANDATORY },
		},
	};

	all.attributes[0].data = handle_of(context, CQ);
	all.attributes[1].len = one_in(3) ? draw() : sizeof(taken);
	all.attributes[1].data = mostly((uintptr_t)taken);
	all.attributes[2].len = mostly(sizeof(count));
	all.attributes[2].data = mostly((uintptr_t)&count);
	if (ioctl(context->fd, RDMA_VERBS_IOCTL, &all) < 0)
		return errno;
	for (i = 0; i < count && i < SOFTIB_POLLED; i++)
		completions[taken[i].status % 32]++;
	return 0;
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

static void draw_segments(const struct context *context, struct ib_uverbs_sge *segments, uint32_t count)
{
	for (; count--; segments++) {
		segments->lkey = draw_key(context, (uint64_t *)&segments->addr);
		segments->length = length();
	}
}

/* Mostly few: a long one is 64 KiB. */
static uint32_t list_length(size_t each)
{
	return one_in(30) ? LONGEST / each - 2 : 1 + below(3);
}

/* A request with its list: requests, then pieces of memory. The kernel is told mostly how many there are. */
static int post(const struct context *context, uint32_t number, void *header, size_t header_size, const void *requests,
		size_t requests_size, uint32_t pieces)
{
	static __thread uint8_t all[LONGEST + 1];
	static __thread struct ib_uverbs_sge segments[64];
	size_t size = header_size + requests_size;
	uint32_t response;

	if (size + pieces * sizeof(segments[0]) > LONGEST)
		pieces = 0;
	draw_segments(context, segments, pieces);
	memcpy(all, header, header_size);
	memcpy(all + header_size, requests, requests_size);
	memcpy(all + size, segments, pieces * sizeof(segments[0]));
	return give(context, number, all, size + pieces * sizeof(segments[0]), &response, sizeof(response));
}

static int is_atomic(uint32_t opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static int post_send(struct context *context)
{
	static __thread struct ib_uverbs_send_wr requests[LONGEST / sizeof(struct ib_uverbs_send_wr)];
	static const uint8_t opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
					   IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
					   IBV_WR_SEND_WITH_INV };
	struct ib_uverbs_post_send header = { .qp_handle = handle_of(context, QP), .wqe_size = mostly(sizeof(requests[0])) };
	uint32_t i, count = list_length(sizeof(requests[0])), pieces = 0;
	int is_datagram = one_in(4);

	for (i = 0; i < count; i++) {
		requests[i] = (struct ib_uverbs_send_wr){
			.wr_id = draw(), .num_sge = pieces < 60 ? below(3) : 0,
			.opcode = mostly(is_datagram ? (uint32_t)IBV_WR_SEND : opcodes[below(8)]),
			.send_flags = one_in(8) ? draw() : below(8), .ex.imm_data = draw(),
		};
		pieces += requests[i].num_sge;
		if (is_datagram) {
			requests[i].wr.ud.ah = handle_of(context, AH);
			requests[i].wr.ud.remote_qpn = mostly(context->numbers[below(MANY)]);
			requests[i].wr.ud.remote_qkey = mostly(1);
		} else {
			uint64_t where;
			uint32_t key = draw_key(context, &where);

			if (is_atomic(requests[i].opcode)) {
				requests[i].wr.atomic.remote_addr = one_in(4) ? where : where & ~7UL;
				requests[i].wr.atomic.compare_add = draw();
				requests[i].wr.atomic.rkey = key;
			} else {
				requests[i].wr.rdma.remote_addr = where;
				requests[i].wr.rdma.rkey = key;
			}
		}
	}
	header.wr_count = mostly(count);
	header.sge_count = mostly(pieces);
	return post(context, COMMAND(POST_SEND), &header, sizeof(header), requests, count * sizeof(requests[0]), pieces);
}

static int post_receives(struct context *context, uint32_t number, enum kind kind)
{
	static __thread struct ib_uverbs_recv_wr requests[LONGEST / sizeof(struct ib_uverbs_recv_wr)];
	struct ib_uverbs_post_recv header = { .qp_handle = handle_of(context, kind), .wqe_size = mostly(sizeof(requests[0])) };
	uint32_t i, count = list_length(sizeof(requests[0])), pieces = 0;

	for (i = 0; i < count; i++) {
		requests[i] = (struct ib_uverbs_recv_wr){ .wr_id = draw(), .num_sge = pieces < 60 ? below(3) : 0 };
		pieces += requests[i].num_sge;
	}
	header.wr_count = mostly(count);
	header.sge_count = mostly(pieces);
	/* That of a shared queue is laid out alike. */
	return post(context, number, &header, sizeof(header), requests, count * sizeof(requests[0]), pieces);
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

/* All that requests need. */
static void populate(struct context *context)
{
	int i;

	alloc_pd(context);
	for (i = 0; i < 4; i++) {
		create_cq(context);
		reg_mr(context);
		create_ah(context);
		create_srq(context);
	}
	for (i = 0; i < MANY; i++)
		create_qp(context);
}

/* All steps. Two that do this with each other are connected, and have some requests. */
static int connect_pair(struct context *context)
{
	uint32_t one = any_place(), other = any_place(), state, i;
	int is_datagram = one_in(4), error = 0;

	rare = 1000;
	if (one_in(4))
		populate(context);
	for (state = IBV_QPS_RESET; state <= IBV_QPS_RTS; state++) {
		error = modify_to(context, context->handles[QP][one], context->numbers[other], state, is_datagram);
		modify_to(context, context->handles[QP][other], context->numbers[one], state, is_datagram);
	}
	for (i = 0; i < 4; i++) {
		post_receives(context, COMMAND(POST_RECV), QP);
		post_send(context);
	}
	rare = 24;
	return error;
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

/* --- what is no command --- */

static int any_command(struct context *context)
{
	uint32_t number = below(0x3e), request[40], response[64];

	/* The kernel takes an attribute of this one for another one, see udata.c. */
	if (number == COMMAND(GET_CONTEXT))
		return EINVAL;
	fill_with_garbage(request, sizeof(request));
	if (one_in(3))
		number |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
	return give(context, number, request, 4 + below(sizeof(request) - 4), response, below(sizeof(response)));
}

static int any_write(struct context *context)
{
	struct {
		struct ib_uverbs_cmd_hdr header;
		uint64_t payload[64];
	} request;
	static __thread uint8_t response[1024];
	size_t size = below(sizeof(request)) & ~3UL;

	fill_with_garbage(&request, sizeof(request));
	request.header.command = mostly(below(0x3e));
	request.header.in_words = mostly(size / 4);
	request.header.out_words = mostly(below(256));
	request.payload[0] = mostly((uintptr_t)response);
	return write(context->fd, &request, size) < 0 ? errno : 0;
}

static int any_ioctl(struct context *context)
{
	struct {
		struct ib_uverbs_ioctl_hdr header;
		struct ib_uverbs_attr attributes[8];
	} all;
	uint32_t i, count = below(8);

	fill_with_garbage(&all, sizeof(all));
	all.header = (struct ib_uverbs_ioctl_hdr){
		.length = mostly(sizeof(all.header) + count * sizeof(all.attributes[0])), .num_attrs = mostly(count),
		.object_id = mostly(below(24)), .method_id = mostly(below(12)), .driver_id = mostly(SOFTIB_DRIVER_ID),
	};
	/* The kernel loses a reference there, see contexts.c. */
	if (all.header.object_id == UVERBS_OBJECT_DEVICE && all.header.method_id == UVERBS_METHOD_GET_CONTEXT)
		all.header.method_id = UVERBS_METHOD_QUERY_PORT;
	for (i = 0; i < count; i++) {
		all.attributes[i].attr_id = mostly(below(12)) | (one_in(6) ? UVERBS_ID_DRIVER_NS : 0);
		all.attributes[i].flags = one_in(2);
		all.attributes[i].len = one_in(2) ? 0 : below(64);
		all.attributes[i].attr_data.reserved = mostly(0);
		all.attributes[i].data = one_in(2) ? handle_of(context, below(KINDS)) : address();
	}
	return ioctl(context->fd, RDMA_VERBS_IOCTL, &all) < 0 ? errno : 0;
}

/* Memory below regions goes and comes, and is not to be written for a while. */
static int change_memory(void)
{
	uint8_t *place = arena + PAGE * below(ARENA / PAGE);

	if (one_in(2))
		return mprotect(place, PAGE, one_in(16) ? PROT_READ : PROT_READ | PROT_WRITE) ? errno : 0;
	return mmap(place, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ? errno : 0;
}

/* With all that it has, while other threads use it. */
static int open_anew(struct context *context)
{
	struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_get_context get;
	} request = { .header = { .command = IB_USER_VERBS_CMD_GET_CONTEXT, .in_words = sizeof(request) / 4, .out_words = 2 } };
	struct ib_uverbs_get_context_resp response = {};
	int fd = open(path, O_RDWR), old = context->fd;

	if (fd < 0)
		return errno;
	request.get.response = (uintptr_t)&response;
	if (write(fd, &request, sizeof(request)) < 0)
		return errno;
	/* Nobody reads what happens. */
	close(response.async_fd);
	context->fd = fd;
	if (old > 0)
		close(old);
	return 0;
}

static int do_verb(enum verb verb, struct context *context)
{
	switch (verb) {
	case ALLOC_PD: return alloc_pd(context);
	case DEALLOC_PD: return destroy(context, COMMAND(DEALLOC_PD), PD);
	case REG_MR: return reg_mr(context);
	case REREG_MR: return rereg_mr(context);
	case DEREG_MR: return destroy(context, COMMAND(DEREG_MR), MR);
	case CREATE_CHANNEL: return create_channel(context);
	case CREATE_CQ: return create_cq(context);
	case NOTIFY_CQ: return notify_cq(context);
	case POLL_CQ: return poll_cq(context);
	case DESTROY_CQ: return destroy(context, COMMAND(DESTROY_CQ), CQ);
	case CREATE_SRQ: return create_srq(context);
	case MODIFY_SRQ: return modify_srq(context);
	case QUERY_SRQ: return query_srq(context);
	case POST_SRQ: return post_receives(context, COMMAND(POST_SRQ_RECV), SRQ);
	case DESTROY_SRQ: return destroy(context, COMMAND(DESTROY_SRQ), SRQ);
	case CREATE_QP: return create_qp(context);
	case MODIFY_QP: return modify_qp(context);
	case QUERY_QP: return query_qp(context);
	case POST_SEND: return post_send(context);
	case POST_RECEIVE: return post_receives(context, COMMAND(POST_RECV), QP);
	case DESTROY_QP: return destroy(context, COMMAND(DESTROY_QP), QP);
	case CREATE_AH: return create_ah(context);
	case DESTROY_AH: return destroy(context, COMMAND(DESTROY_AH), AH);
	case ATTACH: return group(context, COMMAND(ATTACH_MCAST));
	case DETACH: return group(context, COMMAND(DETACH_MCAST));
	case QUERY_DEVICE: return query_device(context);
	case QUERY_PORT: return query_port(context);
	case CONNECT: return connect_pair(context);
	case ANY_COMMAND: return any_command(context);
	case ANY_WRITE: return any_write(context);
	case ANY_IOCTL: return any_ioctl(context);
	case MEMORY: return change_memory();
	default: return open_anew(context);
	}
}

/* Objects live a while: what ends them is drawn less often than what makes and uses them. */
static enum verb draw_verb(void)
{
	enum verb verb = below(VERBS);

	switch (verb) {
	case DEALLOC_PD: case DEREG_MR: case DESTROY_CQ: case DESTROY_SRQ: case DESTROY_QP: case DESTROY_AH: case QUERY_DEVICE:
	case QUERY_PORT: case CREATE_CHANNEL:
		return one_in(3) ? verb : (enum verb)(one_in(2) ? POST_SEND : POST_RECEIVE);
	case ALLOC_PD:
		return one_in(8) ? verb : (enum verb)(one_in(2) ? CONNECT : POST_SEND);
	case REOPEN:
		return one_in(500) ? verb : POLL_CQ;
	default:
		return verb;
	}
}

static void *run(void *seed)
{
	enum verb verb;
	int count;

	state = (uintptr_t)seed * 0x9e3779b97f4a7c15 + 1;
	for (count = 0; count < LEAST || time(NULL) < end; count++) {
		verb = draw_verb();
		if (do_verb(verb, any_context()))
			refusals[verb]++;
		else
			successes[verb]++;
	}
	return NULL;
}

static void sum_up(void)
{
	/* Garbage alone may succeed in nothing; a domain is nearly always used; few leave a group that they are in. */
	static const char *const never_sure = "any command any write() any ioctl() memory opening DEALLOC_PD DETACH_MCAST";
	uint32_t all = 0;
	char text[100];
	int i;

	for (i = 0; i < VERBS; i++) {
		printf("# %s: %u done, %u refused\n", names[i], successes[i], refusals[i]);
		if (strstr(never_sure, names[i]))
			continue;
		snprintf(text, sizeof(text), "%s is done at times, and refused", names[i]);
		report(successes[i] && refusals[i], text);
	}
	for (i = 0; i < 32; i++) {
		if (completions[i])
			printf("# %u completions of status %d\n", completions[i], i);
		all += completions[i];
	}
	report(all > 0, "requests come to their ends");
}

int main(int argc, char **argv)
{
	struct ibv_context *context = open_context(argc > 1 ? argv[1] : "");
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	pthread_t threads[THREADS];
	struct ibv_port_attr port;
	int i;

	must(!ibv_query_port(context, 1, &port), "its port");
	lid = port.lid;
	snprintf(path, sizeof(path), "/dev/infiniband/%s", context->device->dev_name);
	ibv_close_device(context);
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(arena != MAP_FAILED, "memory");
	for (i = 0; i < FILES; i++)
		must(!open_anew(&contexts[i]), path);
	end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 10);
	for (i = 0; i < THREADS; i++)
		must(!pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)(seed * THREADS + i)), "a thread");
	for (i = 0; i < THREADS; i++)
		must(!pthread_join(threads[i], NULL), "a thread ends");
	sum_up();
	puts("end");
	return 0;
}
