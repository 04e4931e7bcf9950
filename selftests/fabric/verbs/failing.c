// SPDX-License-Identifier: GPL-2.0-only
/*
 * What fails on a reliable connection: the status that the requester's completion has, what becomes of both queue pairs,
 * and that nothing was changed (volume 1, 9.9 and 11.6.2).
 */

#include "verbs.h"

#define SIGNALED IB_SEND_SIGNALED
#define BEYOND (MEMORY - 8)

/* The request fails with that status, the one behind it is flushed, and the queue pair is in the error state. */
static bool fails_here(struct pair *pair, struct request *request, enum ib_wc_status status)
{
	struct request behind = { .opcode = IB_WR_RDMA_WRITE, .flags = SIGNALED, .length = 8, .remote_offset = OUTGOING };

	request->flags |= SIGNALED;
	fill(&pair->b, OUTGOING, 8, 1);
	return post(pair, &pair->a, request) && post(pair, &pair->a, &behind) && sent(pair, &pair->a, status) &&
	       sent(pair, &pair->a, IB_WC_WR_FLUSH_ERR) && reached(pair, &pair->a, IB_QPS_ERR);
}

/* And the one behind it had no effect. */
static bool fails(struct pair *pair, struct request *request, enum ib_wc_status status)
{
	return fails_here(pair, request, status) && has(pair, &pair->b, OUTGOING, 8, 1);
}

/* And so is the responder's, with a receive flushed that nobody used. */
static bool fails_on_both(struct pair *pair, struct request *request, enum ib_wc_status status)
{
	return post_receive(pair, &pair->b, INCOMING, HALF) && fails(pair, request, status) &&
	       reached(pair, &pair->b, IB_QPS_ERR) && received_with(pair, &pair->b, IB_WC_WR_FLUSH_ERR);
}

static void write_wrong_key(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_WRITE, .length = 3000, .remote_offset = INCOMING,
				   .rkey = pair->b.mr->rkey ^ 0x40 };

	fill(&pair->b, INCOMING, 3000, 7);
	if (fails_on_both(pair, &request, IB_WC_REM_ACCESS_ERR))
		has(pair, &pair->b, INCOMING, 3000, 7);
}

static void write_beyond(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_WRITE, .length = 9, .remote_offset = BEYOND };

	fill(&pair->b, BEYOND, 8, 7);
	if (fails_on_both(pair, &request, IB_WC_REM_ACCESS_ERR))
		has(pair, &pair->b, BEYOND, 8, 7);
}

static void read_wrong_key(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_READ, .offset = INCOMING, .length = 3000,
				   .rkey = pair->b.mr->rkey ^ 0x40 };

	fill(&pair->a, INCOMING, 3000, 7);
	if (fails_on_both(pair, &request, IB_WC_REM_ACCESS_ERR))
		has(pair, &pair->a, INCOMING, 3000, 7);
}

static void read_beyond(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_READ, .offset = INCOMING, .length = 9, .remote_offset = BEYOND };

	fails_on_both(pair, &request, IB_WC_REM_ACCESS_ERR);
}

static void atomic_wrong_key(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_ATOMIC_FETCH_AND_ADD, .offset = INCOMING, .length = 8, .add = 1,
				   .remote_offset = INCOMING, .rkey = pair->b.mr->rkey ^ 0x40 };

	fill(&pair->b, INCOMING, 8, 3);
	if (fails_on_both(pair, &request, IB_WC_REM_ACCESS_ERR))
		has(pair, &pair->b, INCOMING, 8, 3);
}

/* A device may refuse it at once. */
static void atomic_misaligned(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_ATOMIC_FETCH_AND_ADD, .offset = INCOMING, .length = 8, .add = 1,
				   .remote_offset = INCOMING + 4, .flags = SIGNALED };

	fill(&pair->b, INCOMING, 16, 3);
	if (!try_post(pair, &pair->a, &request))
		sent(pair, &pair->a, IB_WC_REM_INV_REQ_ERR);
	has(pair, &pair->b, INCOMING, 16, 3);
}

static void write_forbidden(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_WRITE, .length = 8, .remote_offset = INCOMING };

	fill(&pair->b, INCOMING, 8, 3);
	if (fails_on_both(pair, &request, IB_WC_REM_ACCESS_ERR))
		has(pair, &pair->b, INCOMING, 8, 3);
}

static void read_forbidden(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_READ, .offset = INCOMING, .length = 8 };

	fails_on_both(pair, &request, IB_WC_REM_ACCESS_ERR);
}

static void atomic_forbidden(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_ATOMIC_FETCH_AND_ADD, .offset = INCOMING, .length = 8, .add = 1,
				   .remote_offset = INCOMING };

	fails_on_both(pair, &request, IB_WC_REM_ACCESS_ERR);
}

/* An operation that the receiving queue pair does not support (volume 1, 11.6.2, Remote Invalid Request Error). */
static void unsupported(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_WRITE, .length = 8, .remote_offset = INCOMING };

	if (pair->setup->forbidden_by_queue_pair == IB_ACCESS_REMOTE_READ)
		request = (struct request){ .opcode = IB_WR_RDMA_READ, .offset = INCOMING, .length = 8 };
	fill(&pair->b, INCOMING, 8, 3);
	if (fails_on_both(pair, &request, IB_WC_REM_INV_REQ_ERR))
		has(pair, &pair->b, INCOMING, 8, 3);
}

static void events(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_WRITE, .length = 8, .rkey = pair->b.mr->rkey ^ 0x40 };

	if (fails(pair, &request, IB_WC_REM_ACCESS_ERR))
		happened(pair, &pair->b, IB_EVENT_QP_ACCESS_ERR);
}

static void wrong_local_key(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .length = 8, .lkey = pair->a.mr->lkey ^ 0x40 };

	fails(pair, &request, IB_WC_LOC_PROT_ERR);
}

/* What is read cannot be put where the request says; what is behind it may have been under way by then. */
static void wrong_local_key_of_read(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_READ, .offset = INCOMING, .length = 8,
				   .lkey = pair->a.mr->lkey ^ 0x40 };

	fails_here(pair, &request, IB_WC_LOC_PROT_ERR);
}

static void wrong_key_of_receive(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .length = 8 };

	if (same(pair, "posting the receive", 0, try_receive(&pair->b, INCOMING, 8, pair->b.mr->lkey ^ 0x40)) &&
	    fails(pair, &request, IB_WC_REM_OP_ERR) && received_with(pair, &pair->b, IB_WC_LOC_PROT_ERR))
		reached(pair, &pair->b, IB_QPS_ERR);
}

static bool too_long(struct pair *pair, u32 length, u32 room)
{
	struct request request = { .opcode = IB_WR_SEND, .length = length };

	return post_receive(pair, &pair->b, INCOMING, room) && fails(pair, &request, IB_WC_REM_INV_REQ_ERR) &&
	       received_with(pair, &pair->b, IB_WC_LOC_LEN_ERR) && reached(pair, &pair->b, IB_QPS_ERR);
}

static void too_long_in_one_packet(struct pair *pair)
{
	too_long(pair, 65, 64);
}

static void too_long_in_several_packets(struct pair *pair)
{
	too_long(pair, 2 * mtu_bytes(pair) + 1, 2 * mtu_bytes(pair));
}

static void not_ready(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .length = 8 };

	if (fails(pair, &request, IB_WC_RNR_RETRY_EXC_ERR))
		same(pair, "the receiver's state", IB_QPS_RTS, state_of(&pair->b));
}

static void deaf(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .length = 8 };

	fails(pair, &request, IB_WC_RETRY_EXC_ERR);
}

static void strange_pkey(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .length = 8 };

	if (post_receive(pair, &pair->b, INCOMING, 8) && fails(pair, &request, IB_WC_RETRY_EXC_ERR))
		nothing_completed(pair, pair->b.recv_cq, "the sender is of another partition");
}

static void unused_pkey(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .length = 8 };

	if (fails(pair, &request, IB_WC_RETRY_EXC_ERR))
		no_bad_pkey(pair, &pair->b);
}

/* One that asks for no completion has one all the same. */
static void unsignalled(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_WRITE, .length = 8, .rkey = pair->b.mr->rkey ^ 0x40 };

	if (post(pair, &pair->a, &request))
		sent(pair, &pair->a, IB_WC_REM_ACCESS_ERR);
}

/* What waits when the state is set to error, and what is posted then. */
static void flushed(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 8 };
	unsigned int i;

	for (i = 0; i < 4; i++)
		if (!post_receive(pair, &pair->a, INCOMING, 64) || !post(pair, &pair->a, &request))
			return;
	if (!same(pair, "to the error state", 0, drop_to_error(&pair->a)) ||
	    !post_receive(pair, &pair->a, INCOMING, 64) || !post(pair, &pair->a, &request))
		return;
	for (i = 0; i < 5; i++)
		if (!received_with(pair, &pair->a, IB_WC_WR_FLUSH_ERR) || !sent(pair, &pair->a, IB_WC_WR_FLUSH_ERR))
			return;
}

/* From the error state to RESET, and connected again: it works as a new one. */
static void used_again(struct pair *pair)
{
	struct ib_qp_attr reset = { .qp_state = IB_QPS_RESET };
	struct request wrong = { .opcode = IB_WR_RDMA_WRITE, .length = 8, .rkey = pair->b.mr->rkey ^ 0x40 };
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 100 };

	if (!fails(pair, &wrong, IB_WC_REM_ACCESS_ERR) || !reached(pair, &pair->b, IB_QPS_ERR) ||
	    !same(pair, "a to RESET", 0, ib_modify_qp(pair->a.qp, &reset, IB_QP_STATE)) ||
	    !same(pair, "b to RESET", 0, ib_modify_qp(pair->b.qp, &reset, IB_QP_STATE)) ||
	    !same(pair, "a to RTS", 0, ready(&pair->a, pair->b.qp->qp_num, &pair->b, pair)) ||
	    !same(pair, "b to RTS", 0, ready(&pair->b, pair->a.qp->qp_num, &pair->a, pair)))
		return;
	fill(&pair->a, OUTGOING, 100, 44);
	if (post_receive(pair, &pair->b, INCOMING, 100) && post(pair, &pair->a, &request) &&
	    sent_well(pair, &pair->a, 1) && received(pair, &pair->b, 100, NULL))
		has(pair, &pair->b, INCOMING, 100, 44);
}

static const struct test tests[] = {
	{ "a WRITE with a wrong R_Key", { .type = IB_QPT_RC }, write_wrong_key },
	{ "a WRITE beyond the memory", { .type = IB_QPT_RC }, write_beyond },
	{ "a WRITE into memory not for it",
	  { .type = IB_QPT_RC, .forbidden_by_memory = IB_ACCESS_REMOTE_WRITE }, write_forbidden },
	{ "a READ with a wrong R_Key", { .type = IB_QPT_RC }, read_wrong_key },
	{ "a READ beyond the memory", { .type = IB_QPT_RC }, read_beyond },
	{ "a READ of memory not for it",
	  { .type = IB_QPT_RC, .forbidden_by_memory = IB_ACCESS_REMOTE_READ }, read_forbidden },
	{ "an atomic operation with a wrong R_Key", { .type = IB_QPT_RC }, atomic_wrong_key },
	{ "an atomic operation on memory not for it",
	  { .type = IB_QPT_RC, .forbidden_by_memory = IB_ACCESS_REMOTE_ATOMIC }, atomic_forbidden },
	{ "an atomic operation across 8 bytes' bounds", { .type = IB_QPT_RC }, atomic_misaligned },
	{ "a WRITE that the queue pair does not support",
	  { .type = IB_QPT_RC, .forbidden_by_queue_pair = IB_ACCESS_REMOTE_WRITE }, unsupported },
	{ "a READ that the queue pair does not support",
	  { .type = IB_QPT_RC, .forbidden_by_queue_pair = IB_ACCESS_REMOTE_READ }, unsupported },
	{ "an access violation is an event to the responder", { .type = IB_QPT_RC }, events },
	{ "a SEND with a wrong L_Key", { .type = IB_QPT_RC }, wrong_local_key },
	{ "a READ with a wrong L_Key", { .type = IB_QPT_RC }, wrong_local_key_of_read },
	{ "a receive with a wrong L_Key", { .type = IB_QPT_RC }, wrong_key_of_receive },
	{ "a message of one packet longer than its receive", { .type = IB_QPT_RC }, too_long_in_one_packet },
	{ "a message of several packets longer than its receive", { .type = IB_QPT_RC }, too_long_in_several_packets },
	{ "nobody has a receive: RNR retries are exhausted", { .type = IB_QPT_RC, .few_rnr_retries = true }, not_ready },
	{ "nobody answers: retries are exhausted", { .type = IB_QPT_RC, .deaf = true, .few_retries = true }, deaf },
	{ "a wrong P_Key: retries are exhausted",
	  { .type = IB_QPT_RC, .strange_pkey = true, .few_retries = true }, strange_pkey },
	{ "without a P_Key: nothing is sent, and retries are exhausted",
	  { .type = IB_QPT_RC, .unused_pkey = true, .few_retries = true }, unused_pkey },
	{ "a request that asks for no completion", { .type = IB_QPT_RC }, unsignalled },
	{ "requests and receives are flushed", { .type = IB_QPT_RC, .deaf = true }, flushed },
	{ "a queue pair that failed is used again", { .type = IB_QPT_RC }, used_again },
};

GROUP(failing, tests);
