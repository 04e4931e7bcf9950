/* SPDX-License-Identifier: GPL-2.0-only */
/* The device that a program is for. */

#ifndef DEVICE_H
#define DEVICE_H

#include <string.h>

#include <infiniband/verbs.h>

#include "report.h"

static inline struct ibv_context *open_context(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *found = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			found = ibv_open_device(list[i]);
	must(!!found, "the device");
	ibv_free_device_list(list);
	return found;
}

#endif
