/* SPDX-License-Identifier: GPL-2.0-only */
/* What is no command, or none of the right form; memory and files that change below all that. */

#ifndef GARBAGE_H
#define GARBAGE_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "../command.h"
#include "contexts.h"
#include "draw.h"
#include "objects.h"

static char path[200];

static int any_command(struct context *context)
{
	uint32_t number = below(0x3e), request[40], response[64];

	/* The kernel takes an attribute of this one for another one, see udata.c. */
	if (number == COMMAND(GET_CONTEXT))
		return EINVAL;
	fill_with_garbage(request, sizeof(request));
	if (one_in(3))
		number |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
	return give(context, number, request, 4 + below(sizeof(request) - 4), response, below(sizeof(response)));
}

static int any_write(struct context *context)
{
	struct {
		struct ib_uverbs_cmd_hdr header;
		uint64_t payload[64];
	} request;
	static __thread uint8_t response[1024];
	size_t size = below(sizeof(request)) & ~3UL;

	fill_with_garbage(&request, sizeof(request));
	request.header.command = mostly(below(0x3e));
	request.header.in_words = mostly(size / 4);
	request.header.out_words = mostly(below(256));
	request.payload[0] = mostly((uintptr_t)response);
	return write(context->fd, &request, size) < 0 ? errno : 0;
}

static int any_ioctl(struct context *context)
{
	struct {
		struct ib_uverbs_ioctl_hdr header;
		struct ib_uverbs_attr attributes[8];
	} all;
	uint32_t i, count = below(8);

	fill_with_garbage(&all, sizeof(all));
	all.header = (struct ib_uverbs_ioctl_hdr){
		.length = mostly(sizeof(all.header) + count * sizeof(all.attributes[0])), .num_attrs = mostly(count),
		.object_id = mostly(below(24)), .method_id = mostly(below(12)), .driver_id = mostly(SOFTIB_DRIVER_ID),
	};
	/* The kernel loses a reference there, see contexts.c. */
	if (all.header.object_id == UVERBS_OBJECT_DEVICE && all.header.method_id == UVERBS_METHOD_GET_CONTEXT)
		all.header.method_id = UVERBS_METHOD_QUERY_PORT;
	for (i = 0; i < count; i++) {
		all.attributes[i].attr_id = mostly(below(12)) | (one_in(6) ? UVERBS_ID_DRIVER_NS : 0);
		all.attributes[i].flags = one_in(2);
		all.attributes[i].len = one_in(2) ? 0 : below(64);
		all.attributes[i].attr_data.reserved = mostly(0);
		all.attributes[i].data = one_in(2) ? handle_of(context, below(KINDS)) : address();
	}
	return ioctl(context->fd, RDMA_VERBS_IOCTL, &all) < 0 ? errno : 0;
}

/* Memory below regions goes and comes, and is not to be written for a while. */
static int change_memory(void)
{
	uint8_t *place = arena + PAGE * below(ARENA / PAGE);

	if (one_in(2))
		return mprotect(place, PAGE, one_in(16) ? PROT_READ : PROT_READ | PROT_WRITE) ? errno : 0;
	return mmap(place, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ? errno : 0;
}

/* With all that it has, while other threads use it. */
static int open_anew(struct context *context)
{
	struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_get_context get;
	} request = { .header = { .command = IB_USER_VERBS_CMD_GET_CONTEXT, .in_words = sizeof(request) / 4, .out_words = 2 } };
	struct ib_uverbs_get_context_resp response = {};
	int fd = open(path, O_RDWR), old;

	if (fd < 0)
		return errno;
	request.get.response = (uintptr_t)&response;
	if (write(fd, &request, sizeof(request)) < 0)
		return errno;
	/* Nobody reads what happens. */
	close(response.async_fd);
	old = __atomic_exchange_n(&context->fd, fd, __ATOMIC_RELAXED);
	if (old > 0)
		close(old);
	return 0;
}

#endif
