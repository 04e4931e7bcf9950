// SPDX-License-Identifier: GPL-2.0-only
/* Reliable connections: every operation, of every length that a packet's bounds make special. */

#include <linux/delay.h>

#include "verbs.h"

#define SIGNALED IB_SEND_SIGNALED
#define IMMEDIATE cpu_to_be32(0xdeadbeef)

/* Nothing, the least, around one packet, several, and as much as there is memory for. */
static unsigned int lengths(const struct pair *pair, u32 *lengths)
{
	u32 mtu = mtu_bytes(pair), all[] = { 0, 1, 3, mtu - 1, mtu, mtu + 1, 3 * mtu, 3 * mtu + 2, HALF };

	memcpy(lengths, all, sizeof(all));
	return ARRAY_SIZE(all);
}

static bool send_of(struct pair *pair, u32 length, enum ib_wr_opcode opcode)
{
	struct request request = { .opcode = opcode, .flags = SIGNALED, .length = length, .immediate = IMMEDIATE };
	struct ib_wc wc = {};
	bool immediate = opcode == IB_WR_SEND_WITH_IMM;

	fill(&pair->a, OUTGOING, length, length);
	fill(&pair->b, INCOMING, length, ~length);
	return post_receive(pair, &pair->b, INCOMING, HALF) && post(pair, &pair->a, &request) &&
	       received(pair, &pair->b, length, &wc) && same(pair, "the opcode", IB_WC_RECV, wc.opcode) &&
	       same(pair, "the flag of immediate data", immediate ? IB_WC_WITH_IMM : 0, wc.wc_flags & IB_WC_WITH_IMM) &&
	       (!immediate || same(pair, "immediate data", be32_to_cpu(IMMEDIATE), be32_to_cpu(wc.ex.imm_data))) &&
	       sent_well(pair, &pair->a, 1) && has(pair, &pair->b, INCOMING, length, length);
}

static bool write_of(struct pair *pair, u32 length, enum ib_wr_opcode opcode)
{
	struct request request = { .opcode = opcode, .flags = SIGNALED, .length = length, .immediate = IMMEDIATE,
				   .remote_offset = INCOMING };
	struct ib_wc wc = {};

	fill(&pair->a, OUTGOING, length, length);
	fill(&pair->b, INCOMING, length, ~length);
	if (opcode == IB_WR_RDMA_WRITE_WITH_IMM && !post_receive(pair, &pair->b, OUTGOING, 0))
		return false;
	if (!post(pair, &pair->a, &request) || !sent_well(pair, &pair->a, 1) || !has(pair, &pair->b, INCOMING, length, length))
		return false;
	return opcode == IB_WR_RDMA_WRITE ? nothing_completed(pair, pair->b.recv_cq, "a write is not received") :
		received(pair, &pair->b, length, &wc) && same(pair, "the opcode", IB_WC_RECV_RDMA_WITH_IMM, wc.opcode) &&
		same(pair, "the flag of immediate data", IB_WC_WITH_IMM, wc.wc_flags & IB_WC_WITH_IMM) &&
		same(pair, "immediate data", be32_to_cpu(IMMEDIATE), be32_to_cpu(wc.ex.imm_data));
}

static bool read_of(struct pair *pair, u32 length, enum ib_wr_opcode opcode)
{
	struct request request = { .opcode = opcode, .flags = SIGNALED, .offset = INCOMING, .length = length };

	fill(&pair->b, OUTGOING, length, length);
	fill(&pair->a, INCOMING, length, ~length);
	return post(pair, &pair->a, &request) && sent_well(pair, &pair->a, 1) && has(pair, &pair->a, INCOMING, length, length);
}

static void each_length(struct pair *pair, bool (*one)(struct pair *, u32, enum ib_wr_opcode), enum ib_wr_opcode opcode)
{
	u32 all[16];
	unsigned int i, count = lengths(pair, all);

	for (i = 0; i < count && one(pair, all[i], opcode); i++)
		;
}

static void send(struct pair *pair)
{
	each_length(pair, send_of, IB_WR_SEND);
}

static void send_immediate(struct pair *pair)
{
	each_length(pair, send_of, IB_WR_SEND_WITH_IMM);
}

static void write(struct pair *pair)
{
	each_length(pair, write_of, IB_WR_RDMA_WRITE);
}

static void write_immediate(struct pair *pair)
{
	each_length(pair, write_of, IB_WR_RDMA_WRITE_WITH_IMM);
}

static void read(struct pair *pair)
{
	each_length(pair, read_of, IB_WR_RDMA_READ);
}

/* Both ways at once, of every kind, so that acknowledgements and responses of both cross. */
static void both_ways(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_RDMA_READ, .flags = SIGNALED, .offset = INCOMING, .length = HALF / 2 };
	struct request back = { .opcode = IB_WR_RDMA_WRITE, .flags = SIGNALED, .length = HALF / 2,
				.remote_offset = INCOMING + HALF / 2 };
	unsigned int round;

	fill(&pair->b, OUTGOING, HALF / 2, 77);
	for (round = 0; round < 8; round++)
		if (!post(pair, &pair->a, &request) || !post(pair, &pair->b, &back))
			return;
	if (sent_well(pair, &pair->a, 8) && sent_well(pair, &pair->b, 8) && has(pair, &pair->a, INCOMING, HALF / 2, 77))
		has(pair, &pair->a, INCOMING + HALF / 2, HALF / 2, 77);
}

/* More of them than may be under way at once, each into a place of its own. */
static void many_reads(struct pair *pair)
{
	const u32 length = HALF / 32;
	struct request request = { .opcode = IB_WR_RDMA_READ, .flags = SIGNALED, .length = length };
	unsigned int i;

	fill(&pair->b, OUTGOING, HALF, 3);
	for (i = 0; i < 32; i++) {
		request.offset = INCOMING + i * length;
		request.remote_offset = i * length;
		if (!post(pair, &pair->a, &request))
			return;
	}
	if (sent_well(pair, &pair->a, 32))
		has(pair, &pair->a, INCOMING, HALF, 3);
}

/* What was read is sent on: the send has to wait for the read. */
static void fence(struct pair *pair)
{
	struct request requests[] = {
		{ .opcode = IB_WR_RDMA_READ, .offset = INCOMING, .length = HALF / 2 },
		{ .opcode = IB_WR_SEND, .flags = SIGNALED | IB_SEND_FENCE, .offset = INCOMING, .length = HALF / 2 },
	};

	fill(&pair->b, OUTGOING, HALF / 2, 55);
	if (post_receive(pair, &pair->b, INCOMING, HALF) && post_all(pair, &pair->a, requests, 2) &&
	    received(pair, &pair->b, HALF / 2, NULL) && sent_well(pair, &pair->a, 1))
		has(pair, &pair->b, INCOMING, HALF / 2, 55);
}

static u64 *word(struct side *side, u32 offset)
{
	return (u64 *)(side->memory + offset);
}

static bool atomic_of(struct pair *pair, struct request *request, u64 before, u64 after)
{
	request->flags = SIGNALED;
	request->offset = INCOMING;
	request->length = sizeof(u64);
	*word(&pair->b, 0) = before;
	*word(&pair->a, INCOMING) = 0;
	return post(pair, &pair->a, request) && sent_well(pair, &pair->a, 1) &&
	       same(pair, "the value before", before, *word(&pair->a, INCOMING)) &&
	       same(pair, "the value after", after, READ_ONCE(*word(&pair->b, 0)));
}

static void fetch_and_add(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_ATOMIC_FETCH_AND_ADD, .add = 0x100000002 };

	if (atomic_of(pair, &request, 40, 0x10000002a))
		atomic_of(pair, &request, U64_MAX, 0x100000001);
}

static void compare_and_swap(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_ATOMIC_CMP_AND_SWP, .compare = 0x1122334455667788, .swap = 99 };

	if (atomic_of(pair, &request, 0x1122334455667788, 99))
		atomic_of(pair, &request, 0x1122334455667789, 0x1122334455667789);
}

/* Every one counts, and counts once. */
static void many_atomics(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_ATOMIC_FETCH_AND_ADD, .flags = SIGNALED, .offset = INCOMING,
				   .length = sizeof(u64), .add = 1 };
	unsigned int round, i;

	*word(&pair->b, 0) = 0;
	for (round = 0; round < 8; round++) {
		for (i = 0; i < 32; i++)
			if (!post(pair, &pair->a, &request))
				return;
		if (!sent_well(pair, &pair->a, 32))
			return;
	}
	same(pair, "the sum", 8 * 32, READ_ONCE(*word(&pair->b, 0)));
}

/* Messages of all lengths in a row: each is received once and in order. */
static void many_sends(struct pair *pair)
{
	const u32 slot = HALF / 32;
	unsigned int round, i;

	fill(&pair->a, OUTGOING, HALF, 9);
	for (round = 0; round < 8; round++) {
		for (i = 0; i < 32; i++)
			if (!post_receive(pair, &pair->b, INCOMING + i * slot, slot))
				return;
		for (i = 0; i < 32; i++) {
			struct request request = { .opcode = IB_WR_SEND_WITH_IMM, .flags = SIGNALED, .offset = i * slot,
						   .length = slot - 7 * i, .immediate = cpu_to_be32(round * 32 + i) };

			if (!post(pair, &pair->a, &request))
				return;
		}
		for (i = 0; i < 32; i++) {
			struct ib_wc wc = {};

			if (!received(pair, &pair->b, slot - 7 * i, &wc) ||
			    !same(pair, "the order", round * 32 + i, be32_to_cpu(wc.ex.imm_data)))
				return;
			if (memcmp(pair->a.memory + i * slot, pair->b.memory + INCOMING + i * slot, wc.byte_len))
				fail(pair, "message %u arrived with other bytes", round * 32 + i);
		}
		if (!sent_well(pair, &pair->a, 32))
			return;
	}
}

/* A receive comes later than the message: it is sent again until then. */
static void late_receive(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 100 };

	fill(&pair->a, OUTGOING, 100, 8);
	if (!post(pair, &pair->a, &request))
		return;
	msleep(100);
	if (nothing_completed(pair, pair->a.send_cq, "nothing can be received yet") &&
	    post_receive(pair, &pair->b, INCOMING, 100) && received(pair, &pair->b, 100, NULL) &&
	    sent_well(pair, &pair->a, 1))
		has(pair, &pair->b, INCOMING, 100, 8);
}

static const struct test tests[] = {
	{ "SEND", { .type = IB_QPT_RC }, send },
	{ "SEND with a GRH", { .type = IB_QPT_RC, .with_grh = true }, send },
	{ "SEND with immediate data", { .type = IB_QPT_RC }, send_immediate },
	{ "RDMA WRITE", { .type = IB_QPT_RC }, write },
	{ "RDMA WRITE with immediate data", { .type = IB_QPT_RC }, write_immediate },
	{ "RDMA READ", { .type = IB_QPT_RC }, read },
	{ "fetch and add", { .type = IB_QPT_RC }, fetch_and_add },
	{ "compare and swap", { .type = IB_QPT_RC }, compare_and_swap },
	{ "many fetch and add", { .type = IB_QPT_RC }, many_atomics },
	{ "many SENDs", { .type = IB_QPT_RC }, many_sends },
	{ "many RDMA READs", { .type = IB_QPT_RC }, many_reads },
	{ "READ and WRITE from both sides at once", { .type = IB_QPT_RC }, both_ways },
	{ "a fence: a SEND waits for the READ before it", { .type = IB_QPT_RC }, fence },
	{ "packet sequence numbers begin again at 0: SEND", { .type = IB_QPT_RC, .psn = 0xfffffe }, send },
	{ "packet sequence numbers begin again at 0: READ", { .type = IB_QPT_RC, .psn = 0xfffffe }, read },
	{ "packet sequence numbers begin again at 0: fetch and add", { .type = IB_QPT_RC, .psn = 0xfffff0 }, many_atomics },
	{ "a receive that comes later than its message", { .type = IB_QPT_RC }, late_receive },
};

GROUP(reliable, tests);
