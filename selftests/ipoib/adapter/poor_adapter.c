// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes from an RDMA device what the drivers of some adapters lack, for as long as this is loaded: groups of queue pairs
 * (`attach_mcast`), as bnxt_re and hns have none. Nobody is to use the device when it is loaded.
 */

#include <linux/module.h>
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>

static char *netdev;
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "The Ethernet device of the RDMA device");

static struct ib_device *device;
static int (*attach_mcast)(struct ib_qp *qp, union ib_gid *gid, u16 lid);

static int __init poor_adapter_init(void)
{
	struct net_device *ethernet = dev_get_by_name(&init_net, netdev ?: "");

	if (!ethernet)
		return -ENODEV;
	device = ib_device_get_by_netdev(ethernet, RDMA_DRIVER_UNKNOWN);
	dev_put(ethernet);
	if (!device)
		return -ENODEV;
	attach_mcast = device->ops.attach_mcast;
	device->ops.attach_mcast = NULL;
	return 0;
}

static void __exit poor_adapter_exit(void)
{
	device->ops.attach_mcast = attach_mcast;
	ib_device_put(device);
}

module_init(poor_adapter_init);
module_exit(poor_adapter_exit);
MODULE_DESCRIPTION("Takes from an RDMA device what some adapters lack, for tests");
MODULE_LICENSE("GPL");
