// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watches how the connection manager reports requests that their senders reject at once. A new identifier has the handler and
 * the context of its listener until the handler of the request sets its own. Any other event with the listener's handler is
 * a stray: a real consumer would mistake the listener's context for that of a connection. Questions for a queue pair get no answer.
 */

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "consumer.h"

struct exchange {
	struct list_head list;
	struct ib_cm_id *id;
	struct work_struct end;
	atomic_t handlers;
	bool ends;
};

static struct ib_cm_id *listener;
static struct workqueue_struct *queue;
static LIST_HEAD(exchanges);
static DEFINE_SPINLOCK(lock);
static DECLARE_WAIT_QUEUE_HEAD(none_left);
/* Its address is the context of the listener, and so of new identifiers. */
static int listening;

/* Written with the lock held. */
static unsigned int requests;
module_param(requests, uint, 0444);
MODULE_PARM_DESC(requests, "Watching: reported requests");

static unsigned int questions;
module_param(questions, uint, 0444);
MODULE_PARM_DESC(questions, "Watching: reported requests for a queue pair, none of which is answered");

static unsigned int rejections;
module_param(rejections, uint, 0444);
MODULE_PARM_DESC(rejections, "Watching: reported rejections by the sender");

static unsigned int strays;
module_param(strays, uint, 0444);
MODULE_PARM_DESC(strays, "Watching: events before their request, repeated requests, and events beside another one");

static void count(unsigned int *counter)
{
	spin_lock(&lock);
	(*counter)++;
	spin_unlock(&lock);
}

static void stray(const struct ib_cm_event *event, const char *how)
{
	pr_err_ratelimited("cm_consumer: event %d %s\n", event->event, how);
	count(&strays);
}

/* Runs outside the handler, because ending an identifier waits for its handler. */
static void end(struct work_struct *work)
{
	struct exchange *exchange = container_of(work, struct exchange, end);

	ib_destroy_cm_id(exchange->id);
	spin_lock(&lock);
	list_del(&exchange->list);
	spin_unlock(&lock);
	kfree(exchange);
	wake_up(&none_left);
}

static void begin_end(struct exchange *exchange)
{
	spin_lock(&lock);
	if (!exchange->ends)
		queue_work(queue, &exchange->end);
	exchange->ends = true;
	spin_unlock(&lock);
}

static void happens(struct exchange *exchange, const struct ib_cm_event *event)
{
	switch (event->event) {
	case IB_CM_REJ_RECEIVED:
		count(&rejections);
		begin_end(exchange);
		break;
	case IB_CM_REQ_RECEIVED:
		stray(event, "came twice");
		break;
	case IB_CM_MRA_RECEIVED:
		break;
	default:
		begin_end(exchange);
	}
}

static int handle(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct exchange *exchange = id->context;

	if (atomic_inc_return(&exchange->handlers) != 1)
		stray(event, "came beside another one");
	happens(exchange, event);
	atomic_dec(&exchange->handlers);
	return 0;
}

static struct exchange *new_exchange(struct ib_cm_id *id, unsigned int *counter)
{
	struct exchange *exchange = kzalloc(sizeof(*exchange), GFP_KERNEL);

	if (!exchange)
		return NULL;
	exchange->id = id;
	/* The handler of the request is running. */
	atomic_set(&exchange->handlers, 1);
	INIT_WORK(&exchange->end, end);
	spin_lock(&lock);
	list_add(&exchange->list, &exchanges);
	(*counter)++;
	spin_unlock(&lock);
	return exchange;
}

static int handle_request(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct ib_cm_rep_param answer = {
		.qp_num = next_qpn(),
		.rnr_retry_count = 7,
	};
	bool asks = event->event == IB_CM_SIDR_REQ_RECEIVED;
	struct exchange *exchange;

	if ((!asks && event->event != IB_CM_REQ_RECEIVED) || id->context != &listening) {
		stray(event, "came to the listener's handler");
		return -EINVAL;
	}
	exchange = new_exchange(id, asks ? &questions : &requests);
	if (!exchange)
		return -ENOMEM;
	id->context = exchange;
	id->cm_handler = handle;
	/* Accepts every other request, unless its sender has rejected it already. */
	if (!asks && answer.qp_num & 1)
		ib_send_cm_rep(id, &answer);
	atomic_dec(&exchange->handlers);
	return 0;
}

int watch_begin(struct ib_device *device)
{
	int error;

	queue = alloc_workqueue("cm_consumer", WQ_UNBOUND, 0);
	if (!queue)
		return -ENOMEM;
	listener = ib_create_cm_id(device, handle_request, &listening);
	if (IS_ERR(listener)) {
		destroy_workqueue(queue);
		return PTR_ERR(listener);
	}
	error = ib_cm_listen(listener, SERVICE);
	if (error) {
		ib_destroy_cm_id(listener);
		destroy_workqueue(queue);
	}
	return error;
}

void watch_end(void)
{
	struct exchange *exchange;

	ib_destroy_cm_id(listener);
	spin_lock(&lock);
	list_for_each_entry(exchange, &exchanges, list) {
		if (!exchange->ends)
			queue_work(queue, &exchange->end);
		exchange->ends = true;
	}
	spin_unlock(&lock);
	wait_event(none_left, list_empty_careful(&exchanges));
	destroy_workqueue(queue);
}
