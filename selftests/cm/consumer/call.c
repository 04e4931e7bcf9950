// SPDX-License-Identifier: GPL-2.0-only
/* Calling: threads that open a connection, close it, and go on with the next. */

#include <linux/completion.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_sa.h>

#include "consumer.h"

/* 4.096 us times 2 to the power of these: 67 ms, 4.3 s. */
#define LIFE_TIME 14
#define RESPONSE 20
#define CM_RETRIES 15

struct caller {
	struct ib_device *device;
	const struct ib_gid_attr *source;
	struct sa_path_rec path;
	u32 manager;
	atomic_t left;
	atomic_t threads;
	struct completion all_done;
	int error;
};

struct thread {
	struct work_struct work;
	struct caller *caller;
};

struct connection {
	struct completion changed;
	enum ib_cm_event_type event;
};

static int happens(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct connection *connection = id->context;

	switch (event->event) {
	case IB_CM_MRA_RECEIVED:
	case IB_CM_TIMEWAIT_EXIT:
		return 0;
	default:
		connection->event = event->event;
		complete(&connection->changed);
		return 0;
	}
}

static int wait_for(struct connection *connection, enum ib_cm_event_type wanted)
{
	wait_for_completion(&connection->changed);
	if (connection->event == wanted)
		return 0;
	pr_err("cm_consumer: event %d came where %d should\n", connection->event, wanted);
	return -ECONNRESET;
}

static int open_connection(struct caller *caller, struct connection *connection, struct ib_cm_id *id)
{
	struct ib_cm_req_param request = {
		.primary_path = &caller->path,
		.ppath_sgid_attr = caller->source,
		.service_id = SERVICE,
		.qp_num = next_qpn(),
		.qp_type = IB_QPT_RC,
		.remote_cm_response_timeout = RESPONSE,
		.local_cm_response_timeout = RESPONSE,
		.retry_count = 7,
		.rnr_retry_count = 7,
		/* Elsewhere nobody answers. */
		.max_cm_retries = caller->manager == 1 ? CM_RETRIES : 0,
	};
	int error = ib_send_cm_req(id, &request);

	if (!error)
		error = wait_for(connection, IB_CM_REP_RECEIVED);
	if (!error)
		error = ib_send_cm_rtu(id, NULL, 0);
	return error;
}

static int close_connection(struct connection *connection, struct ib_cm_id *id)
{
	int error;

	reinit_completion(&connection->changed);
	error = ib_send_cm_dreq(id, NULL, 0);
	return error ?: wait_for(connection, IB_CM_DREP_RECEIVED);
}

static int cycle(struct caller *caller)
{
	struct connection connection;
	struct ib_cm_id *id;
	int error;

	init_completion(&connection.changed);
	id = ib_create_cm_id(caller->device, happens, &connection);
	if (IS_ERR(id))
		return PTR_ERR(id);
	id->remote_cm_qpn = caller->manager;
	error = open_connection(caller, &connection, id);
	if (!error)
		error = close_connection(&connection, id);
	ib_destroy_cm_id(id);
	return error;
}

static void run(struct work_struct *work)
{
	struct caller *caller = container_of(work, struct thread, work)->caller;

	while (!READ_ONCE(caller->error) && atomic_dec_if_positive(&caller->left) >= 0) {
		int error = cycle(caller);

		if (error)
			WRITE_ONCE(caller->error, error);
	}
	if (atomic_dec_and_test(&caller->threads))
		complete(&caller->all_done);
}

static int find_way(struct caller *caller, __be32 from, __be32 to)
{
	struct sa_path_rec *path = &caller->path;

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
	caller->source = rdma_find_gid_by_port(caller->device, &path->sgid, IB_GID_TYPE_ROCE_UDP_ENCAP, PORT, NULL);
	if (!IS_ERR(caller->source))
		return 0;
	pr_err("cm_consumer: %s has not the address %pI4\n", dev_name(&caller->device->dev), &from);
	return PTR_ERR(caller->source);
}

static int run_all(struct caller *caller, unsigned int parallel)
{
	struct workqueue_struct *queue = alloc_workqueue("cm_consumer", WQ_UNBOUND, parallel);
	struct thread *threads = kcalloc(parallel, sizeof(*threads), GFP_KERNEL);
	unsigned int i;

	if (!queue || !threads) {
		caller->error = -ENOMEM;
	} else {
		atomic_set(&caller->threads, parallel);
		for (i = 0; i < parallel; i++) {
			threads[i].caller = caller;
			INIT_WORK(&threads[i].work, run);
			queue_work(queue, &threads[i].work);
		}
		/* May take an hour, which is no hang. A signal ends it after the connections that are open. */
		if (wait_for_completion_interruptible(&caller->all_done)) {
			WRITE_ONCE(caller->error, -EINTR);
			wait_for_completion(&caller->all_done);
		}
	}
	if (queue)
		destroy_workqueue(queue);
	kfree(threads);
	return caller->error;
}

int call(struct ib_device *device, __be32 from, __be32 to, u32 manager, unsigned int parallel, unsigned int cycles)
{
	struct caller *caller = kzalloc(sizeof(*caller), GFP_KERNEL);
	int error;

	if (!caller)
		return -ENOMEM;
	caller->device = device;
	caller->manager = manager;
	atomic_set(&caller->left, cycles);
	init_completion(&caller->all_done);
	error = find_way(caller, from, to);
	if (!error) {
		error = run_all(caller, parallel);
		rdma_put_gid_attr(caller->source);
	}
	kfree(caller);
	return error;
}
