/* SPDX-License-Identifier: GPL-2.0-only */
/* Commands to ib_uverbs as no library would give them. */

#ifndef COMMAND_H
#define COMMAND_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "abi.h"

#define EXTENDED(verb) (IB_USER_VERBS_EX_CMD_##verb | IB_USER_VERBS_CMD_FLAG_EXTENDED)

/* The driver's part of a command. */
struct data {
	const void *in;
	uint16_t in_length;
	void *out;
	uint16_t out_length;
};

/* A command, the size of what it takes and gives apart from that. */
struct command {
	const char *name;
	uint32_t number;
	const void *request;
	size_t request_size;
	void *response;
	size_t response_size;
};

/* The kernel takes up to 8 bytes out of the attribute itself. */
static inline void set_attribute(struct ib_uverbs_attr *attribute, uint16_t id, const void *address, uint16_t length, int is_input)
{
	*attribute = (struct ib_uverbs_attr){ .attr_id = id, .len = length, .flags = UVERBS_ATTR_F_MANDATORY };
	attribute->data = (uintptr_t)address;
	if (is_input && length <= sizeof(attribute->data)) {
		attribute->data = 0;
		memcpy(&attribute->data, address, length);
	}
}

/* Returns the error. */
static inline int execute(int file, const struct command *command, const struct data *data)
{
	struct {
		struct ib_uverbs_ioctl_hdr header;
		struct ib_uverbs_attr attributes[5];
	} all = { .header = {
		.object_id = UVERBS_OBJECT_DEVICE, .method_id = UVERBS_METHOD_INVOKE_WRITE, .driver_id = SOFTIB_DRIVER_ID,
	} };
	struct ib_uverbs_attr *next = all.attributes;

	set_attribute(next++, UVERBS_ATTR_CORE_IN, command->request, command->request_size, 1);
	if (command->response_size)
		set_attribute(next++, UVERBS_ATTR_CORE_OUT, command->response, command->response_size, 0);
	*next++ = (struct ib_uverbs_attr){
		.attr_id = UVERBS_ATTR_WRITE_CMD, .flags = UVERBS_ATTR_F_MANDATORY, .data = command->number, .len = 8,
	};
	if (data->in_length)
		set_attribute(next++, UVERBS_ATTR_UHW_IN, data->in, data->in_length, 1);
	if (data->out_length)
		set_attribute(next++, UVERBS_ATTR_UHW_OUT, data->out, data->out_length, 0);
	all.header.num_attrs = next - all.attributes;
	all.header.length = (char *)next - (char *)&all;
	return ioctl(file, RDMA_VERBS_IOCTL, &all) < 0 ? errno : 0;
}

#endif
