// SPDX-License-Identifier: GPL-2.0-only
/* Calling: threads that open a connection, close it, and go on with the next. */

#include <linux/completion.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "consumer.h"

struct caller {
	struct way *way;
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
	int error = ask(caller->way, id);

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
	id = ib_create_cm_id(caller->way->device, happens, &connection);
	if (IS_ERR(id))
		return PTR_ERR(id);
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

int call(struct way *way, unsigned int parallel, unsigned int cycles)
{
	struct caller *caller = kzalloc(sizeof(*caller), GFP_KERNEL);
	int error;

	if (!caller)
		return -ENOMEM;
	caller->way = way;
	atomic_set(&caller->left, cycles);
	init_completion(&caller->all_done);
	error = run_all(caller, parallel);
	kfree(caller);
	return error;
}
