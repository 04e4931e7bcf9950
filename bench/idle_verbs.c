// SPDX-License-Identifier: GPL-2.0-only
/*
 * As much of libibverbs as ibacm needs to begin, for InfiniBand devices that have no verbs for user space: LD_PRELOAD it. What
 * ibacm asks of a port comes from sysfs; its queue pairs carry nothing. ibacm asks the SA through /dev/infiniband/umad*, as on
 * any device, and answers from its cache, as on any device; what it would ask other nodes by multicast stays unanswered.
 *
 * The structures are those of infiniband/verbs.h (IBVERBS_1.1), as far as programs reach into them.
 */

#include <dirent.h>
#include <endian.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { MAX_DEVICES = 8, NODE_CA = 1, TRANSPORT_IB = 0, LINK_LAYER_INFINIBAND = 1, LARGEST_OBJECT = 256 };

struct ibv_device {
	void *ops[2];
	int node_type, transport_type;
	char name[64], dev_name[64], dev_path[256], ibdev_path[256];
};

/* Those of its operations that programs call through it. */
enum { OPERATIONS = 32, POLL_CQ = 11, REQ_NOTIFY_CQ = 12, POST_SEND = 25, POST_RECV = 26 };

struct ibv_context {
	struct ibv_device *device;
	int (*ops[OPERATIONS])(void);
	int cmd_fd, async_fd, num_comp_vectors;
	pthread_mutex_t mutex;
	void *abi_compat;
};

struct ibv_device_attr {
	char fw_ver[64];
	uint64_t guids_and_sizes[4];
	uint32_t ids[3], limits[29];
	uint16_t max_pkeys;
	uint8_t local_ca_ack_delay, phys_port_cnt;
};

struct ibv_port_attr {
	uint32_t state, max_mtu, active_mtu, gid_tbl_len, port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
	uint16_t pkey_tbl_len, lid, sm_lid;
	uint8_t lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width, active_speed, phys_state, link_layer, flags;
};

/* --- what sysfs says ----------------------------------------------------------------------------------------------------- */

/* The first line of a file of the device; empty if there is none. */
static const char *line_of(const struct ibv_device *device, const char *file, char line[64])
{
	char path[384];
	FILE *stream;

	line[0] = 0;
	snprintf(path, sizeof(path), "%s/%s", device->ibdev_path, file);
	stream = fopen(path, "r");
	if (!stream)
		return line;
	if (!fgets(line, 64, stream))
		line[0] = 0;
	fclose(stream);
	return line;
}

static unsigned long number_of(const struct ibv_device *device, int port, const char *what)
{
	char file[128], line[64];

	snprintf(file, sizeof(file), "ports/%d/%s", port, what);
	return strtoul(line_of(device, file, line), NULL, 0);
}

/* Half of a GID, or a GUID: four groups of hexadecimal digits with colons between. */
static uint64_t bytes_of(const char *groups)
{
	uint64_t value = 0;

	for (int group = 0; group < 4; group++)
		value = value << 16 | strtoul(groups + 5 * group, NULL, 16);
	return htobe64(value);
}

/* --- devices ------------------------------------------------------------------------------------------------------------- */

static struct ibv_device devices[MAX_DEVICES], *list[MAX_DEVICES + 1];

struct ibv_device **ibv_get_device_list(int *number)
{
	DIR *class = opendir("/sys/class/infiniband");
	struct dirent *entry;
	int found = 0;

	while (class && found < MAX_DEVICES && (entry = readdir(class))) {
		struct ibv_device *device = &devices[found];

		if (entry->d_name[0] == '.')
			continue;
		device->node_type = NODE_CA;
		device->transport_type = TRANSPORT_IB;
		snprintf(device->name, sizeof(device->name), "%.63s", entry->d_name);
		snprintf(device->ibdev_path, sizeof(device->ibdev_path), "/sys/class/infiniband/%s", device->name);
		list[found++] = device;
	}
	if (class)
		closedir(class);
	list[found] = NULL;
	if (number)
		*number = found;
	return list;
}

void ibv_free_device_list(struct ibv_device **unused)
{
	(void)unused;
}

uint64_t ibv_get_device_guid(struct ibv_device *device)
{
	char line[64];

	if (strlen(line_of(device, "node_guid", line)) < 19)
		return 0;
	return bytes_of(line);
}

static int nothing(void)
{
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context = calloc(1, sizeof(*context));

	if (!context)
		return NULL;
	context->device = device;
	context->ops[POLL_CQ] = context->ops[REQ_NOTIFY_CQ] = nothing;
	context->ops[POST_SEND] = context->ops[POST_RECV] = nothing;
	context->num_comp_vectors = 1;
	/* Never readable. */
	context->async_fd = eventfd(0, 0);
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	close(context->async_fd);
	free(context);
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	memset(attr, 0, sizeof(*attr));
	for (unsigned int limit = 0; limit < sizeof(attr->limits) / sizeof(attr->limits[0]); limit++)
		attr->limits[limit] = 1 << 14;
	attr->max_pkeys = 128;
	attr->phys_port_cnt = 1;
	return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	const struct ibv_device *device = context->device;

	memset(attr, 0, sizeof(*attr));
	attr->state = number_of(device, port, "state");
	attr->max_mtu = attr->active_mtu = 5;
	attr->gid_tbl_len = 8;
	attr->max_msg_sz = 1 << 30;
	attr->pkey_tbl_len = 128;
	attr->lid = number_of(device, port, "lid");
	attr->sm_lid = number_of(device, port, "sm_lid");
	attr->lmc = number_of(device, port, "lid_mask_count");
	attr->subnet_timeout = 18;
	attr->active_width = 2;
	attr->active_speed = 32;
	attr->link_layer = LINK_LAYER_INFINIBAND;
	return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, uint64_t gid[2])
{
	char file[64], line[64];

	snprintf(file, sizeof(file), "ports/%d/gids/%d", port, index);
	line_of(context->device, file, line);
	if (strlen(line) < 39)
		return -1;
	gid[0] = bytes_of(line);
	gid[1] = bytes_of(line + 20);
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, uint16_t *pkey)
{
	char file[64];

	snprintf(file, sizeof(file), "pkeys/%d", index);
	*pkey = htobe16(number_of(context->device, port, file));
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, uint16_t pkey)
{
	uint16_t found;

	for (int index = 0; index < 128; index++)
		if (!ibv_query_pkey(context, port, index, &found) && found == pkey)
			return index;
	return -1;
}

/* --- events: none ever comes ---------------------------------------------------------------------------------------------- */

static int wait_for_ever(void)
{
	for (;;)
		pause();
	return -1;
}

int ibv_get_async_event(struct ibv_context *context, void *event)
{
	(void)context, (void)event;
	return wait_for_ever();
}

void ibv_ack_async_event(void *event)
{
	(void)event;
}

const char *ibv_event_type_str(int event)
{
	(void)event;
	return "event";
}

int ibv_get_cq_event(void *channel, void **cq, void **cq_context)
{
	(void)channel, (void)cq, (void)cq_context;
	return wait_for_ever();
}

void ibv_ack_cq_events(void *cq, unsigned int count)
{
	(void)cq, (void)count;
}

/* --- objects: each begins with its context; they do nothing ---------------------------------------------------------------- */

static void *object_of(struct ibv_context *context)
{
	struct ibv_context **object = calloc(1, LARGEST_OBJECT);

	if (object)
		*object = context;
	return object;
}

static int destroy(void *object)
{
	free(object);
	return 0;
}

void *ibv_alloc_pd(struct ibv_context *context)
{
	return object_of(context);
}

void *ibv_create_comp_channel(struct ibv_context *context)
{
	return object_of(context);
}

void *ibv_create_cq(struct ibv_context *context)
{
	return object_of(context);
}

void *ibv_create_qp(struct ibv_context **pd)
{
	return object_of(*pd);
}

void *ibv_create_ah(struct ibv_context **pd)
{
	return object_of(*pd);
}

void *ibv_reg_mr(struct ibv_context **pd)
{
	return object_of(*pd);
}

int ibv_dealloc_pd(void *object) __attribute__((alias("destroy")));
int ibv_destroy_comp_channel(void *object) __attribute__((alias("destroy")));
int ibv_destroy_cq(void *object) __attribute__((alias("destroy")));
int ibv_destroy_qp(void *object) __attribute__((alias("destroy")));
int ibv_destroy_ah(void *object) __attribute__((alias("destroy")));
int ibv_dereg_mr(void *object) __attribute__((alias("destroy")));
int ibv_modify_qp(void) __attribute__((alias("nothing")));
int ibv_attach_mcast(void) __attribute__((alias("nothing")));
int ibv_detach_mcast(void) __attribute__((alias("nothing")));
