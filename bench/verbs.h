/* SPDX-License-Identifier: GPL-2.0-only */
/* A queue pair of the kind that oxib uses, without oxib. */

#ifndef OXIB_BENCH_VERBS_H
#define OXIB_BENCH_VERBS_H

#include "bench.h"

struct request {
	union {
		struct ib_ud_wr send;
		struct ib_recv_wr receive;
	};
	struct ib_sge piece;
};

struct verbs {
	struct bench *bench;
	/* Given: the device's name, and the LID of its peer; or null: the rxe device on BENCH_ETHERNET. */
	const char *name;
	u16 peer_lid;
	struct ib_device *device;
	struct net_device *ethernet;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_ah *ah;
	/* Given: what wants to hear of completions; none, if the queue is polled. */
	void (*completed)(struct ib_cq *cq, void *verbs);
	struct request requests[BENCH_RING];
	void *memory[BENCH_RING];
	struct ib_wc completions[BENCH_BATCH];
	/* The next request, the completions that are to come, and the sends since the last signalled one. */
	unsigned int next, awaited, unsignalled;
};

struct ib_device *verbs_device(const char *name);
int verbs_lid(const char *name, u16 *lid);
int verbs_open(struct verbs *verbs);
void verbs_close(struct verbs *verbs);
struct request *verbs_next_request(struct verbs *verbs);

#endif
