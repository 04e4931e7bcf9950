// SPDX-License-Identifier: GPL-2.0-only
/* Making and ending the pair of queue pairs that a test has. */

#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "verbs.h"

/*
 * 4.096 us times 2 to the power of this: 268 ms, so that a machine that is busy with something else does not exhaust the
 * retries; or 4 ms for who is to give up soon.
 */
#define TIMEOUT 16
#define SHORT_TIMEOUT 10
#define RETRIES 7
#define FEW_RETRIES 1
#define ALL_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

static void happens(struct ib_event *event, void *context)
{
	struct side *side = context;

	set_bit(event->event, &side->events);
}

static void send_notice(struct ib_cq *queue, void *context)
{
	atomic_inc(&((struct side *)context)->send_notices);
}

static void recv_notice(struct ib_cq *queue, void *context)
{
	struct side *side = context;

	WRITE_ONCE(side->processor, raw_smp_processor_id());
	atomic_inc(&side->recv_notices);
}

bool is_infiniband(const struct side *side)
{
	return rdma_protocol_ib(side->device, 1);
}

/* On Ethernet the last GID is the one of an IP address rather than of the link alone. */
static int find_address(struct side *side)
{
	const struct ib_gid_attr *attribute;
	int i;

	for (i = is_infiniband(side) ? 0 : side->port.gid_tbl_len - 1; i >= 0; i--) {
		attribute = rdma_get_gid_attr(side->device, 1, i);
		if (IS_ERR(attribute))
			continue;
		side->gid = attribute->gid;
		side->gid_index = i;
		rdma_put_gid_attr(attribute);
		return 0;
	}
	return -ENOENT;
}

static void address(struct side *from, const struct side *to, bool with_grh, struct rdma_ah_attr *attributes)
{
	attributes->type = rdma_ah_find_type(from->device, 1);
	rdma_ah_set_port_num(attributes, 1);
	if (is_infiniband(from))
		rdma_ah_set_dlid(attributes, from->router_lid ?: to->port.lid);
	if (with_grh || !is_infiniband(from) || from->router_lid)
		rdma_ah_set_grh(attributes, (union ib_gid *)&to->gid, 0, from->gid_index, 64, 0);
	if (!is_infiniband(from)) {
		const struct ib_gid_attr *attribute = rdma_get_gid_attr(to->device, 1, to->gid_index);

		if (!IS_ERR(attribute)) {
			rdma_read_gid_l2_fields(attribute, NULL, attributes->roce.dmac);
			rdma_put_gid_attr(attribute);
		}
	}
}

int make_handle(struct side *from, const struct side *to, bool with_grh)
{
	struct rdma_ah_attr attributes = {};
	struct ib_ah *ah;

	address(from, to, with_grh, &attributes);
	ah = rdma_create_ah(from->pd, &attributes, RDMA_CREATE_AH_SLEEPABLE);
	if (IS_ERR(ah))
		return PTR_ERR(ah);
	if (from->ah)
		rdma_destroy_ah(from->ah, RDMA_DESTROY_AH_SLEEPABLE);
	from->ah = ah;
	return 0;
}

int to_init(struct side *side, const struct pair *pair)
{
	struct ib_qp_attr attributes = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.pkey_index = side->pkey_index,
		.qkey = QKEY,
		.qp_access_flags = ALL_ACCESS & ~pair->setup->forbidden_by_queue_pair,
	};
	int last = pair->setup->type == IB_QPT_UD ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS;

	return ib_modify_qp(side->qp, &attributes, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | last);
}

int to_ready_to_receive(struct side *side, u32 peer_qpn, const struct side *peer, const struct pair *pair)
{
	struct ib_qp_attr attributes = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = pair->mtu,
		.dest_qp_num = peer_qpn,
		.rq_psn = pair->setup->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
	};
	int mask = IB_QP_STATE;

	if (pair->setup->type != IB_QPT_UD) {
		address(side, peer, pair->setup->with_grh, &attributes.ah_attr);
		mask |= IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;
	}
	if (pair->setup->type == IB_QPT_RC)
		mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	return ib_modify_qp(side->qp, &attributes, mask);
}

static int to_ready_to_send(struct side *side, const struct pair *pair)
{
	const struct setup *setup = pair->setup;
	struct ib_qp_attr attributes = {
		.qp_state = IB_QPS_RTS,
		.sq_psn = setup->psn,
		.timeout = setup->few_retries ? SHORT_TIMEOUT : TIMEOUT,
		.retry_cnt = setup->few_retries ? FEW_RETRIES : RETRIES,
		.rnr_retry = setup->few_rnr_retries ? FEW_RETRIES : RETRIES,
		.max_rd_atomic = 4,
	};
	int mask = IB_QP_STATE | IB_QP_SQ_PSN;

	if (setup->type == IB_QPT_RC)
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC;
	return ib_modify_qp(side->qp, &attributes, mask);
}

int ready(struct side *side, u32 peer_qpn, const struct side *peer, const struct pair *pair)
{
	return to_init(side, pair) ?: to_ready_to_receive(side, peer_qpn, peer, pair) ?: to_ready_to_send(side, pair);
}

int drop_to_error(struct side *side)
{
	struct ib_qp_attr attributes = { .qp_state = IB_QPS_ERR };

	return ib_modify_qp(side->qp, &attributes, IB_QP_STATE);
}

enum ib_qp_state state_of(struct side *side)
{
	struct ib_qp_init_attr initial = {};
	struct ib_qp_attr attributes = {};

	return ib_query_qp(side->qp, &attributes, IB_QP_STATE, &initial) ? IB_QPS_RESET : attributes.qp_state;
}

static int make_memory(struct side *side)
{
	side->memory = kzalloc(MEMORY, GFP_KERNEL);
	if (!side->memory)
		return -ENOMEM;
	sg_init_one(&side->list, side->memory, MEMORY);
	if (ib_dma_map_sg(side->device, &side->list, 1, DMA_BIDIRECTIONAL) != 1)
		return -EIO;
	side->mapped = true;
	side->mr = ib_alloc_mr(side->pd, IB_MR_TYPE_MEM_REG, MEMORY / PAGE_SIZE);
	return PTR_ERR_OR_ZERO(side->mr);
}

static int make_queues(struct side *side, const struct setup *setup)
{
	struct ib_cq_init_attr completions = {
		.cqe = 4 * RING,
		.comp_vector = setup->last_vector ? side->device->num_comp_vectors - 1 : 0,
	};
	struct ib_srq_init_attr shared = {
		.event_handler = happens,
		.srq_context = side,
		.attr = { .max_wr = RING, .max_sge = PIECES },
		.srq_type = IB_SRQT_BASIC,
	};

	side->send_cq = ib_create_cq(side->device, send_notice, happens, side, &completions);
	if (IS_ERR(side->send_cq))
		return PTR_ERR(side->send_cq);
	side->recv_cq = ib_create_cq(side->device, recv_notice, happens, side, &completions);
	if (IS_ERR(side->recv_cq))
		return PTR_ERR(side->recv_cq);
	side->srq = setup->shared_receive ? ib_create_srq(side->pd, &shared) : NULL;
	return PTR_ERR_OR_ZERO(side->srq);
}

/* No attribute of a device says how much it takes: it is what a queue pair can be made with. */
static struct ib_qp *create_longest_inline(struct side *side, struct ib_qp_init_attr *attributes)
{
	u32 possible = 0, impossible = HALF;

	while (impossible - possible > 1) {
		u32 middle = (possible + impossible) / 2;
		struct ib_qp *qp;

		attributes->cap.max_inline_data = middle;
		qp = ib_create_qp(side->pd, attributes);
		if (IS_ERR(qp)) {
			impossible = middle;
		} else {
			possible = middle;
			ib_destroy_qp(qp);
		}
	}
	attributes->cap.max_inline_data = possible;
	return ib_create_qp(side->pd, attributes);
}

static int make_queue_pair(struct side *side, const struct setup *setup)
{
	struct ib_qp_init_attr attributes = {
		.event_handler = happens,
		.qp_context = side,
		.send_cq = side->send_cq,
		.recv_cq = side->recv_cq,
		.srq = side->srq,
		.cap = {
			.max_send_wr = RING,
			.max_recv_wr = side->srq ? 0 : RING,
			.max_send_sge = PIECES,
			.max_recv_sge = side->srq ? 0 : PIECES,
			.max_inline_data = 64,
		},
		.sq_sig_type = setup->signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR,
		.qp_type = setup->type,
	};

	if (setup->segments && side->device->attrs.kernel_cap_flags & IBK_UD_TSO)
		attributes.create_flags = IB_QP_CREATE_IPOIB_UD_LSO;

	side->qp = setup->longest_inline ? create_longest_inline(side, &attributes) : ib_create_qp(side->pd, &attributes);
	side->inline_bytes = attributes.cap.max_inline_data;
	return PTR_ERR_OR_ZERO(side->qp);
}

static bool open_side(struct pair *pair, struct side *side)
{
	int error = ib_query_port(side->device, 1, &side->port) ?: find_address(side);

	if (!error) {
		side->pd = ib_alloc_pd(side->device, 0);
		error = PTR_ERR_OR_ZERO(side->pd);
	}
	error = error ?: make_memory(side) ?: make_queues(side, pair->setup);
	if (error)
		fail(pair, "%s: what a queue pair needs cannot be made: %d", side->name, error);
	return !error && register_memory(pair, side, side->mr, ALL_ACCESS & ~pair->setup->forbidden_by_memory);
}

static bool open_queue_pair(struct pair *pair, struct side *side)
{
	int error = make_queue_pair(side, pair->setup);

	if (error)
		fail(pair, "%s: the queue pair cannot be made: %d", side->name, error);
	return !error;
}

static bool connect(struct pair *pair)
{
	int error = ready(&pair->a, pair->b.qp->qp_num, &pair->b, pair);

	if (!error)
		error = pair->setup->deaf ? to_init(&pair->b, pair) : ready(&pair->b, pair->a.qp->qp_num, &pair->a, pair);
	if (!error && pair->setup->type == IB_QPT_UD)
		error = make_handle(&pair->a, &pair->b, pair->setup->with_grh) ?:
			make_handle(&pair->b, &pair->a, pair->setup->with_grh);
	if (error)
		fail(pair, "the queue pairs cannot be connected: %d", error);
	return !error;
}

static u16 pkey_at(const struct side *side, u16 index)
{
	u16 pkey = 0;

	return ib_query_pkey(side->device, 1, index, &pkey) ? 0 : pkey;
}

/* For a another P_Key than the first, which b has, and b's partition is not that one. */
static bool choose_pkeys(struct pair *pair)
{
	const u16 members = 0x7fff;
	u16 index;

	for (index = 1; index < pair->a.port.pkey_tbl_len; index++) {
		u16 pkey = pkey_at(&pair->a, index);

		if (pkey & members && (pkey & members) != (pkey_at(&pair->b, 0) & members)) {
			pair->a.pkey_index = index;
			return true;
		}
	}
	fail(pair, "device a has no P_Key of another partition");
	pair->left_out = true;
	return false;
}

/* For a an index at which its table has no P_Key. */
static bool choose_unused_pkey(struct pair *pair)
{
	u16 index;

	for (index = 1; index < pair->a.port.pkey_tbl_len; index++) {
		if (!(pkey_at(&pair->a, index) & 0x7fff)) {
			pair->a.pkey_index = index;
			return true;
		}
	}
	fail(pair, "device a has no unused entry for a P_Key");
	pair->left_out = true;
	return false;
}

bool no_bad_pkey(struct pair *pair, struct side *side)
{
	struct ib_port_attr port;

	return same(pair, "querying the port", 0, ib_query_port(side->device, 1, &port)) &&
	       same(pair, "more packets with a wrong P_Key", 0, port.bad_pkey_cntr > side->port.bad_pkey_cntr);
}

bool pair_open(struct pair *pair)
{
	if (!open_side(pair, &pair->a) || !open_side(pair, &pair->b))
		return false;
	pair->mtu = min(pair->a.port.active_mtu, pair->b.port.active_mtu);
	if (pair->setup->strange_pkey && !choose_pkeys(pair))
		return false;
	if (pair->setup->unused_pkey && !choose_unused_pkey(pair))
		return false;
	return open_queue_pair(pair, &pair->a) && open_queue_pair(pair, &pair->b) && (pair->setup->reset || connect(pair));
}

static void close_side(struct side *side)
{
	if (side->ah)
		rdma_destroy_ah(side->ah, RDMA_DESTROY_AH_SLEEPABLE);
	if (!IS_ERR_OR_NULL(side->qp))
		ib_destroy_qp(side->qp);
	if (!IS_ERR_OR_NULL(side->srq))
		ib_destroy_srq(side->srq);
	if (!IS_ERR_OR_NULL(side->recv_cq))
		ib_destroy_cq(side->recv_cq);
	if (!IS_ERR_OR_NULL(side->send_cq))
		ib_destroy_cq(side->send_cq);
	if (!IS_ERR_OR_NULL(side->mr))
		ib_dereg_mr(side->mr);
	if (side->mapped)
		ib_dma_unmap_sg(side->device, &side->list, 1, DMA_BIDIRECTIONAL);
	kfree(side->memory);
	if (!IS_ERR_OR_NULL(side->pd))
		ib_dealloc_pd(side->pd);
}

void pair_close(struct pair *pair)
{
	close_side(&pair->a);
	close_side(&pair->b);
}
