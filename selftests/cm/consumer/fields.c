// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens and closes connections between HCAs of one kernel whose parameters all differ from each other, and says in
 * /proc/cm_fields what both consumers are told of them: every field of an event, and of a queue pair's attributes. Loading
 * fails if a connection does not come up or does not end in order.
 */

#include <linux/module.h>
#include <rdma/ib_cache.h>

#include "fields.h"

static char *names[HOSTS];
static int given;
module_param_array_named(hosts, names, charp, &given, 0444);
MODULE_PARM_DESC(hosts, "Three RDMA devices: two of one subnet, and one of another");

static ushort router;
module_param(router, ushort, 0444);
MODULE_PARM_DESC(router, "The LID of the router in the subnet of the first two");

static struct host hosts[HOSTS];

static const struct call calls[] = {
	{ "local", HOST_B, IB_QPT_RC, 0 },
	{ "local with a hop", HOST_B, IB_QPT_RC, 1 },
	{ "local with an alternate path", HOST_B, IB_QPT_RC, 0, .alternate = true },
	{ "local unreliable", HOST_B, IB_QPT_UC, 0 },
	{ "local XRC", HOST_B, IB_QPT_XRC_INI, 0 },
	{ "routed", HOST_C, IB_QPT_RC, 64 },
	{ "routed with both directions", HOST_C, IB_QPT_RC, 64, .directions = true },
	{ "routed unreliable", HOST_C, IB_QPT_UC, 2 },
	{ "astray", HOST_B, IB_QPT_RC, 0, .astray = true },
};

static int learn(struct ib_device *device)
{
	struct ib_port_attr port;
	int i;

	for (i = 0; i < HOSTS; i++)
		if (!strcmp(dev_name(&device->dev), names[i]))
			break;
	if (i == HOSTS || ib_query_port(device, PORT, &port))
		return 0;
	hosts[i].gid = rdma_get_gid_attr(device, PORT, 0);
	if (IS_ERR(hosts[i].gid))
		return 0;
	hosts[i].lid = port.lid;
	hosts[i].device = device;
	return 0;
}

static void forget(struct ib_device *device, void *data)
{
	int i;

	for (i = 0; i < HOSTS; i++) {
		if (hosts[i].device != device)
			continue;
		rdma_put_gid_attr(hosts[i].gid);
		hosts[i].device = NULL;
	}
}

static struct ib_client client = {
	.name = "cm_fields",
	.add = learn,
	.remove = forget,
};

static int make_calls(void)
{
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		if (!hosts[i].device)
			return -ENODEV;
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		int error = make_call(&calls[i], i, hosts, router);

		if (error) {
			pr_err("cm_fields: %s: the call failed with %d\n", calls[i].name, error);
			return error;
		}
	}
	return say_overflows() ? -ENOSPC : 0;
}

static int __init fields_init(void)
{
	int error;

	if (given != HOSTS)
		return -EINVAL;
	error = say_begin();
	if (error)
		return error;
	error = ib_register_client(&client);
	if (error)
		goto unsaid;
	error = make_calls();
	if (!error)
		return 0;
	ib_unregister_client(&client);
unsaid:
	say_end();
	return error;
}

static void __exit fields_exit(void)
{
	ib_unregister_client(&client);
	say_end();
}

module_init(fields_init);
module_exit(fields_exit);
MODULE_DESCRIPTION("Says field by field what the InfiniBand connection manager tells its consumers, for tests");
MODULE_LICENSE("GPL");
