// SPDX-License-Identifier: GPL-2.0-only
/* Posting requests and receives, and the memory that they are about. */

#include "verbs.h"

u64 address_of(const struct side *side, u32 offset)
{
	return sg_dma_address(&side->list) + offset;
}

void fill(struct side *side, u32 offset, u32 length, u8 seed)
{
	u32 i;

	for (i = 0; i < length; i++)
		side->memory[offset + i] = seed + i + i / 251;
}

bool has(struct pair *pair, struct side *side, u32 offset, u32 length, u8 seed)
{
	u32 i;

	for (i = 0; i < length; i++) {
		u8 expected = seed + i + i / 251;

		if (side->memory[offset + i] == expected)
			continue;
		fail(pair, "%s: byte %u of %u: expected %#x, found %#x", side->name, i, length, expected, side->memory[offset + i]);
		return false;
	}
	return true;
}

static void describe_pieces(struct side *side, const struct request *request, struct posting *posting)
{
	u32 first = request->first_piece ?: request->length;
	u32 lkey = request->lkey ?: side->pd->local_dma_lkey;

	posting->pieces[0] = (struct ib_sge){ address_of(side, request->offset), first, lkey };
	posting->pieces[1] = (struct ib_sge){ address_of(side, request->offset + first), request->length - first, lkey };
	posting->work.wr.sg_list = posting->pieces;
	posting->work.wr.num_sge = !!request->length + !!request->first_piece;
}

static void describe_remote(struct pair *pair, struct side *side, const struct request *request, union work *work)
{
	struct side *other = side == &pair->a ? &pair->b : &pair->a;
	u64 address = other->mr->iova + request->remote_offset;
	u32 rkey = request->rkey ?: other->mr->rkey;

	switch (request->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		work->rdma.remote_addr = address;
		work->rdma.rkey = rkey;
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		work->atomic.remote_addr = address;
		work->atomic.rkey = rkey;
		work->atomic.compare_add = request->opcode == IB_WR_ATOMIC_FETCH_AND_ADD ? request->add : request->compare;
		work->atomic.swap = request->swap;
		break;
	case IB_WR_REG_MR:
		work->reg.mr = request->mr;
		work->reg.key = request->mr->rkey;
		work->reg.access = request->access;
		break;
	default:
		break;
	}
	if (pair->setup->type == IB_QPT_UD) {
		work->ud.ah = side->ah;
		work->ud.remote_qpn = request->qpn ?: other->qp->qp_num;
		work->ud.remote_qkey = request->qkey ?: QKEY;
		work->ud.pkey_index = side->pkey_index;
	}
}

void describe(struct pair *pair, struct side *side, const struct request *request, struct posting *posting)
{
	memset(posting, 0, sizeof(*posting));
	describe_pieces(side, request, posting);
	describe_remote(pair, side, request, &posting->work);
	posting->work.wr.opcode = request->opcode;
	posting->work.wr.send_flags = request->flags;
	posting->work.wr.wr_id = side->posted++;
	if (request->invalidate)
		posting->work.wr.ex.invalidate_rkey = request->invalidate;
	else
		posting->work.wr.ex.imm_data = request->immediate;
}

int try_post(struct pair *pair, struct side *side, const struct request *request)
{
	const struct ib_send_wr *bad;
	struct posting posting;

	describe(pair, side, request, &posting);
	return ib_post_send(side->qp, &posting.work.wr, &bad);
}

bool post(struct pair *pair, struct side *side, const struct request *request)
{
	return same(pair, "posting the request", 0, try_post(pair, side, request));
}

bool post_all(struct pair *pair, struct side *side, const struct request *requests, unsigned int count)
{
	const struct ib_send_wr *bad;
	struct posting *postings;
	unsigned int i;
	int error = -ENOMEM;

	postings = kcalloc(count, sizeof(*postings), GFP_KERNEL);
	if (postings) {
		for (i = 0; i < count; i++) {
			describe(pair, side, &requests[i], &postings[i]);
			if (i)
				postings[i - 1].work.wr.next = &postings[i].work.wr;
		}
		error = ib_post_send(side->qp, &postings[0].work.wr, &bad);
		kfree(postings);
	}
	return same(pair, "posting the list of requests", 0, error);
}

int try_receive(struct side *side, u32 offset, u32 length, u32 lkey)
{
	struct ib_sge piece = { address_of(side, offset), length, lkey };
	struct ib_recv_wr request = { .sg_list = &piece, .num_sge = !!length, .wr_id = side->posted++ };
	const struct ib_recv_wr *bad;

	return side->srq ? ib_post_srq_recv(side->srq, &request, &bad) : ib_post_recv(side->qp, &request, &bad);
}

bool post_receive(struct pair *pair, struct side *side, u32 offset, u32 length)
{
	return same(pair, "posting the receive", 0, try_receive(side, offset, length, side->pd->local_dma_lkey));
}

/* A queue pair that is nobody's peer: requests that stay in the device need none. */
static struct ib_qp *make_local_queue_pair(struct side *side)
{
	struct ib_qp_init_attr attributes = {
		.send_cq = side->send_cq,
		.recv_cq = side->recv_cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
	};

	return ib_create_qp(side->pd, &attributes);
}

/* All of a side's memory, as the specification has it for memory of the kernel: a work request registers it. */
bool register_memory(struct pair *pair, struct side *side, struct ib_mr *mr, int access)
{
	const struct setup reliable = { .type = IB_QPT_RC };
	struct pair local = { .setup = &reliable, .mtu = IB_MTU_256 };
	struct side registrar = *side;
	struct request request = { .opcode = IB_WR_REG_MR, .flags = IB_SEND_SIGNALED, .mr = mr, .access = access };
	int error = ib_map_mr_sg(mr, &side->list, 1, NULL, PAGE_SIZE);

	if (!same(pair, "pages mapped", 1, error))
		return false;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	registrar.qp = make_local_queue_pair(side);
	if (IS_ERR(registrar.qp)) {
		fail(pair, "%s: no queue pair to register memory with: %ld", side->name, PTR_ERR(registrar.qp));
		return false;
	}
	local.a = registrar;
	local.b = registrar;
	error = ready(&registrar, 0x123456, &registrar, &local);
	if (error)
		fail(pair, "%s: the queue pair to register memory with does not get ready: %d", side->name, error);
	else if (post(&local, &registrar, &request) && sent(&local, &registrar, IB_WC_SUCCESS))
		;
	else
		fail(pair, "%s: registering memory: %s", side->name, local.failure);
	ib_destroy_qp(registrar.qp);
	return !failed(pair);
}
