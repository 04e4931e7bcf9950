// SPDX-License-Identifier: GPL-2.0-only
/* Memory that is registered and invalidated by work requests. */

#include "verbs.h"

#define SIGNALED IB_SEND_SIGNALED
#define REMOTE (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

static bool write_with(struct pair *pair, u32 rkey, enum ib_wc_status status)
{
	struct request request = { .opcode = IB_WR_RDMA_WRITE, .flags = SIGNALED, .length = 64, .remote_offset = INCOMING,
				   .rkey = rkey };

	fill(&pair->a, OUTGOING, 64, 1);
	fill(&pair->b, INCOMING, 64, 2);
	return post(pair, &pair->a, &request) && sent(pair, &pair->a, status) &&
	       has(pair, &pair->b, INCOMING, 64, status == IB_WC_SUCCESS ? 1 : 2);
}

static bool local_invalidate(struct pair *pair, u32 key)
{
	struct request request = { .opcode = IB_WR_LOCAL_INV, .flags = SIGNALED, .invalidate = key };

	return post(pair, &pair->b, &request) && sent_well(pair, &pair->b, 1);
}

static void invalidate(struct pair *pair)
{
	if (write_with(pair, 0, IB_WC_SUCCESS) && local_invalidate(pair, pair->b.mr->rkey))
		write_with(pair, 0, IB_WC_REM_ACCESS_ERR);
}

/* On the connection itself, with a write that follows in the same list. */
static void register_again(struct pair *pair)
{
	u32 old = pair->b.mr->rkey;
	struct request request = { .opcode = IB_WR_REG_MR, .flags = SIGNALED, .mr = pair->b.mr, .access = REMOTE };

	if (!local_invalidate(pair, old) || !same(pair, "pages mapped", 1, ib_map_mr_sg(pair->b.mr, &pair->b.list, 1, NULL, PAGE_SIZE)))
		return;
	ib_update_fast_reg_key(pair->b.mr, ib_inc_rkey(old));
	if (post(pair, &pair->b, &request) && sent_well(pair, &pair->b, 1) && write_with(pair, 0, IB_WC_SUCCESS))
		write_with(pair, old, IB_WC_REM_ACCESS_ERR);
}

/* Its addresses would begin at 0, which a device need not have: it is refused, and the region is as it was. */
static void register_zero_based(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_REG_MR, .flags = SIGNALED, .mr = pair->b.mr, .access = REMOTE | IB_ZERO_BASED };

	if (same(pair, "posting the request", -EINVAL, try_post(pair, &pair->b, &request)))
		write_with(pair, 0, IB_WC_SUCCESS);
}

/* A part of the memory, beginning within a page: nothing outside can be written. */
static void register_part(struct pair *pair)
{
	const u32 offset = 100, length = PAGE_SIZE;
	struct request registration = { .opcode = IB_WR_REG_MR, .flags = SIGNALED, .access = REMOTE };
	struct request inside = { .opcode = IB_WR_RDMA_WRITE, .flags = SIGNALED, .length = length };
	struct scatterlist part;

	sg_init_one(&part, pair->b.memory + offset, length);
	if (ib_dma_map_sg(pair->b.device, &part, 1, DMA_BIDIRECTIONAL) != 1) {
		fail(pair, "the part cannot be mapped");
		return;
	}
	fill(&pair->a, OUTGOING, length + 1, 7);
	fill(&pair->b, OUTGOING, offset, 1);
	registration.mr = pair->b.mr;
	if (local_invalidate(pair, pair->b.mr->rkey) &&
	    same(pair, "pages mapped", 1, ib_map_mr_sg(pair->b.mr, &part, 1, NULL, PAGE_SIZE)) &&
	    post(pair, &pair->b, &registration) && sent_well(pair, &pair->b, 1) &&
	    post(pair, &pair->a, &inside) && sent_well(pair, &pair->a, 1) && has(pair, &pair->b, offset, length, 7)) {
		inside.length++;
		if (post(pair, &pair->a, &inside) && sent(pair, &pair->a, IB_WC_REM_ACCESS_ERR))
			has(pair, &pair->b, OUTGOING, offset, 1);
	}
	ib_dma_unmap_sg(pair->b.device, &part, 1, DMA_BIDIRECTIONAL);
}

/* Memory that the work request's key names on the own side. */
static void local_key(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 5000, .lkey = pair->a.mr->lkey };

	/* An MR's addresses are those of its registration. */
	if (!same(pair, "the registered address", address_of(&pair->a, 0), pair->a.mr->iova))
		return;
	fill(&pair->a, OUTGOING, 5000, 11);
	if (same(pair, "posting the receive", 0, try_receive(&pair->b, INCOMING, 5000, pair->b.mr->lkey)) &&
	    post(pair, &pair->a, &request) && sent_well(pair, &pair->a, 1) && received(pair, &pair->b, 5000, NULL))
		has(pair, &pair->b, INCOMING, 5000, 11);
}

static void send_invalidate(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND_WITH_INV, .flags = SIGNALED, .length = 10,
				   .invalidate = pair->b.mr->rkey };
	struct ib_wc wc = {};

	if (post_receive(pair, &pair->b, INCOMING, 10) && post(pair, &pair->a, &request) &&
	    sent_well(pair, &pair->a, 1) && received(pair, &pair->b, 10, &wc) &&
	    same(pair, "the flag of an invalidation", IB_WC_WITH_INVALIDATE, wc.wc_flags & IB_WC_WITH_INVALIDATE) &&
	    same(pair, "the key", pair->b.mr->rkey, wc.ex.invalidate_rkey))
		write_with(pair, 0, IB_WC_REM_ACCESS_ERR);
}

/* A key that does not exist: the request fails, and the queue pair with it. */
static void invalidate_wrong_key(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_LOCAL_INV, .flags = SIGNALED, .invalidate = pair->a.mr->rkey ^ 0x40 };
	struct ib_wc wc = {};

	if (!post(pair, &pair->a, &request) || !completed(pair, pair->a.send_cq, "the request", &wc))
		return;
	if (wc.status != IB_WC_MW_BIND_ERR && wc.status != IB_WC_LOC_QP_OP_ERR)
		fail(pair, "expected a memory management error, found '%s'", ib_wc_status_msg(wc.status));
	else
		reached(pair, &pair->a, IB_QPS_ERR);
}

static const struct test tests[] = {
	{ "LOCAL_INV: nothing can be written after it", { .type = IB_QPT_RC }, invalidate },
	{ "REG_MR again: the new key is good, the old one is not", { .type = IB_QPT_RC }, register_again },
	{ "REG_MR of a part: nothing beyond it can be written", { .type = IB_QPT_RC }, register_part },
	{ "REG_MR of a zero-based region is refused", { .type = IB_QPT_RC }, register_zero_based },
	{ "an L_Key of a REG_MR", { .type = IB_QPT_RC }, local_key },
	{ "SEND with invalidate: nothing can be written after it", { .type = IB_QPT_RC }, send_invalidate },
	{ "LOCAL_INV of a key that does not exist", { .type = IB_QPT_RC }, invalidate_wrong_key },
};

GROUP(memory, tests);
