// SPDX-License-Identifier: GPL-2.0-only
/* Serving: every request is accepted at once, every disconnect answered, and a connection ends after its time-wait. */

#include <linux/wait.h>

#include "consumer.h"

static struct ib_cm_id *listener;
static atomic_t connections;
static DECLARE_WAIT_QUEUE_HEAD(none_left);

static int accept(struct ib_cm_id *id)
{
	struct ib_cm_rep_param answer = {
		.qp_num = next_qpn(),
		.rnr_retry_count = 7,
	};

	return ib_send_cm_rep(id, &answer);
}

/* What is not zero ends the identifier. */
static int serve(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	switch (event->event) {
	case IB_CM_REQ_RECEIVED:
		if (accept(id))
			return -ECONNABORTED;
		atomic_inc(&connections);
		return 0;
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
	if (atomic_dec_and_test(&connections))
		wake_up(&none_left);
	return -ESHUTDOWN;
}

int serve_begin(struct ib_device *device)
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

void serve_end(void)
{
	ib_destroy_cm_id(listener);
	/* The last handler's identifier ends after the handler: the connection manager waits for that when it is unloaded. */
	wait_event(none_left, !atomic_read(&connections));
}
