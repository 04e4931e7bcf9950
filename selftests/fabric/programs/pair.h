/* SPDX-License-Identifier: GPL-2.0-only */
/* Two queue pairs of one device that are connected with each other, and requests on them. */

#ifndef PAIR_H
#define PAIR_H

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "connection.h"
#include "report.h"

/* Milliseconds for which a completion is waited for: far more than one takes, also where others use the processors. */
#define TRIES 30000

/* Two queue pairs that are connected with each other. */
static struct side a, b;

/* Both from the beginning, also after an error. */
static inline void join(void)
{
	must(!to_reset(a.qp) && !to_reset(b.qp), "queue pairs are reset");
	must(!to_init(a.qp) && !to_init(b.qp), "queue pairs are initialised");
	must(!to_rts(a.qp, b.qp->qp_num) && !to_rts(b.qp, a.qp->qp_num), "queue pairs are connected");
	memset(a.memory, 'a', SIDE_SIZE);
	memset(b.memory, 'b', SIDE_SIZE);
}

/* Whether a completion comes. */
static inline int next_completion(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int i;

	for (i = 0; i < TRIES; i++) {
		if (ibv_poll_cq(cq, 1, wc) == 1)
			return 1;
		usleep(1000);
	}
	return 0;
}

/* The status of the next completion; -1 if none comes. */
static inline int next_status(struct side *side)
{
	struct ibv_wc wc;

	return next_completion(side->cq, &wc) ? (int)wc.status : -1;
}

static inline int post_receive(struct side *side, void *address, uint32_t length, uint32_t key)
{
	struct ibv_sge sge = { .addr = (uintptr_t)address, .length = length, .lkey = key };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(side->qp, &wr, &bad);
}

static inline int post_send(struct side *side, void *address, uint32_t length, uint32_t key, unsigned int flags)
{
	struct ibv_sge sge = { .addr = (uintptr_t)address, .length = length, .lkey = key };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags }, *bad;

	return ibv_post_send(side->qp, &wr, &bad);
}

static inline int post_remote(enum ibv_wr_opcode opcode, uint32_t length, uintptr_t remote, uint32_t key)
{
	struct ibv_sge sge = { .addr = (uintptr_t)a.memory, .length = length, .lkey = a.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode }, *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = key;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = key;
	}
	return ibv_post_send(a.qp, &wr, &bad);
}

/* Whether the memory of a side has one byte everywhere from a place on. */
static inline int is_all_from(const char *memory, int place, char byte)
{
	for (; place < SIDE_SIZE; place++)
		if (memory[place] != byte)
			return 0;
	return 1;
}

static inline int is_all(const char *memory, char byte)
{
	return is_all_from(memory, 0, byte);
}

#endif
