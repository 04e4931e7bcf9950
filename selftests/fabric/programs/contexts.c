// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts of programs: the commands that softib does not have, and an HCA that fails or goes while a
 * program holds all kinds of objects. Prints a line for each case, `ok` or `not ok`, and a description.
 *
 * contexts commands DEVICE     calls each command that there is
 * contexts hold DEVICE         makes objects, says `held`, and when it reads a line, uses them: the HCA is
 *                              to have gone by then
 * contexts hold_outside DEVICE the same from a network namespace of its own, which it enters with the
 *                              context open
 * contexts member DEVICE       makes a queue pair that is in two groups, says `held`, and when it reads a line,
 *                              leaves one of them and ends: detachments are to fail by then
 * contexts failing DEVICE      makes objects, says `held`, and when it reads a line, tries to make more and to
 *                              change some: the HCA is to have failed by then
 */

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "abi.h"
#include "device.h"
#include "report.h"

#define SIZE 4096
/* More objects and methods than there are. */
#define OBJECTS 24
#define METHODS 24

static struct ibv_context *context;
static char memory[SIZE];

/* --- commands that there are not --- */

/* The error of a command by write(), with a payload of such bytes and room for a response. */
static int by_write(uint32_t command, int byte)
{
	static uint8_t response[1024];
	struct {
		struct ib_uverbs_cmd_hdr header;
		uint64_t payload[64];
	} request;

	memset(&request, byte, sizeof(request));
	request.header.command = command;
	request.header.in_words = sizeof(request) / 4;
	request.header.out_words = sizeof(response) / 4;
	if (!byte)
		request.payload[0] = (uintptr_t)response;
	return write(context->cmd_fd, &request, sizeof(request)) < 0 ? errno : 0;
}

static int by_extended_write(uint32_t command, int byte)
{
	static uint8_t response[1024];
	struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_ex_cmd_hdr extended;
		uint64_t payload[64];
	} request;

	memset(&request, byte, sizeof(request));
	request.header.command = command | IB_USER_VERBS_CMD_FLAG_EXTENDED;
	request.header.in_words = sizeof(request.payload) / 8;
	request.header.out_words = sizeof(response) / 8;
	request.extended.response = (uintptr_t)response;
	request.extended.provider_in_words = 0;
	request.extended.provider_out_words = 0;
	request.extended.cmd_hdr_reserved = 0;
	return write(context->cmd_fd, &request, sizeof(request)) < 0 ? errno : 0;
}

static int by_ioctl(uint16_t object, uint16_t method)
{
	struct ib_uverbs_ioctl_hdr header = {
		.length = sizeof(header), .object_id = object, .method_id = method, .driver_id = SOFTIB_DRIVER_ID,
	};

	return ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, &header) < 0 ? errno : 0;
}

struct command {
	const char *name;
	uint32_t number;
};

#define COMMAND(name) { #name, IB_USER_VERBS_CMD_##name }
#define EXTENDED(name) { #name, IB_USER_VERBS_EX_CMD_##name }

static const struct command missing[] = {
	COMMAND(MODIFY_AH), COMMAND(QUERY_AH), COMMAND(REG_SMR), COMMAND(QUERY_MR), COMMAND(ALLOC_MW), COMMAND(BIND_MW),
	COMMAND(DEALLOC_MW), COMMAND(RESIZE_CQ), COMMAND(POLL_CQ), COMMAND(PEEK_CQ), COMMAND(OPEN_XRCD), COMMAND(CLOSE_XRCD),
	COMMAND(OPEN_QP), { "the one behind the last", IB_USER_VERBS_CMD_OPEN_QP + 1 },
};

static const struct command missing_extended[] = {
	EXTENDED(CREATE_FLOW), EXTENDED(DESTROY_FLOW), EXTENDED(CREATE_WQ), EXTENDED(MODIFY_WQ), EXTENDED(DESTROY_WQ),
	EXTENDED(CREATE_RWQ_IND_TBL), EXTENDED(DESTROY_RWQ_IND_TBL), EXTENDED(MODIFY_CQ),
	{ "the one behind the last", IB_USER_VERBS_EX_CMD_MODIFY_CQ + 1 },
};

static const struct command missing_objects[] = {
	{ "memory windows", UVERBS_OBJECT_MW }, { "flows", UVERBS_OBJECT_FLOW }, { "XRC domains", UVERBS_OBJECT_XRCD },
	{ "indirection tables", UVERBS_OBJECT_RWQ_IND_TBL }, { "work queues", UVERBS_OBJECT_WQ },
	{ "flow actions", UVERBS_OBJECT_FLOW_ACTION }, { "device memory", UVERBS_OBJECT_DM },
	{ "counters", UVERBS_OBJECT_COUNTERS }, { "a kind that nobody has", OBJECTS },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void missing_commands(void)
{
	char text[100];
	size_t i;

	for (i = 0; i < COUNT(missing); i++) {
		snprintf(text, sizeof(text), "command %s: EOPNOTSUPP", missing[i].name);
		report_number(EOPNOTSUPP, by_write(missing[i].number, 0), text);
	}
	for (i = 0; i < COUNT(missing_extended); i++) {
		snprintf(text, sizeof(text), "extended command %s: EOPNOTSUPP", missing_extended[i].name);
		report_number(EOPNOTSUPP, by_extended_write(missing_extended[i].number, 0), text);
	}
	for (i = 0; i < COUNT(missing_objects); i++) {
		snprintf(text, sizeof(text), "no method for %s: EPROTONOSUPPORT", missing_objects[i].name);
		report_number(EPROTONOSUPPORT, by_ioctl(missing_objects[i].number, 0), text);
	}
}

/*
 * A second context of a file is refused, and ib_core (Linux 7.3, uverbs_std_types_device.c) then frees it without its
 * reference of the task: kmemleak reports the task once it has ended.
 */
static int leaks_in_kernel(uint16_t object, uint16_t method)
{
	return object == UVERBS_OBJECT_DEVICE && method == UVERBS_METHOD_GET_CONTEXT;
}

static int is_refused(uint16_t object, uint16_t method)
{
	return leaks_in_kernel(object, method) || by_ioctl(object, method) != 0;
}

/* Whatever is made of that is the kernel's to free, and no business of ours. */
static void all_commands(void)
{
	uint32_t command, refused = 0;
	uint16_t object, method;

	for (command = 0; command <= IB_USER_VERBS_CMD_OPEN_QP; command++) {
		refused += by_write(command, 0xff) != 0;
		by_write(command, 0);
		by_extended_write(command, 0xff);
		by_extended_write(command, 0);
	}
	report_number(IB_USER_VERBS_CMD_OPEN_QP + 1, refused, "each command is refused that is all ones");
	refused = 0;
	for (object = 0; object < OBJECTS; object++)
		for (method = 0; method < METHODS; method++)
			refused += is_refused(object, method) && is_refused(object, method | UVERBS_ID_DRIVER_NS);
	report_number(OBJECTS * METHODS, refused, "each method is refused that has no attributes");
}

/* --- verbs that the library does not have --- */

#define NO_OBJECT(call, description) \
	do { \
		errno = 0; \
		report((call) == NULL && errno == EOPNOTSUPP, description); \
	} while (0)

static void missing_verbs(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_xrcd_init_attr xrcd = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1 };
	struct ibv_cq_init_attr_ex extended = { .cqe = 4 };
	struct ibv_parent_domain_init_attr parent = { .pd = pd };
	struct ibv_td_init_attr thread = {};
	struct ibv_alloc_dm_attr device_memory = { .length = SIZE };
	struct ibv_counters_init_attr counters = {};
	struct ibv_wq_init_attr work = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = cq };
	struct ibv_rwq_ind_table_init_attr table = {};
	struct ibv_modify_cq_attr moderation = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = IBV_QP_EX_WITH_SEND,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_sge sge = {};

	NO_OBJECT(ibv_alloc_mw(pd, IBV_MW_TYPE_1), "ibv_alloc_mw: EOPNOTSUPP");
	NO_OBJECT(ibv_open_xrcd(context, &xrcd), "ibv_open_xrcd: EOPNOTSUPP");
	NO_OBJECT(ibv_create_cq_ex(context, &extended), "ibv_create_cq_ex: EOPNOTSUPP");
	NO_OBJECT(ibv_create_qp_ex(context, &init), "ibv_create_qp_ex with the calls ibv_wr_*: EOPNOTSUPP");
	NO_OBJECT(ibv_alloc_parent_domain(context, &parent), "ibv_alloc_parent_domain: EOPNOTSUPP");
	NO_OBJECT(ibv_alloc_td(context, &thread), "ibv_alloc_td: EOPNOTSUPP");
	NO_OBJECT(ibv_alloc_dm(context, &device_memory), "ibv_alloc_dm: EOPNOTSUPP");
	NO_OBJECT(ibv_create_counters(context, &counters), "ibv_create_counters: EOPNOTSUPP");
	NO_OBJECT(ibv_create_wq(context, &work), "ibv_create_wq: EOPNOTSUPP");
	NO_OBJECT(ibv_create_rwq_ind_table(context, &table), "ibv_create_rwq_ind_table: EOPNOTSUPP");
	NO_OBJECT(ibv_alloc_null_mr(pd), "ibv_alloc_null_mr: EOPNOTSUPP");
	NO_OBJECT(ibv_reg_dmabuf_mr(pd, 0, SIZE, 0, 0, 0), "ibv_reg_dmabuf_mr: EOPNOTSUPP");
	report_number(EOPNOTSUPP, ibv_modify_cq(cq, &moderation), "ibv_modify_cq: EOPNOTSUPP");
	report_number(EOPNOTSUPP, ibv_resize_cq(cq, 8), "ibv_resize_cq: EOPNOTSUPP");
	report_number(EOPNOTSUPP, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), "ibv_advise_mr: EOPNOTSUPP");
}

/* --- objects --- */

static struct ibv_comp_channel *channel;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct ibv_ah *ah;

static void make_objects(void)
{
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_ah_attr address = { .dlid = 1, .port_num = 1 };

	channel = ibv_create_comp_channel(context);
	must(!!channel, "a completion channel");
	pd = ibv_alloc_pd(context);
	must(!!pd, "a protection domain");
	cq = ibv_create_cq(context, 16, NULL, channel, 0);
	must(cq && !ibv_req_notify_cq(cq, 0), "a completion queue");
	srq = ibv_create_srq(pd, &shared);
	must(!!srq, "a shared receive queue");
	init.send_cq = init.recv_cq = cq;
	init.srq = srq;
	qp = ibv_create_qp(pd, &init);
	must(!!qp, "a queue pair");
	mr = ibv_reg_mr(pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE);
	must(!!mr, "a memory region");
	ah = ibv_create_ah(pd, &address);
	must(!!ah, "an address handle");
}

/* --- an HCA that has gone --- */

/* That is the last event, and ib_uverbs lets a program that reads on wait until the file is closed. */
static void told(void)
{
	struct pollfd file = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event = {};

	while (poll(&file, 1, -1) == 1 && !ibv_get_async_event(context, &event)) {
		ibv_ack_async_event(&event);
		if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			break;
	}
	report(event.event_type == IBV_EVENT_DEVICE_FATAL, "the program is told that its HCA has gone");
}

static void use_objects(void)
{
	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_ERR };
	struct ibv_sge sge = { .addr = (uintptr_t)memory, .length = 8, .lkey = mr->lkey };
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr receive = { .sg_list = &sge, .num_sge = 1 }, *bad_receive;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	struct ibv_cq *awake;
	void *nothing;
	struct ibv_wc wc;

	report(ibv_get_cq_event(channel, &awake, &nothing) != 0, "who waits for completions is woken with an error");
	report_number(EIO, ibv_query_device(context, &device), "ibv_query_device: EIO");
	report_number(EIO, ibv_query_port(context, 1, &port), "ibv_query_port: EIO");
	report(!ibv_alloc_pd(context) && errno == EIO, "ibv_alloc_pd: EIO");
	report(!ibv_reg_mr(pd, memory, SIZE, 0) && errno == EIO, "ibv_reg_mr: EIO");
	report(!ibv_create_cq(context, 1, NULL, NULL, 0) && errno == EIO, "ibv_create_cq: EIO");
	report_number(EIO, ibv_modify_qp(qp, &attributes, IBV_QP_STATE), "ibv_modify_qp: EIO");
	report_number(EIO, ibv_post_send(qp, &send, &bad), "ibv_post_send: EIO");
	report_number(EIO, ibv_post_srq_recv(srq, &receive, &bad_receive), "ibv_post_srq_recv: EIO");
	report_number(-EIO, ibv_poll_cq(cq, 1, &wc), "ibv_poll_cq: EIO");
	report_number(EIO, ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq: EIO");
}

/* The kernel has destroyed its objects; those of the library are there yet. */
static void end_objects(void)
{
	report_number(0, ibv_destroy_ah(ah), "ibv_destroy_ah succeeds");
	report_number(0, ibv_destroy_qp(qp), "ibv_destroy_qp succeeds");
	report_number(0, ibv_destroy_srq(srq), "ibv_destroy_srq succeeds");
	report_number(0, ibv_dereg_mr(mr), "ibv_dereg_mr succeeds");
	report_number(0, ibv_destroy_cq(cq), "ibv_destroy_cq succeeds");
	report_number(0, ibv_dealloc_pd(pd), "ibv_dealloc_pd succeeds");
	report_number(0, ibv_close_device(context), "the context is closed");
}

static void hold(void)
{
	char line[10];

	make_objects();
	puts("held");
	must(fgets(line, sizeof(line), stdin) != NULL, "a line");
	told();
	use_objects();
	end_objects();
}

/* --- detachments that fail --- */

static const union ibv_gid group = { .raw = { 0xff, 0x12, [15] = 7 } };
static const union ibv_gid other_group = { .raw = { 0xff, 0x12, [15] = 8 } };
static const uint16_t group_lid = 0xc001;

static void make_member(void)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD,
	};

	pd = ibv_alloc_pd(context);
	must(!!pd, "a protection domain");
	init.send_cq = init.recv_cq = cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	must(!!cq, "a completion queue");
	qp = ibv_create_qp(pd, &init);
	must(!!qp, "a queue pair");
	must(!ibv_attach_mcast(qp, &group, group_lid), "a membership");
	must(!ibv_attach_mcast(qp, &other_group, group_lid), "another membership");
}

/* The kernel ends the other membership with the program. */
static void be_member(void)
{
	char line[10];

	make_member();
	puts("held");
	must(fgets(line, sizeof(line), stdin) != NULL, "a line");
	report_number(0, ibv_detach_mcast(qp, &group, group_lid), "a program's queue pair leaves a group");
}

/* --- an HCA that fails --- */

/* It is there, and ends objects, but neither makes nor changes any. */
static void be_refused(void)
{
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	char line[10];

	make_objects();
	puts("held");
	must(fgets(line, sizeof(line), stdin) != NULL, "a line");
	report(!ibv_alloc_pd(context) && errno == EIO, "ibv_alloc_pd: EIO");
	report(!ibv_reg_mr(pd, memory, SIZE, 0) && errno == EIO, "ibv_reg_mr: EIO");
	errno = 0;
	report(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) != 0 && errno == EIO, "ibv_rereg_mr: EIO");
	report(!ibv_create_cq(context, 1, NULL, NULL, 0) && errno == EIO, "ibv_create_cq: EIO");
	report(!ibv_create_srq(pd, &shared) && errno == EIO, "ibv_create_srq: EIO");
	report_number(EIO, ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), "ibv_modify_srq: EIO");
	report_number(EIO, ibv_query_srq(srq, &limit), "ibv_query_srq: EIO");
	end_objects();
}

static void commands(void)
{
	make_objects();
	missing_verbs(pd, cq);
	missing_commands();
	all_commands();
}

int main(int argc, char **argv)
{
	const char *what = argc == 3 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	context = open_context(argc == 3 ? argv[2] : "");
	if (!strcmp(what, "hold_outside"))
		must(!unshare(CLONE_NEWNET), "a network namespace");
	if (!strcmp(what, "commands"))
		commands();
	else if (!strcmp(what, "member"))
		be_member();
	else if (!strcmp(what, "failing"))
		be_refused();
	else
		hold();
	puts("end");
	return 0;
}
