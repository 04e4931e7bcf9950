// SPDX-License-Identifier: GPL-2.0-only
/* Unreliable connections: what arrives, and what the receiver drops without a word. */

#include <linux/delay.h>

#include "verbs.h"

#define SIGNALED IB_SEND_SIGNALED

static bool send_of(struct pair *pair, u32 length)
{
	struct request request = { .opcode = IB_WR_SEND_WITH_IMM, .flags = SIGNALED, .length = length,
				   .immediate = cpu_to_be32(length) };
	struct ib_wc wc = {};

	fill(&pair->a, OUTGOING, length, length);
	fill(&pair->b, INCOMING, length, ~length);
	return post_receive(pair, &pair->b, INCOMING, HALF) && post(pair, &pair->a, &request) &&
	       sent_well(pair, &pair->a, 1) && received(pair, &pair->b, length, &wc) &&
	       same(pair, "immediate data", length, be32_to_cpu(wc.ex.imm_data)) &&
	       has(pair, &pair->b, INCOMING, length, length);
}

static void send(struct pair *pair)
{
	u32 mtu = mtu_bytes(pair), lengths[] = { 0, 1, mtu, mtu + 1, 3 * mtu + 2 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths) && send_of(pair, lengths[i]); i++)
		;
}

/* The write with immediate data after it tells that it has arrived, if it has. */
static bool write_of(struct pair *pair, u32 length, u32 rkey)
{
	struct request requests[] = {
		{ .opcode = IB_WR_RDMA_WRITE, .flags = SIGNALED, .length = length, .remote_offset = INCOMING, .rkey = rkey },
		{ .opcode = IB_WR_RDMA_WRITE_WITH_IMM, .flags = SIGNALED, .length = 4, .remote_offset = OUTGOING },
	};

	fill(&pair->a, OUTGOING, length, length);
	fill(&pair->b, INCOMING, length, ~length);
	return post_receive(pair, &pair->b, OUTGOING, 0) && post(pair, &pair->a, &requests[0]) &&
	       post(pair, &pair->a, &requests[1]) && sent_well(pair, &pair->a, 2) && received(pair, &pair->b, 4, NULL);
}

static void write(struct pair *pair)
{
	u32 mtu = mtu_bytes(pair), lengths[] = { 1, mtu, mtu + 1, 3 * mtu + 2 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths) && write_of(pair, lengths[i], 0); i++)
		if (!has(pair, &pair->b, INCOMING, lengths[i], lengths[i]))
			return;
}

static void write_wrong_key(struct pair *pair)
{
	u32 length = 2 * mtu_bytes(pair);

	if (write_of(pair, length, pair->b.mr->rkey ^ 0x40))
		has(pair, &pair->b, INCOMING, length, ~length);
}

static void write_forbidden(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_WRITE, .flags = SIGNALED, .length = 8, .remote_offset = OUTGOING };

	fill(&pair->b, OUTGOING, 8, 4);
	if (post(pair, &pair->a, &request) && sent_well(pair, &pair->a, 1) && send_of(pair, 100))
		has(pair, &pair->b, OUTGOING, 8, 4);
}

/* A message for which there is no receive is lost; the next one is not. */
static void no_receive(struct pair *pair)
{
	struct request lost = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 3 * mtu_bytes(pair) };

	if (post(pair, &pair->a, &lost) && sent_well(pair, &pair->a, 1)) {
		msleep(100);
		send_of(pair, 100);
	}
}

static const struct test tests[] = {
	{ "SEND with immediate data", { .type = IB_QPT_UC }, send },
	{ "SEND with a GRH", { .type = IB_QPT_UC, .with_grh = true }, send },
	{ "RDMA WRITE, alone and with immediate data", { .type = IB_QPT_UC }, write },
	{ "packet sequence numbers begin again at 0", { .type = IB_QPT_UC, .psn = 0xfffffe }, send },
	{ "a WRITE with a wrong R_Key changes nothing", { .type = IB_QPT_UC }, write_wrong_key },
	{ "a WRITE where none is allowed is dropped",
	  { .type = IB_QPT_UC, .forbidden_by_queue_pair = IB_ACCESS_REMOTE_WRITE }, write_forbidden },
	{ "a message without a receive is lost, the next one is not", { .type = IB_QPT_UC }, no_receive },
};

GROUP(unreliable, tests);
