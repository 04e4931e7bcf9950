// SPDX-License-Identifier: GPL-2.0-only
/* Queues: lists of requests, inline data, what is signalled, what notifies, shared receive queues. */

#include <linux/delay.h>

#include "verbs.h"

#define SIGNALED IB_SEND_SIGNALED

static void post_list(struct pair *pair)
{
	struct request requests[16] = {};
	unsigned int i;

	fill(&pair->a, OUTGOING, HALF, 1);
	for (i = 0; i < 16; i++) {
		requests[i] = (struct request){ .opcode = IB_WR_SEND, .flags = SIGNALED, .offset = i * 100, .length = 100 };
		if (!post_receive(pair, &pair->b, INCOMING + i * 100, 100))
			return;
	}
	if (!post_all(pair, &pair->a, requests, 16) || !sent_well(pair, &pair->a, 16))
		return;
	for (i = 0; i < 16; i++)
		if (!received(pair, &pair->b, 100, NULL))
			return;
	if (memcmp(pair->a.memory + OUTGOING, pair->b.memory + INCOMING, 1600))
		fail(pair, "the messages arrived with other bytes");
}

static void receive_list(struct pair *pair)
{
	struct ib_recv_wr receives[8] = {};
	struct ib_sge pieces[8];
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 64 };
	const struct ib_recv_wr *bad;
	struct ib_wc wc = {};
	unsigned int i;

	for (i = 0; i < 8; i++) {
		pieces[i] = (struct ib_sge){ address_of(&pair->b, INCOMING + i * 64), 64, pair->b.pd->local_dma_lkey };
		receives[i] = (struct ib_recv_wr){ .wr_id = 1000 + i, .sg_list = &pieces[i], .num_sge = 1,
						   .next = i < 7 ? &receives[i + 1] : NULL };
	}
	if (!same(pair, "posting the list of receives", 0, ib_post_recv(pair->b.qp, receives, &bad)))
		return;
	for (i = 0; i < 8; i++)
		if (!post(pair, &pair->a, &request) || !received(pair, &pair->b, 64, &wc) ||
		    !same(pair, "the receive that was used", 1000 + i, wc.wr_id) || !sent_well(pair, &pair->a, 1))
			return;
}

/* The memory may change as soon as the request has been posted. */
static void inline_data(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED | IB_SEND_INLINE, .length = 60,
				   .first_piece = 13 };
	struct posting posting;
	const struct ib_send_wr *bad;
	unsigned int i;

	fill(&pair->a, OUTGOING, 60, 21);
	if (!post_receive(pair, &pair->b, INCOMING, 60))
		return;
	describe(pair, &pair->a, &request, &posting);
	for (i = 0; i < 2; i++) {
		/* Inline, addresses are the kernel's, and keys mean nothing. */
		posting.pieces[i].addr = (uintptr_t)pair->a.memory + (i ? 13 : 0);
		posting.pieces[i].lkey = 0xbad;
	}
	if (!same(pair, "posting the request", 0, ib_post_send(pair->a.qp, &posting.work.wr, &bad)))
		return;
	fill(&pair->a, OUTGOING, 60, 99);
	if (received(pair, &pair->b, 60, NULL) && sent_well(pair, &pair->a, 1))
		has(pair, &pair->b, INCOMING, 60, 21);
}

static void longest_inline(struct pair *pair)
{
	u32 length = pair->a.inline_bytes;
	struct ib_sge piece = { .addr = (uintptr_t)pair->a.memory, .length = length + 1 };
	struct ib_send_wr longer = { .sg_list = &piece, .num_sge = 1, .opcode = IB_WR_SEND,
				      .send_flags = SIGNALED | IB_SEND_INLINE };
	struct ib_send_wr fitting = longer;
	const struct ib_send_wr *bad;

	pr_info("verbs_test: %s takes %u bytes inline\n", pair->a.device->name, length);
	fill(&pair->a, OUTGOING, length, 33);
	if (!post_receive(pair, &pair->b, INCOMING, length) ||
	    !same(pair, "a byte more", -EINVAL, ib_post_send(pair->a.qp, &longer, &bad)))
		return;
	piece.length = length;
	if (same(pair, "as many", 0, ib_post_send(pair->a.qp, &fitting, &bad)) &&
	    received(pair, &pair->b, length, NULL) && sent_well(pair, &pair->a, 1))
		has(pair, &pair->b, INCOMING, length, 33);
}

static void pieces(struct pair *pair)
{
	u32 length = 2 * mtu_bytes(pair) + 10;
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = length,
				   .first_piece = mtu_bytes(pair) - 5 };
	struct ib_sge parts[2] = {
		{ address_of(&pair->b, INCOMING), 7, pair->b.pd->local_dma_lkey },
		{ address_of(&pair->b, INCOMING + 7), length, pair->b.pd->local_dma_lkey },
	};
	struct ib_recv_wr receive = { .sg_list = parts, .num_sge = 2 };
	const struct ib_recv_wr *bad;

	fill(&pair->a, OUTGOING, length, 31);
	if (same(pair, "posting the receive", 0, ib_post_recv(pair->b.qp, &receive, &bad)) &&
	    post(pair, &pair->a, &request) && received(pair, &pair->b, length, NULL) && sent_well(pair, &pair->a, 1))
		has(pair, &pair->b, INCOMING, length, 31);
}

/* Of three requests only the last asks for a completion, and has the only one. */
static void unsignalled(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_WRITE, .length = 32, .remote_offset = INCOMING };
	struct ib_wc wc = {};
	u32 last;

	if (!post(pair, &pair->a, &request) || !post(pair, &pair->a, &request))
		return;
	request.flags = SIGNALED;
	last = pair->a.posted;
	if (post(pair, &pair->a, &request) && completed(pair, pair->a.send_cq, "the last request", &wc) &&
	    same(pair, "the status", IB_WC_SUCCESS, wc.status) && same(pair, "the request", last, wc.wr_id))
		nothing_completed(pair, pair->a.send_cq, "the others are not signalled");
}

/* The queue has room again for what was not signalled, once something after it has completed. */
static void unsignalled_rounds(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_WRITE, .length = 32, .remote_offset = INCOMING };
	unsigned int i;

	for (i = 1; i <= 4 * RING; i++) {
		request.flags = i % (RING / 2) ? 0 : SIGNALED;
		if (!post(pair, &pair->a, &request) || (request.flags && !sent_well(pair, &pair->a, 1)))
			return;
	}
}

static void signal_all(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_WRITE, .length = 32, .remote_offset = INCOMING };

	if (post(pair, &pair->a, &request) && post(pair, &pair->a, &request))
		sent_well(pair, &pair->a, 2);
}

static bool one_message(struct pair *pair, int flags)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED | flags, .length = 8 };

	return post_receive(pair, &pair->b, INCOMING, 8) && post(pair, &pair->a, &request) && sent_well(pair, &pair->a, 1);
}

/* The handler is called once, for the first completion. */
static void notification(struct pair *pair)
{
	int before = atomic_read(&pair->b.recv_notices);

	if (!same(pair, "asking for a notification", 0, ib_req_notify_cq(pair->b.recv_cq, IB_CQ_NEXT_COMP)) ||
	    !one_message(pair, 0) || !one_message(pair, 0) || !received(pair, &pair->b, 8, NULL) ||
	    !received(pair, &pair->b, 8, NULL))
		return;
	notified(pair, "notifications", before + 1);
}

/* A completion vector is a processor, as there are as many. */
static void vector(struct pair *pair)
{
	int last = pair->b.device->num_comp_vectors - 1;

	notification(pair);
	if (!failed(pair))
		same(pair, "the processor that was notified", last, READ_ONCE(pair->b.processor));
}

/* Only a message that is marked as solicited notifies. */
static void solicited(struct pair *pair)
{
	int before = atomic_read(&pair->b.recv_notices);

	if (!same(pair, "asking for a notification", 0, ib_req_notify_cq(pair->b.recv_cq, IB_CQ_SOLICITED)) ||
	    !one_message(pair, 0) || !received(pair, &pair->b, 8, NULL))
		return;
	msleep(50);
	if (!same(pair, "notifications of what is not solicited", before, atomic_read(&pair->b.recv_notices)) ||
	    !one_message(pair, IB_SEND_SOLICITED) || !received(pair, &pair->b, 8, NULL))
		return;
	notified(pair, "notifications of what is solicited", before + 1);
}

/* A caller that asks too late is told that there are completions. */
static void missed(struct pair *pair)
{
	if (!one_message(pair, 0))
		return;
	msleep(50);
	if (ib_req_notify_cq(pair->b.recv_cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) <= 0)
		fail(pair, "a completion that waits was not reported");
	else
		received(pair, &pair->b, 8, NULL);
}

static void shared_receive(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 3000 };
	unsigned int i;

	fill(&pair->a, OUTGOING, 3000, 12);
	for (i = 0; i < 8; i++)
		if (!post_receive(pair, &pair->b, INCOMING + i * 4096, 4096))
			return;
	for (i = 0; i < 8; i++)
		if (!post(pair, &pair->a, &request) || !sent_well(pair, &pair->a, 1) ||
		    !received(pair, &pair->b, 3000, NULL) || !has(pair, &pair->b, INCOMING + i * 4096, 3000, 12))
			return;
}

static void shared_limit(struct pair *pair)
{
	struct ib_srq_attr attributes = { .srq_limit = 2 };
	unsigned int i;

	for (i = 0; i < 4; i++)
		if (!post_receive(pair, &pair->b, INCOMING + i * 64, 64))
			return;
	if (!same(pair, "setting the limit", 0, ib_modify_srq(pair->b.srq, &attributes, IB_SRQ_LIMIT)))
		return;
	for (i = 0; i < 4; i++)
		if (!post(pair, &pair->a, &(struct request){ .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 64 }) ||
		    !sent_well(pair, &pair->a, 1) || !received(pair, &pair->b, 64, NULL))
			return;
	happened(pair, &pair->b, IB_EVENT_SRQ_LIMIT_REACHED);
}

/* The receives belong to the queue, so they are not flushed: the event tells that no more will be taken. */
static void shared_last(struct pair *pair)
{
	if (post_receive(pair, &pair->b, INCOMING, 64) && same(pair, "to the error state", 0, drop_to_error(&pair->b)) &&
	    happened(pair, &pair->b, IB_EVENT_QP_LAST_WQE_REACHED))
		nothing_completed(pair, pair->b.recv_cq, "the receive is the shared queue's");
}

/* It is in the error state already when it is set to it once more. */
static void shared_last_once(struct pair *pair)
{
	if (!same(pair, "to the error state", 0, drop_to_error(&pair->b)) ||
	    !happened(pair, &pair->b, IB_EVENT_QP_LAST_WQE_REACHED))
		return;
	clear_bit(IB_EVENT_QP_LAST_WQE_REACHED, &pair->b.events);
	if (!same(pair, "to the error state again", 0, drop_to_error(&pair->b)))
		return;
	msleep(50);
	if (test_bit(IB_EVENT_QP_LAST_WQE_REACHED, &pair->b.events))
		fail(pair, "the event came again");
}

/* What waits in the queues of a queue pair that is given up, or destroyed, touches nothing any more. */
static void destroy_busy(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_READ, .flags = SIGNALED, .offset = INCOMING, .length = HALF };
	unsigned int i;

	for (i = 0; i < RING / 2; i++)
		if (!post(pair, &pair->a, &request) || !post_receive(pair, &pair->a, INCOMING, 64))
			return;
}

/* Queues as large as the device promises, or as any consumer would want them. */
static void large(struct pair *pair)
{
	const struct ib_device_attr *promised = &pair->a.device->attrs;
	struct ib_cq_init_attr completions = { .cqe = min(promised->max_cqe, 1 << 17) };
	struct ib_qp_init_attr attributes = {
		.cap = {
			.max_send_wr = min(promised->max_qp_wr, 1 << 14),
			.max_recv_wr = min(promised->max_qp_wr, 1 << 14),
			.max_send_sge = promised->max_send_sge,
			.max_recv_sge = promised->max_recv_sge,
		},
		.qp_type = IB_QPT_RC,
	};
	struct ib_cq *cq = ib_create_cq(pair->a.device, NULL, NULL, NULL, &completions);
	struct ib_qp *qp;

	if (!same(pair, "making a completion queue", 0, PTR_ERR_OR_ZERO(cq)))
		return;
	attributes.send_cq = cq;
	attributes.recv_cq = cq;
	qp = ib_create_qp(pair->a.pd, &attributes);
	if (same(pair, "making a queue pair", 0, PTR_ERR_OR_ZERO(qp)))
		ib_destroy_qp(qp);
	ib_destroy_cq(cq);
}

static const struct test tests[] = {
	{ "a list of requests", { .type = IB_QPT_RC }, post_list },
	{ "a list of receives, used in their order", { .type = IB_QPT_RC }, receive_list },
	{ "inline data", { .type = IB_QPT_RC }, inline_data },
	{ "as much inline data as the device takes", { .type = IB_QPT_RC, .longest_inline = true }, longest_inline },
	{ "a message of pieces, into pieces", { .type = IB_QPT_RC }, pieces },
	{ "requests without a completion", { .type = IB_QPT_RC }, unsignalled },
	{ "more requests without a completion than the queue holds", { .type = IB_QPT_RC }, unsignalled_rounds },
	{ "a queue pair whose requests all complete", { .type = IB_QPT_RC, .signal_all = true }, signal_all },
	{ "a notification", { .type = IB_QPT_RC }, notification },
	{ "a notification on the processor of its completion vector", { .type = IB_QPT_RC, .last_vector = true }, vector },
	{ "a notification of what is solicited", { .type = IB_QPT_RC }, solicited },
	{ "asking for a notification too late", { .type = IB_QPT_RC }, missed },
	{ "a shared receive queue", { .type = IB_QPT_RC, .shared_receive = true }, shared_receive },
	{ "a shared receive queue's limit", { .type = IB_QPT_RC, .shared_receive = true }, shared_limit },
	{ "a shared receive queue's last receive", { .type = IB_QPT_RC, .shared_receive = true }, shared_last },
	{ "a shared receive queue's last datagram", { .type = IB_QPT_UD, .shared_receive = true }, shared_last },
	{ "a shared receive queue's last receive is told once", { .type = IB_QPT_RC, .shared_receive = true }, shared_last_once },
	{ "a shared receive queue's last datagram is told once", { .type = IB_QPT_UD, .shared_receive = true }, shared_last_once },
	{ "a queue pair that is destroyed at work", { .type = IB_QPT_RC }, destroy_busy },
	{ "queues as large as the device promises", { .type = IB_QPT_RC }, large },
};

GROUP(queue, tests);
