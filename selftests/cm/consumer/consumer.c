// SPDX-License-Identifier: GPL-2.0-only
/*
 * A consumer that uses the connection manager from within the kernel, with nothing between them. The connections have no
 * queue pairs. Without `to` it serves until it is unloaded. With it, loading it opens and closes connections, one after
 * the other in each of some threads, or with `at_once` all at once; loading fails if one of them does not come up or does not
 * end in order. With `watch` it only records how requests are reported.
 */

#include <linux/inet.h>
#include <linux/module.h>
#include <linux/netdevice.h>

#include "consumer.h"

static char *netdev = "eth0";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "The Ethernet device; the first port of its RDMA device is used");

static char *from;
module_param(from, charp, 0444);
MODULE_PARM_DESC(from, "This node's IPv4 address");

static char *to;
module_param(to, charp, 0444);
MODULE_PARM_DESC(to, "The IPv4 address of the node that serves");

static unsigned int parallel = 8;
module_param(parallel, uint, 0444);
MODULE_PARM_DESC(parallel, "Connections at a time (8)");

static unsigned int cycles = 1000;
module_param(cycles, uint, 0444);
MODULE_PARM_DESC(cycles, "Connections in all (1000)");

static unsigned int at_once;
module_param(at_once, uint, 0444);
MODULE_PARM_DESC(at_once, "Connections that are opened at once, instead of all others (0)");

static unsigned int manager = 1;
module_param(manager, uint, 0444);
MODULE_PARM_DESC(manager, "The queue pair of the peer's connection manager, as if it had redirected us there (1)");

static bool watch;
module_param(watch, bool, 0444);
MODULE_PARM_DESC(watch, "Record how requests that their senders reject are reported (N)");

static struct ib_device *device;

u32 next_qpn(void)
{
	static atomic_t number;

	return 0x100 + (atomic_inc_return(&number) & 0x7fffff);
}

static int open_and_close(void)
{
	struct way way = {};
	__be32 own, there;
	int error;

	if (!from || !in4_pton(from, -1, (u8 *)&own, -1, NULL) || !in4_pton(to, -1, (u8 *)&there, -1, NULL)) {
		pr_err("cm_consumer: from and to have to be IPv4 addresses\n");
		return -EINVAL;
	}
	if (!parallel) {
		pr_err("cm_consumer: parallel has to be at least 1\n");
		return -EINVAL;
	}
	way.manager = manager;
	error = find_way(&way, device, own, there);
	if (error)
		return error;
	error = at_once ? storm(&way, at_once) : call(&way, parallel, cycles);
	lose_way(&way);
	return error;
}

static struct ib_device *find_device(void)
{
	struct net_device *ethernet = dev_get_by_name(&init_net, netdev);
	struct ib_device *found;

	if (!ethernet)
		return NULL;
	found = ib_device_get_by_netdev(ethernet, RDMA_DRIVER_UNKNOWN);
	dev_put(ethernet);
	return found;
}

static int __init consumer_init(void)
{
	int error;

	device = find_device();
	if (!device) {
		pr_err("cm_consumer: there is no RDMA device on %s\n", netdev);
		return -ENODEV;
	}
	if (to)
		error = open_and_close();
	else
		error = watch ? watch_begin(device) : serve_begin(device);
	if (error)
		ib_device_put(device);
	return error;
}

static void __exit consumer_exit(void)
{
	if (watch && !to)
		watch_end();
	else if (!to)
		serve_end();
	ib_device_put(device);
}

module_init(consumer_init);
module_exit(consumer_exit);
MODULE_DESCRIPTION("Consumer of the InfiniBand connection manager, for tests");
MODULE_LICENSE("GPL");
