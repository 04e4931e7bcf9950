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
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "device.h"
#include "report.h"
#include "random/contexts.h"
#include "random/draw.h"
#include "random/garbage.h"
#include "random/objects.h"
#include "random/requests.h"

#define THREADS 3
/* It goes on until then, but for so many commands of each thread at least. */
static time_t end;
#define LEAST 5000

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
static uint32_t successes[VERBS], refusals[VERBS];

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

/* All steps of two with each other. */
static int connect_places(struct context *context, uint32_t one, uint32_t other, int is_datagram)
{
	uint32_t state;
	int error = 0;

	for (state = IBV_QPS_RESET; state <= IBV_QPS_RTS; state++) {
		error = modify_to(context, context->handles[QP][one], context->numbers[other], state, is_datagram);
		modify_to(context, context->handles[QP][other], context->numbers[one], state, is_datagram);
	}
	return error;
}

static void exchange(struct context *context)
{
	int i;

	for (i = 0; i < 4; i++) {
		post_receives(context, COMMAND(POST_RECV), QP);
		post_send(context);
	}
}

/* A queue pair that is connected with itself, and its own domain, completion queue and region, all in one place: its requests
   succeed as long as no other thread changes any of these. */
static int make_place(struct context *context)
{
	int error, i;

	chosen = below(MANY);
	/* Atomic operations take 8 bytes. */
	fitting = one_in(2) ? 8 : below(100);
	alloc_pd(context);
	create_cq(context);
	reg_mr(context);
	create_ah(context);
	create_srq(context);
	create_qp(context);
	error = connect_places(context, chosen, chosen, one_in(4));
	exchange(context);
	for (i = 0; i < 20; i++) {
		usleep(50);
		poll_cq(context);
	}
	chosen = -1;
	return error;
}

static int connect_pair(struct context *context)
{
	int error;

	rare = SELDOM;
	if (one_in(2)) {
		error = make_place(context);
	} else {
		if (one_in(4))
			populate(context);
		error = connect_places(context, any_place(), any_place(), one_in(4));
		exchange(context);
	}
	rare = USUAL;
	return error;
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

/* Requests of each operation succeed, and some fail. */
static void report_completions(void)
{
	static const struct {
		enum ibv_wc_opcode number;
		const char *name;
	} all[] = {
		{ IBV_WC_SEND, "SEND" }, { IBV_WC_RECV, "RECV" }, { IBV_WC_RDMA_WRITE, "WRITE" }, { IBV_WC_RDMA_READ, "READ" },
		{ IBV_WC_COMP_SWAP, "CMP_SWAP" }, { IBV_WC_FETCH_ADD, "FETCH_ADD" },
		{ IBV_WC_RECV_RDMA_WITH_IMM, "RECV of WRITE_WITH_IMM" },
	};
	uint32_t failures = 0;
	char text[100];
	size_t i;

	for (i = 0; i < 32; i++) {
		if (statuses[i])
			printf("# %u completions of status %zu\n", statuses[i], i);
		if (i != IBV_WC_SUCCESS)
			failures += statuses[i];
	}
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(text, sizeof(text), "%s succeeds", all[i].name);
		printf("# %s: %u succeeded\n", all[i].name, operations[all[i].number]);
		report(operations[all[i].number] > 0, text);
	}
	report(failures > 0, "requests fail");
}

static void sum_up(void)
{
	/* Garbage alone may succeed in nothing; a domain is nearly always used; few leave a group that they are in. */
	static const char *const never_sure = "any command any write() any ioctl() memory opening DEALLOC_PD DETACH_MCAST";
	char text[100];
	int i;

	for (i = 0; i < VERBS; i++) {
		printf("# %s: %u done, %u refused\n", names[i], successes[i], refusals[i]);
		if (strstr(never_sure, names[i]))
			continue;
		snprintf(text, sizeof(text), "%s is done at times, and refused", names[i]);
		report(successes[i] && refusals[i], text);
	}
	report_completions();
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
