// SPDX-License-Identifier: GPL-2.0-only
/*
 * For LD_PRELOAD, into cmtime: marks for the profiler (mark.h) where the program begins to end its connections without queue
 * pairs. It ends a single one first, then those with queue pairs. cm.sh marks the end, when both programs are gone: how far the
 * other end has come before that is different each time, as the two take turns on a processor.
 */

#define _GNU_SOURCE

#include <dlfcn.h>

#include "mark.h"

/* Of the times that connections are ended. */
#define WITHOUT_QUEUE_PAIRS 3

struct rdma_cm_id;

/* How often connections were ended, and whether they are just now. */
static int times, disconnecting;

int rdma_disconnect(struct rdma_cm_id *id)
{
	static int (*disconnect)(struct rdma_cm_id *);

	if (!disconnect)
		disconnect = (int (*)(struct rdma_cm_id *))dlsym(RTLD_NEXT, "rdma_disconnect");
	if (!disconnecting && ++times == WITHOUT_QUEUE_PAIRS)
		MARK("0x01");
	disconnecting = 1;
	return disconnect(id);
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	static int (*destroy)(struct rdma_cm_id *);

	if (!destroy)
		destroy = (int (*)(struct rdma_cm_id *))dlsym(RTLD_NEXT, "rdma_destroy_id");
	disconnecting = 0;
	return destroy(id);
}
