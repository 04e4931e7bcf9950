// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands with data of the driver. softib has none: a command with bytes that are not zero is refused and does
 * nothing, whatever their number; zeros ask for nothing; room for a response is cleared. Commands that destroy look at none. Prints a line for each
 * case, `ok` or `not ok`, and a description.
 *
 * udata DEVICE
 */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include "command.h"
#include "device.h"
#include "report.h"

#define SIZE 4096
#define LONGEST 300
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int file;
/* A page, and behind it one that goes. */
static uint8_t *memory;

static const uint16_t lengths[] = { 1, 3, 7, 8, 9, 12, 63, 64, LONGEST };

/* Lengths with one byte that is not zero, the first or the last, that were not refused. */
static int taken(const struct command *command)
{
	uint8_t bytes[LONGEST];
	int count = 0;
	size_t i;

	for (i = 0; i < COUNT(lengths); i++) {
		memset(bytes, 0, sizeof(bytes));
		bytes[0] = 1;
		count += execute(file, command, &(struct data){ bytes, lengths[i], NULL, 0 }) != EOPNOTSUPP;
		bytes[0] = 0;
		bytes[lengths[i] - 1] = 0x80;
		count += execute(file, command, &(struct data){ bytes, lengths[i], NULL, 0 }) != EOPNOTSUPP;
	}
	return count;
}

static int is_zero(const uint8_t *bytes, size_t length)
{
	while (length && !bytes[length - 1])
		length--;
	return !length;
}

/* Refused with data of each kind; then it succeeds, with zeros. */
static void check(const struct command *command)
{
	const uint8_t zeros[LONGEST] = {};
	uint8_t response[13];
	char text[100];

	snprintf(text, sizeof(text), "%s: data of any length that is not zero: EOPNOTSUPP", command->name);
	report_number(0, taken(command), text);
	snprintf(text, sizeof(text), "%s: data where there is no memory: EFAULT", command->name);
	report_number(EFAULT, execute(file, command, &(struct data){ (void *)8, 64, NULL, 0 }), text);
	snprintf(text, sizeof(text), "%s: a response where there is no memory: EFAULT", command->name);
	report_number(EFAULT, execute(file, command, &(struct data){ NULL, 0, (void *)8, 64 }), text);
	memset(response, 0xff, sizeof(response));
	snprintf(text, sizeof(text), "%s: zeros change nothing", command->name);
	report_number(0, execute(file, command, &(struct data){ zeros, LONGEST, response, sizeof(response) }), text);
	snprintf(text, sizeof(text), "%s: its response is cleared", command->name);
	report(is_zero(response, sizeof(response)), text);
}

#define CHECK(verb, request, response) \
	check(&(struct command){ #verb, IB_USER_VERBS_CMD_##verb, &(request), sizeof(request), &(response), \
				 sizeof(response) })
#define CHECK_EXTENDED(verb, request, response) \
	check(&(struct command){ "extended " #verb, EXTENDED(verb), &(request), sizeof(request), &(response), \
				 sizeof(response) })
#define CHECK_SILENT(verb, request) \
	check(&(struct command){ #verb, IB_USER_VERBS_CMD_##verb, &(request), sizeof(request), NULL, 0 })

static uint32_t pd, mr, cq, srq, qp, second_cq, second_qp;

static void memory_of_program(void)
{
	struct ib_uverbs_alloc_pd_resp made = {};
	struct ib_uverbs_alloc_pd alloc = {};
	struct ib_uverbs_reg_mr_resp registered = {};
	struct ib_uverbs_reg_mr reg = {
		.start = (uintptr_t)memory, .length = SIZE, .hca_va = (uintptr_t)memory, .access_flags = IBV_ACCESS_LOCAL_WRITE,
	};
	struct ib_uverbs_rereg_mr_resp changed = {};
	struct ib_uverbs_rereg_mr rereg = { .flags = IBV_REREG_MR_CHANGE_ACCESS, .access_flags = IBV_ACCESS_LOCAL_WRITE };

	CHECK(ALLOC_PD, alloc, made);
	pd = reg.pd_handle = made.pd_handle;
	CHECK(REG_MR, reg, registered);
	mr = rereg.mr_handle = registered.mr_handle;
	CHECK(REREG_MR, rereg, changed);
}

static void queues(void)
{
	struct ib_uverbs_create_cq_resp made = {};
	struct ib_uverbs_create_cq create = { .cqe = 4, .comp_channel = -1 };
	struct ib_uverbs_ex_create_cq_resp extended_made = {};
	struct ib_uverbs_ex_create_cq extended = { .cqe = 4, .comp_channel = -1 };
	struct ib_uverbs_create_srq_resp shared_made = {};
	struct ib_uverbs_create_srq shared = { .pd_handle = pd, .max_wr = 4, .max_sge = 1 };
	struct ib_uverbs_modify_srq modify = { .attr_mask = IBV_SRQ_LIMIT, .srq_limit = 1 };

	CHECK(CREATE_CQ, create, made);
	cq = made.cq_handle;
	CHECK_EXTENDED(CREATE_CQ, extended, extended_made);
	second_cq = extended_made.base.cq_handle;
	CHECK(CREATE_SRQ, shared, shared_made);
	srq = modify.srq_handle = shared_made.srq_handle;
	CHECK_SILENT(MODIFY_SRQ, modify);
}

static void queue_pairs(void)
{
	struct ib_uverbs_create_qp_resp made = {};
	struct ib_uverbs_create_qp create = {
		.pd_handle = pd, .send_cq_handle = cq, .recv_cq_handle = cq, .srq_handle = srq, .max_send_wr = 1,
		.max_send_sge = 1, .qp_type = IBV_QPT_RC, .is_srq = 1,
	};
	struct ib_uverbs_ex_create_qp_resp extended_made = {};
	struct ib_uverbs_ex_create_qp extended = {
		.pd_handle = pd, .send_cq_handle = cq, .recv_cq_handle = second_cq, .max_send_wr = 1, .max_recv_wr = 1,
		.max_send_sge = 1, .max_recv_sge = 1, .qp_type = IBV_QPT_UD,
	};
	struct ib_uverbs_modify_qp modify = { .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_RESET };
	struct ib_uverbs_ex_modify_qp extended_modify = { .base = { .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_RESET } };
	struct ib_uverbs_ex_modify_qp_resp modified = {};

	CHECK(CREATE_QP, create, made);
	qp = modify.qp_handle = made.qp_handle;
	CHECK_SILENT(MODIFY_QP, modify);
	CHECK_EXTENDED(CREATE_QP, extended, extended_made);
	second_qp = extended_modify.base.qp_handle = extended_made.base.qp_handle;
	CHECK_EXTENDED(MODIFY_QP, extended_modify, modified);
}

static void addresses(void)
{
	struct ib_uverbs_create_ah_resp made = {};
	struct ib_uverbs_create_ah create = { .pd_handle = pd, .attr = { .dlid = 1, .port_num = 1 } };

	CHECK(CREATE_AH, create, made);
	must(!execute(file, &(struct command){ "", IB_USER_VERBS_CMD_DESTROY_AH,
					 &(struct ib_uverbs_destroy_ah){ .ah_handle = made.ah_handle },
					 sizeof(struct ib_uverbs_destroy_ah), NULL, 0 }, &(struct data){}), "it goes");
}

static void device_wide(void)
{
	struct ib_uverbs_ex_query_device query = {};
	struct ib_uverbs_ex_query_device_resp attributes = {};

	CHECK_EXTENDED(QUERY_DEVICE, query, attributes);
}

/* These look at no data: an object has to go in any case. */
static void end(const char *name, uint32_t number, const void *request, size_t size, void *response, size_t response_size)
{
	const struct command command = { name, number, request, size, response, response_size };
	char text[100];

	snprintf(text, sizeof(text), "%s: any data", name);
	report_number(0, execute(file, &command, &(struct data){ (void *)8, 64, (void *)8, 64 }), text);
}

#define END(verb, request, response) \
	end(#verb, IB_USER_VERBS_CMD_##verb, &(request), sizeof(request), &(response), sizeof(response))
#define END_SILENTLY(verb, request) end(#verb, IB_USER_VERBS_CMD_##verb, &(request), sizeof(request), NULL, 0)

static void ends(void)
{
	struct ib_uverbs_destroy_qp_resp qp_events;
	struct ib_uverbs_destroy_srq_resp srq_events;
	struct ib_uverbs_destroy_cq_resp cq_events;

	END(DESTROY_QP, ((struct ib_uverbs_destroy_qp){ .qp_handle = qp }), qp_events);
	END(DESTROY_QP, ((struct ib_uverbs_destroy_qp){ .qp_handle = second_qp }), qp_events);
	END(DESTROY_SRQ, ((struct ib_uverbs_destroy_srq){ .srq_handle = srq }), srq_events);
	END(DESTROY_CQ, ((struct ib_uverbs_destroy_cq){ .cq_handle = cq }), cq_events);
	END(DESTROY_CQ, ((struct ib_uverbs_destroy_cq){ .cq_handle = second_cq }), cq_events);
	END_SILENTLY(DEREG_MR, ((struct ib_uverbs_dereg_mr){ .mr_handle = mr }));
	END_SILENTLY(DEALLOC_PD, ((struct ib_uverbs_dealloc_pd){ .pd_handle = pd }));
}

/* The context that a library opens is not used: a file of its own has none yet. */
static void open_file(const char *name)
{
	struct ibv_context *context = open_context(name);
	char path[200];

	snprintf(path, sizeof(path), "/dev/infiniband/%s", context->device->dev_name);
	file = open(path, O_RDWR);
	must(file >= 0, path);
	ibv_close_device(context);
}

/*
 * By write(), as the kernel cannot make a context by an ioctl with a command: it takes an attribute of that one for another one (Linux 7.3,
 * ib_init_ucontext). All are as long as words then.
 */
static int get_context(const void *data, size_t length, uint8_t *response, size_t response_length)
{
	struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_get_context get;
		uint8_t data[LONGEST];
	} request = { .get.response = (uintptr_t)response };

	memcpy(request.data, data, length);
	request.header.command = IB_USER_VERBS_CMD_GET_CONTEXT;
	request.header.in_words = (offsetof(typeof(request), data) + length) / 4;
	request.header.out_words = (sizeof(struct ib_uverbs_get_context_resp) + response_length) / 4;
	return write(file, &request, 4 * request.header.in_words) < 0 ? errno : 0;
}

static void contexts(void)
{
	const size_t made = sizeof(struct ib_uverbs_get_context_resp);
	uint8_t zeros[LONGEST] = {}, response[sizeof(struct ib_uverbs_get_context_resp) + 12], *end = memory + SIZE;
	uint8_t last[LONGEST] = { [LONGEST - 1] = 1 };

	report_number(EOPNOTSUPP, get_context("\1\0\0", 4, response, 0), "GET_CONTEXT: a word of data: EOPNOTSUPP");
	report_number(EOPNOTSUPP, get_context(last, LONGEST, response, 0), "GET_CONTEXT: much data: EOPNOTSUPP");
	must(!munmap(end, SIZE), "there is no memory behind a page");
	report_number(EFAULT, get_context(zeros, 0, end - made, 12),
		      "GET_CONTEXT: a response where there is no memory: EFAULT");
	memset(response, 0xff, sizeof(response));
	report_number(0, get_context(zeros, LONGEST, response, 12), "GET_CONTEXT: zeros change nothing");
	report(is_zero(response + made, 12), "GET_CONTEXT: its response is cleared");
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	memory = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(memory != MAP_FAILED, "memory");
	open_file(argc > 1 ? argv[1] : "");
	contexts();
	device_wide();
	memory_of_program();
	queues();
	queue_pairs();
	addresses();
	ends();
	puts("end");
	return 0;
}
