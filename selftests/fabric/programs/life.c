// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that is killed: it makes objects up to a step of its life, says `there`, and waits or goes on
 * for ever.
 *
 * life DEVICE context|pd|mr|cq|reset|init|rtr|rts|receives|unanswered|reads|sends
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "connection.h"
#include "report.h"
#include "requests.h"

/* Many packets. */
#define LENGTH (1 << 20)

static const char *last_step;

/* Stays here if this is what the program was asked to come to. */
static void step(const char *name)
{
	if (strcmp(name, last_step))
		return;
	puts("there");
	for (;;)
		pause();
}

/* As make_side(), with a step after each object. */
static void make(struct side *side)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	side->memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(side->memory != MAP_FAILED, "memory");
	side->pd = ibv_alloc_pd(context);
	must(!!side->pd, "a protection domain");
	step("pd");
	side->mr = ibv_reg_mr(side->pd, side->memory, LENGTH, access);
	must(!!side->mr, "a memory region");
	step("mr");
	side->cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	must(!!side->cq, "a completion queue");
	step("cq");
	side->qp = make_qp(side, IBV_QPT_RC);
	must(!!side->qp, "a queue pair");
	step("reset");
	must(!to_init(side->qp), "a queue pair is initialised");
	step("init");
}

int main(int argc, char **argv)
{
	struct side a, b;

	must(argc == 3, "a step");
	last_step = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_device(argv[1]);
	step("context");
	make(&a);
	make(&b);
	must(!to_rtr(a.qp, b.qp->qp_num), "a queue pair receives");
	step("rtr");
	must(!rtr_to_rts(a.qp, 0), "a queue pair sends");
	step("rts");
	post_receive(&a, LENGTH);
	post_receive(&a, LENGTH);
	step("receives");
	/* The other end is not ready to receive. */
	if (!strcmp(last_step, "unanswered"))
		post(&a, IBV_WR_RDMA_READ, LENGTH, (uintptr_t)b.memory, b.mr->rkey);
	step("unanswered");
	must(!to_rts(b.qp, a.qp->qp_num), "the other queue pair is connected");
	puts("there");
	for (;;) {
		if (!strcmp(last_step, "reads")) {
			post(&a, IBV_WR_RDMA_READ, LENGTH, (uintptr_t)b.memory, b.mr->rkey);
		} else {
			post_receive(&b, LENGTH);
			post(&a, IBV_WR_SEND, LENGTH, 0, 0);
			complete(&b);
		}
		complete(&a);
	}
}
