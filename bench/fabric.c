// SPDX-License-Identifier: GPL-2.0-only
/*
 * Datagrams from one HCA of a fabric to another, from the post at one to the completion that the other's consumer polls.
 * The receives are posted before the clock runs.
 */

#include "verbs.h"

struct ends {
	struct verbs near, far;
};

static void prepare_sends(struct ends *ends)
{
	unsigned int i;

	for (i = 0; i < BENCH_RING; i++) {
		struct request *request = &ends->near.requests[i];

		request->piece.length = ends->near.bench->bytes;
		request->send = (struct ib_ud_wr) {
			.wr = {
				.opcode = IB_WR_SEND,
				.num_sge = 1,
				.sg_list = &request->piece,
			},
			.ah = ends->near.ah,
			.remote_qpn = ends->far.qp->qp_num,
			.remote_qkey = BENCH_QKEY,
		};
	}
}

/* One call, the last request signalled. */
static int post_sends(struct verbs *verbs, unsigned int number)
{
	struct ib_send_wr *first = NULL, *last = NULL;

	while (number--) {
		struct ib_send_wr *wr = &verbs_next_request(verbs)->send.wr;

		wr->send_flags = 0;
		wr->next = NULL;
		if (last)
			last->next = wr;
		else
			first = wr;
		last = wr;
	}
	last->send_flags = IB_SEND_SIGNALED;
	verbs->awaited++;
	return ib_post_send(verbs->qp, first, NULL);
}

static int post_receives(struct verbs *verbs, unsigned int number)
{
	int error = 0;

	while (number-- && !error) {
		struct request *request = verbs_next_request(verbs);

		request->piece.length = PAGE_SIZE + PAGE_SIZE / 2;
		request->receive = (struct ib_recv_wr) { .num_sge = 1, .sg_list = &request->piece };
		error = ib_post_recv(verbs->qp, &request->receive, NULL);
	}
	return error;
}

static void take(struct verbs *verbs)
{
	int taken, i;

	do {
		taken = ib_poll_cq(verbs->cq, BENCH_BATCH, verbs->completions);
		/* One that failed is missed at the end of the round, which then does not come. */
		for (i = 0; i < taken; i++)
			verbs->awaited -= verbs->completions[i].status == IB_WC_SUCCESS;
	} while (taken == BENCH_BATCH);
}

static bool arrived(void *context)
{
	struct ends *ends = context;

	take(&ends->far);
	take(&ends->near);
	return !ends->near.awaited && !ends->far.awaited;
}

static int send_burst(struct ends *ends, unsigned int chain)
{
	unsigned int left = ends->near.bench->burst;
	int error = 0;

	while (left && !error) {
		error = post_sends(&ends->near, min(left, chain));
		left -= min(left, chain);
	}
	return error;
}

static int rounds(struct ends *ends, unsigned int chain, bool events)
{
	struct bench *bench = ends->near.bench;
	int error = 0;

	prepare_sends(ends);
	while (bench_goes_on(bench) && !error) {
		error = post_receives(&ends->far, bench->burst);
		if (error)
			break;
		if (events)
			ib_req_notify_cq(ends->far.cq, IB_CQ_NEXT_COMP);
		ends->far.awaited = bench->burst;
		bench_begin(bench);
		error = send_burst(ends, chain) ?: bench_drain(bench, arrived, ends);
		bench_end(bench);
	}
	return error;
}

static int measure(struct bench *bench, unsigned int chain, void (*completed)(struct ib_cq *cq, void *verbs))
{
	struct ends *ends = kvzalloc(sizeof(*ends), GFP_KERNEL);
	int error;

	if (!ends)
		return -ENOMEM;
	ends->near.bench = bench;
	ends->far.bench = bench;
	ends->near.name = BENCH_NEAR;
	ends->far.name = BENCH_FAR;
	ends->far.completed = completed;
	error = verbs_lid(BENCH_FAR, &ends->near.peer_lid) ?: verbs_lid(BENCH_NEAR, &ends->far.peer_lid) ?:
		verbs_open(&ends->far) ?: verbs_open(&ends->near) ?: rounds(ends, chain, completed);
	verbs_close(&ends->near);
	verbs_close(&ends->far);
	kvfree(ends);
	return error;
}

/* A call for each packet. */
int bench_fabric_single(struct bench *bench)
{
	return measure(bench, 1, NULL);
}

/* A call for all packets of a burst. */
int bench_fabric_chain(struct bench *bench)
{
	return measure(bench, bench->burst, NULL);
}

static void completed(struct ib_cq *, void *)
{
}

/* The same, and the device tells of the first completion at the far end. */
int bench_fabric_chain_events(struct bench *bench)
{
	return measure(bench, bench->burst, completed);
}
