// SPDX-License-Identifier: GPL-2.0-only

#include <rdma/ib_cache.h>

#include "verbs.h"

static int start_queue_pair(struct ib_qp *qp)
{
	struct ib_qp_attr attributes = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qkey = BENCH_QKEY,
	};
	int error;

	error = ib_modify_qp(qp, &attributes, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY);
	if (error)
		return error;
	attributes.qp_state = IB_QPS_RTR;
	error = ib_modify_qp(qp, &attributes, IB_QP_STATE);
	if (error)
		return error;
	attributes.qp_state = IB_QPS_RTS;
	return ib_modify_qp(qp, &attributes, IB_QP_STATE | IB_QP_SQ_PSN);
}

static int make_local_handle(struct verbs *verbs)
{
	struct rdma_ah_attr attributes = { .type = RDMA_AH_ATTR_TYPE_IB, .port_num = 1 };

	rdma_ah_set_dlid(&attributes, verbs->peer_lid);
	verbs->ah = rdma_create_ah(verbs->pd, &attributes, RDMA_CREATE_AH_SLEEPABLE);
	return PTR_ERR_OR_ZERO(verbs->ah);
}

static int make_handle(struct verbs *verbs)
{
	const u8 mac[ETH_ALEN] = BENCH_PEER_MAC;
	struct rdma_ah_attr attributes = { .type = RDMA_AH_ATTR_TYPE_ROCE, .port_num = 1 };
	const struct ib_gid_attr *source;
	union ib_gid gid, peer;

	ipv6_addr_set_v4mapped(BENCH_ETHERNET_IP(BENCH_US), (struct in6_addr *)&gid);
	ipv6_addr_set_v4mapped(BENCH_ETHERNET_IP(BENCH_PEER), (struct in6_addr *)&peer);
	source = rdma_find_gid_by_port(verbs->device, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, 1, NULL);
	if (IS_ERR(source))
		return PTR_ERR(source);
	rdma_move_grh_sgid_attr(&attributes, &peer, 0, 64, 0, source);
	memcpy(attributes.roce.dmac, mac, ETH_ALEN);
	verbs->ah = rdma_create_ah(verbs->pd, &attributes, RDMA_CREATE_AH_SLEEPABLE);
	rdma_destroy_ah_attr(&attributes);
	return PTR_ERR_OR_ZERO(verbs->ah);
}

static int make_memory(struct verbs *verbs)
{
	unsigned int i;

	for (i = 0; i < BENCH_RING; i++) {
		verbs->memory[i] = kzalloc(PAGE_SIZE << 1, GFP_KERNEL);
		if (!verbs->memory[i])
			return -ENOMEM;
		verbs->requests[i].piece.addr = (uintptr_t)verbs->memory[i];
		verbs->requests[i].piece.lkey = verbs->pd->local_dma_lkey;
	}
	return 0;
}

static int make_queues(struct verbs *verbs)
{
	struct ib_cq_init_attr queue = { .cqe = BENCH_RING };
	struct ib_qp_init_attr attributes = {
		.cap = {
			.max_send_wr = BENCH_RING,
			.max_recv_wr = BENCH_RING,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = BENCH_INLINE,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_UD,
	};

	verbs->cq = ib_create_cq(verbs->device, verbs->completed, NULL, verbs, &queue);
	if (IS_ERR(verbs->cq))
		return PTR_ERR(verbs->cq);
	attributes.send_cq = verbs->cq;
	attributes.recv_cq = verbs->cq;
	verbs->qp = ib_create_qp(verbs->pd, &attributes);
	if (IS_ERR(verbs->qp))
		return PTR_ERR(verbs->qp);
	return start_queue_pair(verbs->qp);
}

void verbs_close(struct verbs *verbs)
{
	unsigned int i;

	if (!IS_ERR_OR_NULL(verbs->ah))
		rdma_destroy_ah(verbs->ah, RDMA_DESTROY_AH_SLEEPABLE);
	if (!IS_ERR_OR_NULL(verbs->qp))
		ib_destroy_qp(verbs->qp);
	if (!IS_ERR_OR_NULL(verbs->cq))
		ib_destroy_cq(verbs->cq);
	for (i = 0; i < BENCH_RING; i++)
		kfree(verbs->memory[i]);
	if (!IS_ERR_OR_NULL(verbs->pd))
		ib_dealloc_pd(verbs->pd);
	if (verbs->device)
		ib_device_put(verbs->device);
	dev_put(verbs->ethernet);
}

/* The device of a name is shown to clients alone. One measurement runs at a time. */
static const char *wanted;
static struct ib_device *found;

static int look_at(struct ib_device *device)
{
	if (!strcmp(dev_name(&device->dev), wanted) && ib_device_try_get(device))
		found = device;
	return 0;
}

static void look_away(struct ib_device *, void *)
{
}

/* The caller is to put it. */
struct ib_device *verbs_device(const char *name)
{
	static struct ib_client client = {
		.name = "oxib_bench",
		.add = look_at,
		.remove = look_away,
	};

	wanted = name;
	found = NULL;
	if (!ib_register_client(&client))
		ib_unregister_client(&client);
	return found;
}

/* The LID of a device's port, which has to be active. */
int verbs_lid(const char *name, u16 *lid)
{
	struct ib_device *device = verbs_device(name);
	struct ib_port_attr port;
	int error;

	if (!device)
		return -ENODEV;
	error = ib_query_port(device, 1, &port);
	ib_device_put(device);
	*lid = port.lid;
	return error ?: port.state == IB_PORT_ACTIVE ? 0 : -ENETDOWN;
}

static void find_device(struct verbs *verbs)
{
	if (verbs->name) {
		verbs->device = verbs_device(verbs->name);
		return;
	}
	verbs->ethernet = dev_get_by_name(bench_net(), BENCH_ETHERNET);
	if (verbs->ethernet)
		verbs->device = ib_device_get_by_netdev(verbs->ethernet, RDMA_DRIVER_RXE);
}

/* On an error, too, verbs_close() is to follow. */
int verbs_open(struct verbs *verbs)
{
	find_device(verbs);
	if (!verbs->device)
		return -ENODEV;
	verbs->pd = ib_alloc_pd(verbs->device, 0);
	if (IS_ERR(verbs->pd))
		return PTR_ERR(verbs->pd);
	return make_memory(verbs) ?: make_queues(verbs) ?:
	       (verbs->name ? make_local_handle(verbs) : make_handle(verbs));
}

struct request *verbs_next_request(struct verbs *verbs)
{
	return &verbs->requests[verbs->next++ % BENCH_RING];
}
