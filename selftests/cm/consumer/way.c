// SPDX-License-Identifier: GPL-2.0-only
/* The way to a peer, and what is asked of it. */

#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_sa.h>

#include "consumer.h"

/* 4.096 us times 2 to the power of these: 67 ms, 4.3 s. */
#define LIFE_TIME 14
#define RESPONSE 20
#define CM_RETRIES 15

int find_way(struct way *way, struct ib_device *device, __be32 from, __be32 to)
{
	struct sa_path_rec *path = &way->path;

	way->device = device;
	path->rec_type = SA_PATH_REC_TYPE_ROCE_V2;
	ipv6_addr_set_v4mapped(from, (struct in6_addr *)&path->sgid);
	ipv6_addr_set_v4mapped(to, (struct in6_addr *)&path->dgid);
	path->hop_limit = 1;
	path->pkey = cpu_to_be16(IB_DEFAULT_PKEY_FULL);
	path->mtu_selector = IB_SA_EQ;
	path->mtu = IB_MTU_1024;
	path->rate_selector = IB_SA_EQ;
	path->rate = IB_RATE_PORT_CURRENT;
	path->packet_life_time_selector = IB_SA_EQ;
	path->packet_life_time = LIFE_TIME;
	path->reversible = 1;
	way->source = rdma_find_gid_by_port(device, &path->sgid, IB_GID_TYPE_ROCE_UDP_ENCAP, PORT, NULL);
	if (!IS_ERR(way->source))
		return 0;
	pr_err("cm_consumer: %s has not the address %pI4\n", dev_name(&device->dev), &from);
	return PTR_ERR(way->source);
}

void lose_way(struct way *way)
{
	rdma_put_gid_attr(way->source);
}

int ask(struct way *way, struct ib_cm_id *id)
{
	struct ib_cm_req_param request = {
		.primary_path = &way->path,
		.ppath_sgid_attr = way->source,
		.service_id = SERVICE,
		.qp_num = next_qpn(),
		.qp_type = IB_QPT_RC,
		.remote_cm_response_timeout = RESPONSE,
		.local_cm_response_timeout = RESPONSE,
		.retry_count = 7,
		.rnr_retry_count = 7,
		/* Elsewhere nobody answers. */
		.max_cm_retries = way->manager == 1 ? CM_RETRIES : 0,
	};

	id->remote_cm_qpn = way->manager;
	return ib_send_cm_req(id, &request);
}
