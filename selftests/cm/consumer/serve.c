// SPDX-License-Identifier: GPL-2.0-only
/* Serving: every request is accepted at once, every disconnect answered, and a connection ends after its time-wait. */

#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "consumer.h"

struct connection {
	struct ib_cm_id *id;
	struct work_struct end;
	bool ends;
};

static struct ib_cm_id *listener;
static struct workqueue_struct *queue;
static atomic_t connections;
static DECLARE_WAIT_QUEUE_HEAD(none_left);

/* Not in the handler, which could then still run when the module goes: ending an identifier waits for its handler. */
static void end(struct work_struct *work)
{
	struct connection *connection = container_of(work, struct connection, end);

	ib_destroy_cm_id(connection->id);
	kfree(connection);
	if (atomic_dec_and_test(&connections))
		wake_up(&none_left);
}

static int accept(struct ib_cm_id *id)
{
	struct ib_cm_rep_param answer = {
		.qp_num = next_qpn(),
		.rnr_retry_count = 7,
	};
	struct connection *connection = kzalloc(sizeof(*connection), GFP_KERNEL);
	int error;

	if (!connection)
		return -ENOMEM;
	connection->id = id;
	INIT_WORK(&connection->end, end);
	id->context = connection;
	error = ib_send_cm_rep(id, &answer);
	if (error)
		kfree(connection);
	else
		atomic_inc(&connections);
	return error;
}

/* What is not zero ends the identifier: of a request that could not be accepted. */
static int serve(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct connection *connection = id->context;

	switch (event->event) {
	case IB_CM_REQ_RECEIVED:
		return accept(id);
	case IB_CM_DREQ_RECEIVED:
		ib_send_cm_drep(id, NULL, 0);
		return 0;
	case IB_CM_RTU_RECEIVED:
	case IB_CM_MRA_RECEIVED:
	case IB_CM_USER_ESTABLISHED:
		return 0;
	case IB_CM_TIMEWAIT_EXIT:
		break;
	default:
		pr_err("cm_consumer: a connection that was served had event %d\n", event->event);
	}
	if (!connection->ends)
		queue_work(queue, &connection->end);
	connection->ends = true;
	return 0;
}

static int listen(struct ib_device *device)
{
	int error;

	listener = ib_create_cm_id(device, serve, NULL);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	error = ib_cm_listen(listener, SERVICE);
	if (error)
		ib_destroy_cm_id(listener);
	return error;
}

int serve_begin(struct ib_device *device)
{
	int error;

	queue = alloc_workqueue("cm_consumer", WQ_UNBOUND, 0);
	if (!queue)
		return -ENOMEM;
	error = listen(device);
	if (error)
		destroy_workqueue(queue);
	return error;
}

void serve_end(void)
{
	ib_destroy_cm_id(listener);
	wait_event(none_left, !atomic_read(&connections));
	destroy_workqueue(queue);
}
