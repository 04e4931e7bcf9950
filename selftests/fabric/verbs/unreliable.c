// SPDX-License-Identifier: GPL-2.0-only
/* Unreliable connections: what arrives, and what the receiver drops without a word. */

#include <linux/bottom_half.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/workqueue.h>

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

/* What another processor posts. */
struct elsewhere {
	struct work_struct work;
	struct completion begun;
	struct completion done;
	struct pair *pair;
	const struct request *request;
	/* It is to post now, or will not be asked to. */
	bool go, stop;
	int error;
};

static void post_elsewhere(struct work_struct *work)
{
	struct elsewhere *elsewhere = container_of(work, struct elsewhere, work);

	complete(&elsewhere->begun);
	while (!smp_load_acquire(&elsewhere->go)) {
		if (READ_ONCE(elsewhere->stop))
			return;
		cpu_relax();
	}
	elsewhere->error = try_post(elsewhere->pair, &elsewhere->pair->a, elsewhere->request);
	complete(&elsewhere->done);
}

/* Posts a message, and has another processor, which waits for it, post the next one meanwhile. Returns whether it did. */
static bool post_meanwhile(struct pair *pair, const struct request *request, struct elsewhere *elsewhere, int *error)
{
	ktime_t deadline;
	bool done;

	/* What the first processor leaves to soft interrupts waits. */
	local_bh_disable();
	*error = try_post(pair, &pair->a, request);
	smp_store_release(&elsewhere->go, true);
	/* Long before this is over, anybody would take it for a lockup. */
	deadline = ktime_add_ms(ktime_get(), 5000);
	do {
		cpu_relax();
		done = completion_done(&elsewhere->done);
	} while (!done && ktime_before(ktime_get(), deadline));
	local_bh_enable();
	return done;
}

/* Posts a message on each of two processors. Returns whether the second was posted before the first one could arrive. */
static bool post_on_two(struct pair *pair, const struct request *requests, int *error)
{
	struct elsewhere elsewhere = { .pair = pair, .request = &requests[1] };
	bool meanwhile = false;

	INIT_WORK_ONSTACK(&elsewhere.work, post_elsewhere);
	init_completion(&elsewhere.begun);
	init_completion(&elsewhere.done);
	schedule_work_on(cpumask_any_but(cpu_online_mask, smp_processor_id()), &elsewhere.work);
	if (wait_for_completion_timeout(&elsewhere.begun, 30 * HZ))
		meanwhile = post_meanwhile(pair, &requests[0], &elsewhere, error);
	WRITE_ONCE(elsewhere.stop, true);
	flush_work(&elsewhere.work);
	destroy_work_on_stack(&elsewhere.work);
	*error = *error ?: elsewhere.error;
	return meanwhile;
}

/* On any network but InfiniBand's packets may overtake each other. */
static void two_processors(struct pair *pair)
{
	struct request requests[] = {
		{ .opcode = IB_WR_SEND_WITH_IMM, .flags = SIGNALED, .length = 8, .immediate = cpu_to_be32(1) },
		{ .opcode = IB_WR_SEND_WITH_IMM, .flags = SIGNALED, .length = 8, .immediate = cpu_to_be32(2) },
	};
	struct ib_wc wc = {};
	int error = 0;
	u32 i;

	if (num_online_cpus() < 2 || !is_infiniband(&pair->a)) {
		fail(pair, "it takes InfiniBand and two processors");
		pair->left_out = true;
		return;
	}
	for (i = 1; i <= 2; i++)
		if (!post_receive(pair, &pair->b, INCOMING, 64))
			return;
	if (!post_on_two(pair, requests, &error)) {
		fail(pair, "it takes a second processor that is free");
		pair->left_out = true;
		return;
	}
	if (!same(pair, "posting on two processors", 0, error) || !sent_well(pair, &pair->a, 2))
		return;
	for (i = 1; i <= 2; i++)
		if (!received(pair, &pair->b, 8, &wc) || !same(pair, "the message", i, be32_to_cpu(wc.ex.imm_data)))
			return;
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
	{ "messages of two processors arrive in their order", { .type = IB_QPT_UC }, two_processors },
};

GROUP(unreliable, tests);
