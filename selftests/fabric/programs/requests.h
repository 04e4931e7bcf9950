/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests of one side of a connection, from or into the beginning of its memory, which have to go well. */

#ifndef REQUESTS_H
#define REQUESTS_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "connection.h"
#include "report.h"

/* The address and the key of the peer's memory mean nothing to a send. */
static inline void post(struct side *side, enum ibv_wr_opcode opcode, uint32_t length, uint64_t there, uint32_t rkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)side->memory, .length = length, .lkey = side->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode }, *bad;

	wr.wr.rdma.remote_addr = there;
	wr.wr.rdma.rkey = rkey;
	must(!ibv_post_send(side->qp, &wr, &bad), "a request");
}

static inline void post_receive(struct side *side, uint32_t length)
{
	struct ibv_sge sge = { .addr = (uintptr_t)side->memory, .length = length, .lkey = side->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(side->qp, &wr, &bad), "a receive");
}

static inline void complete(struct side *side)
{
	struct ibv_wc wc;
	int number;

	do
		number = ibv_poll_cq(side->cq, 1, &wc);
	while (!number);
	must(number == 1 && wc.status == IBV_WC_SUCCESS, "its completion");
}

#endif
