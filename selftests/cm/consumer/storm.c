// SPDX-License-Identifier: GPL-2.0-only
/* A storm: as many connections at once as there are to be, with no thread for any of them. */

#include <linux/completion.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>

#include "consumer.h"

struct storm {
	/* Connections that have not come as far as all are to come. */
	atomic_t left;
	struct completion all_there;
	atomic_t failed;
	struct ib_cm_id **ids;
};

static void is_there(struct storm *storm)
{
	if (atomic_dec_and_test(&storm->left))
		complete(&storm->all_there);
}

static void fails(struct storm *storm, const char *what, int how)
{
	/* The first ones say enough. */
	if (atomic_inc_return(&storm->failed) <= 3)
		pr_err("cm_consumer: a connection of the storm had %s %d\n", what, how);
	is_there(storm);
}

static int happens(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct storm *storm = id->context;
	int error;

	switch (event->event) {
	case IB_CM_REP_RECEIVED:
		error = ib_send_cm_rtu(id, NULL, 0);
		if (error)
			fails(storm, "the error", error);
		else
			is_there(storm);
		return 0;
	case IB_CM_DREP_RECEIVED:
		is_there(storm);
		return 0;
	case IB_CM_MRA_RECEIVED:
	case IB_CM_TIMEWAIT_EXIT:
		return 0;
	default:
		fails(storm, "event", event->event);
		return 0;
	}
}

/* Waits until all have come as far, or have failed: each try has an end of its own. It may take minutes, which is no hang. */
static int all_there(struct storm *storm, const char *what, ktime_t began)
{
	wait_for_completion_state(&storm->all_there, TASK_IDLE);
	pr_info("cm_consumer: %s after %lld ms, %d failed\n", what, ktime_ms_delta(ktime_get(), began),
		atomic_read(&storm->failed));
	return atomic_read(&storm->failed) ? -ECONNRESET : 0;
}

static void begin(struct storm *storm, unsigned int number)
{
	atomic_set(&storm->left, number);
	reinit_completion(&storm->all_there);
}

static int connect_all(struct storm *storm, struct way *way, unsigned int number)
{
	ktime_t began = ktime_get();
	unsigned int i;

	begin(storm, number);
	for (i = 0; i < number; i++) {
		int error = ask(way, storm->ids[i]);

		if (error)
			fails(storm, "the error", error);
	}
	return all_there(storm, "all connections of the storm were up", began);
}

static int disconnect_all(struct storm *storm, unsigned int number)
{
	ktime_t began = ktime_get();
	unsigned int i;

	begin(storm, number);
	for (i = 0; i < number; i++) {
		int error = ib_send_cm_dreq(storm->ids[i], NULL, 0);

		if (error)
			fails(storm, "the error", error);
	}
	return all_there(storm, "all connections of the storm were down", began);
}

static int make_ids(struct storm *storm, struct ib_device *device, unsigned int number, unsigned int *made)
{
	for (*made = 0; *made < number; ++*made) {
		struct ib_cm_id *id = ib_create_cm_id(device, happens, storm);

		if (IS_ERR(id))
			return PTR_ERR(id);
		storm->ids[*made] = id;
	}
	return 0;
}

int storm(struct way *way, unsigned int number)
{
	struct storm storm = {
		.ids = vcalloc(number, sizeof(*storm.ids)),
	};
	unsigned int made;
	int error;

	if (!storm.ids)
		return -ENOMEM;
	init_completion(&storm.all_there);
	error = make_ids(&storm, way->device, number, &made);
	if (!error)
		error = connect_all(&storm, way, number);
	if (!error)
		error = disconnect_all(&storm, number);
	while (made)
		ib_destroy_cm_id(storm.ids[--made]);
	vfree(storm.ids);
	return error;
}
