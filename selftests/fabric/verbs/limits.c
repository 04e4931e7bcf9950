// SPDX-License-Identifier: GPL-2.0-only
/* As many objects of a kind as the device promises can be made, and one more cannot. */

#include <linux/slab.h>

#include "verbs.h"

/* Of more than that, making all would take too long. */
#define MOST 8192

static bool tried_here(struct pair *pair, u32 promised)
{
	if (pair->a.device == pair->b.device && promised && promised <= MOST)
		return true;
	fail(pair, "it takes one device that promises 1 to %u", MOST);
	pair->left_out = true;
	return false;
}

static void shared_queues(struct pair *pair)
{
	u32 made = 0, promised = pair->a.device->attrs.max_srq;
	struct ib_srq_init_attr attributes = { .attr = { .max_wr = 1, .max_sge = 1 }, .srq_type = IB_SRQT_BASIC };
	struct ib_srq **queues, *another;

	if (!tried_here(pair, promised))
		return;
	queues = kvcalloc(promised, sizeof(*queues), GFP_KERNEL);
	if (!queues) {
		fail(pair, "no memory");
		return;
	}
	while (made < promised) {
		queues[made] = ib_create_srq(pair->a.pd, &attributes);
		if (IS_ERR(queues[made]))
			break;
		made++;
	}
	if (same(pair, "queues that were made", promised, made)) {
		another = ib_create_srq(pair->a.pd, &attributes);
		if (!IS_ERR(another))
			ib_destroy_srq(another);
		same(pair, "one more", -ENOMEM, PTR_ERR_OR_ZERO(another));
	}
	/* A queue that is gone makes room for another. */
	if (made)
		ib_destroy_srq(queues[--made]);
	if (!failed(pair)) {
		another = ib_create_srq(pair->a.pd, &attributes);
		if (same(pair, "one in the place of another", 0, PTR_ERR_OR_ZERO(another)))
			queues[made++] = another;
	}
	while (made)
		ib_destroy_srq(queues[--made]);
	kvfree(queues);
}

static struct ib_qp *make_member(struct pair *pair)
{
	struct ib_qp_init_attr attributes = {
		.send_cq = pair->a.send_cq,
		.recv_cq = pair->a.recv_cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IB_QPT_UD,
	};

	return ib_create_qp(pair->a.pd, &attributes);
}

static void group_members(struct pair *pair)
{
	union ib_gid group = { .raw = { 0xff, 0x12, 0xa0, 0x1b, [14] = 0x12, [15] = 0x35 } };
	u32 made, attached, promised = pair->a.device->attrs.max_mcast_qp_attach;
	const u16 lid = 0xc124;
	struct ib_qp **members;

	if (!tried_here(pair, promised))
		return;
	members = kvcalloc(promised + 1, sizeof(*members), GFP_KERNEL);
	if (!members) {
		fail(pair, "no memory");
		return;
	}
	for (made = 0; made <= promised; made++) {
		members[made] = make_member(pair);
		if (!same(pair, "making a queue pair", 0, PTR_ERR_OR_ZERO(members[made])))
			break;
	}
	for (attached = 0; attached < made && attached < promised; attached++)
		if (!same(pair, "attaching a member", 0, ib_attach_mcast(members[attached], &group, lid)))
			break;
	if (!failed(pair))
		same(pair, "attaching one more", -ENOMEM, ib_attach_mcast(members[promised], &group, lid));
	while (attached)
		ib_detach_mcast(members[--attached], &group, lid);
	while (made)
		ib_destroy_qp(members[--made]);
	kvfree(members);
}

static const struct test tests[] = {
	{ "as many shared receive queues as the device promises, and no more", { .type = IB_QPT_UD }, shared_queues },
	{ "as many members of a group as the device promises, and no more", { .type = IB_QPT_UD }, group_members },
};

GROUP(limits, tests);
