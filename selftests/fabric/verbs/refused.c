// SPDX-License-Identifier: GPL-2.0-only
/* What is refused as it is posted, and leaves everything as it was. */

#include "verbs.h"

#define SIGNALED IB_SEND_SIGNALED

static void works(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 64 };

	if (post_receive(pair, &pair->b, INCOMING, 64) && post(pair, &pair->a, &request) && sent_well(pair, &pair->a, 1))
		received(pair, &pair->b, 64, NULL);
}

static bool refused(struct pair *pair, const char *what, int error)
{
	if (!error)
		fail(pair, "%s was taken", what);
	return error != 0;
}

static void in_reset(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 64 };

	if (refused(pair, "a request", try_post(pair, &pair->a, &request)))
		refused(pair, "a receive", try_receive(&pair->a, INCOMING, 64, pair->a.pd->local_dma_lkey));
}

/* b has reached only INIT: it takes receives, and no requests. */
static void in_init(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 64 };

	if (post_receive(pair, &pair->b, INCOMING, 64))
		refused(pair, "a request", try_post(pair, &pair->b, &request));
}

/* The list is taken up to the bad one, which is named. */
static void bad_in_list(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_WRITE, .flags = SIGNALED, .length = 8, .remote_offset = INCOMING };
	const struct ib_send_wr *bad = NULL;
	struct posting *postings = kcalloc(3, sizeof(*postings), GFP_KERNEL);
	unsigned int i;

	if (!postings) {
		fail(pair, "no memory");
		return;
	}
	for (i = 0; i < 3; i++) {
		describe(pair, &pair->a, &request, &postings[i]);
		postings[i].work.wr.next = i < 2 ? &postings[i + 1].work.wr : NULL;
	}
	postings[1].work.wr.num_sge = 1000;
	if (refused(pair, "a list with 1000 pieces in one", ib_post_send(pair->a.qp, &postings[0].work.wr, &bad)) &&
	    same(pair, "the bad one", (uintptr_t)&postings[1].work.wr, (uintptr_t)bad) && sent_well(pair, &pair->a, 1))
		works(pair);
	kfree(postings);
}

static void too_many_pieces(struct pair *pair)
{
	struct ib_sge pieces[1] = {};
	struct ib_recv_wr receive = { .sg_list = pieces, .num_sge = 1000 };
	const struct ib_recv_wr *bad = NULL;

	if (refused(pair, "a receive of 1000 pieces", ib_post_recv(pair->b.qp, &receive, &bad)) &&
	    same(pair, "the bad one", (uintptr_t)&receive, (uintptr_t)bad))
		works(pair);
}

static void too_long_inline(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED | IB_SEND_INLINE, .length = HALF };

	if (refused(pair, "64 KiB of inline data", try_post(pair, &pair->a, &request)))
		works(pair);
}

/* A queue may be longer than asked for; what it says that it holds is what it holds. */
static void full_queue(struct pair *pair)
{
	struct ib_qp_init_attr initial = {};
	struct ib_qp_attr attributes = {};
	u32 i;

	if (!same(pair, "asking for the queue's length", 0, ib_query_qp(pair->b.qp, &attributes, IB_QP_CAP, &initial)))
		return;
	if (attributes.cap.max_recv_wr < RING) {
		fail(pair, "the queue holds only %u", attributes.cap.max_recv_wr);
		return;
	}
	for (i = 0; i < attributes.cap.max_recv_wr; i++)
		if (!post_receive(pair, &pair->b, INCOMING, 64))
			return;
	for (i = 0; i <= attributes.cap.max_recv_wr; i++)
		if (try_receive(&pair->b, INCOMING, 64, pair->b.pd->local_dma_lkey))
			return;
	fail(pair, "%u receives were taken, of a queue for %u", 2 * i, i);
}

static void full_send_queue(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_READ, .flags = SIGNALED, .offset = INCOMING, .length = 4 };
	u32 i, posted = 0;

	/* Nothing is taken from the completion queue, and with b deaf nothing gets done. */
	for (i = 0; i < 4 * RING; i++)
		posted += !try_post(pair, &pair->a, &request);
	if (posted < RING || posted == 4 * RING)
		fail(pair, "%u requests were taken, of a queue for %u", posted, RING);
}

static void wrong_operation(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_READ, .flags = SIGNALED, .length = 4 };

	refused(pair, "an RDMA READ on an unreliable connection", try_post(pair, &pair->a, &request));
}

static void wrong_transition(struct pair *pair)
{
	struct ib_qp_attr attributes = { .qp_state = IB_QPS_RTS };

	refused(pair, "going from RESET to RTS", ib_modify_qp(pair->a.qp, &attributes, IB_QP_STATE | IB_QP_SQ_PSN));
}

/* Its numbers are 1 to 5 (volume 1, 11.2.5.2), and a port has none beyond its largest. */
static void path_mtu(struct pair *pair)
{
	enum ib_mtu good = pair->mtu, wrong[] = { 0, IB_MTU_4096 + 1, pair->a.port.max_mtu + 1 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		pair->mtu = wrong[i];
		if (!same(pair, "an MTU that there is not", -EINVAL, ready(&pair->a, pair->b.qp->qp_num, &pair->b, pair)))
			return;
	}
	pair->mtu = good;
	same(pair, "the port's MTU", 0, ready(&pair->a, pair->b.qp->qp_num, &pair->b, pair));
}

static int to_rts(struct side *side, const struct ib_qp_attr *given)
{
	struct ib_qp_attr attributes = *given;

	attributes.qp_state = IB_QPS_RTS;
	return ib_modify_qp(side->qp, &attributes, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
						   IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
}

/* An attribute that has one more than its most is refused, and one that has its most is taken. */
static void most_of(struct pair *pair, const struct ib_qp_attr *most, const struct ib_qp_attr *more)
{
	if (same(pair, "to INIT", 0, to_init(&pair->a, pair)) &&
	    same(pair, "to RTR", 0, to_ready_to_receive(&pair->a, pair->b.qp->qp_num, &pair->b, pair)) &&
	    same(pair, "one more", -EINVAL, to_rts(&pair->a, more)))
		same(pair, "the most", 0, to_rts(&pair->a, most));
}

static void time_out(struct pair *pair)
{
	most_of(pair, &(struct ib_qp_attr){ .timeout = 31 }, &(struct ib_qp_attr){ .timeout = 32 });
}

static void retries(struct pair *pair)
{
	most_of(pair, &(struct ib_qp_attr){ .retry_cnt = 7 }, &(struct ib_qp_attr){ .retry_cnt = 8 });
}

static void rnr_retries(struct pair *pair)
{
	most_of(pair, &(struct ib_qp_attr){ .rnr_retry = 7 }, &(struct ib_qp_attr){ .rnr_retry = 8 });
}

static void rnr_timer(struct pair *pair)
{
	most_of(pair, &(struct ib_qp_attr){ .min_rnr_timer = 31 }, &(struct ib_qp_attr){ .min_rnr_timer = 32 });
}

static void query(struct pair *pair)
{
	struct ib_qp_init_attr initial = {};
	struct ib_qp_attr found = {};
	int mask = IB_QP_STATE | IB_QP_DEST_QPN | IB_QP_PATH_MTU | IB_QP_CAP | IB_QP_AV | IB_QP_RETRY_CNT | IB_QP_PKEY_INDEX;

	if (same(pair, "asking", 0, ib_query_qp(pair->a.qp, &found, mask, &initial)) &&
	    same(pair, "the state", IB_QPS_RTS, found.qp_state) &&
	    same(pair, "the peer", pair->b.qp->qp_num, found.dest_qp_num) &&
	    same(pair, "the MTU", pair->mtu, found.path_mtu) && same(pair, "retries", 7, found.retry_cnt) &&
	    same(pair, "the P_Key's index", pair->a.pkey_index, found.pkey_index) && is_infiniband(&pair->a))
		same(pair, "the LID", pair->a.router_lid ?: pair->b.port.lid, rdma_ah_get_dlid(&found.ah_attr));
}

static const struct test tests[] = {
	{ "requests and receives in the state RESET", { .type = IB_QPT_RC, .reset = true }, in_reset },
	{ "requests in the state INIT", { .type = IB_QPT_RC, .deaf = true }, in_init },
	{ "a state that cannot be reached", { .type = IB_QPT_RC, .reset = true }, wrong_transition },
	{ "a path MTU that there is not", { .type = IB_QPT_RC, .reset = true }, path_mtu },
	{ "a time-out of more than 31", { .type = IB_QPT_RC, .reset = true }, time_out },
	{ "more than 7 retries", { .type = IB_QPT_RC, .reset = true }, retries },
	{ "more than 7 RNR retries", { .type = IB_QPT_RC, .reset = true }, rnr_retries },
	{ "an RNR timer of more than 31", { .type = IB_QPT_RC, .reset = true }, rnr_timer },
	{ "a bad request in a list", { .type = IB_QPT_RC }, bad_in_list },
	{ "a receive of too many pieces", { .type = IB_QPT_RC }, too_many_pieces },
	{ "inline data longer than the device takes", { .type = IB_QPT_RC }, too_long_inline },
	{ "receives for a full queue", { .type = IB_QPT_RC }, full_queue },
	{ "requests for a full queue", { .type = IB_QPT_RC, .deaf = true }, full_send_queue },
	{ "an RDMA READ on an unreliable connection", { .type = IB_QPT_UC }, wrong_operation },
	{ "what a queue pair was given can be asked for", { .type = IB_QPT_RC }, query },
};

GROUP(refused, tests);
