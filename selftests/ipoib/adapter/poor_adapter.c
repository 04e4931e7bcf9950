// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes an RDMA device like what the drivers of some adapters have, for as long as this is loaded. Nobody is to use the device
 * when this is loaded, and when it is unloaded.
 *
 *  lacks=groups     no groups of queue pairs (`attach_mcast`), as with bnxt_re and hns
 *  lacks=networks   no type of the network header in completions, as with mlx4
 *  lacks=restarts   no queue pair that is started a second time, as with irdma
 *  on_bus=1         below another device, as an adapter's is below that on its bus
 *
 * Its port comes to the Ethernet device that is written to the parameter moved_to, as that of a bond does when a link fails: one
 * of the network namespace of whoever writes. That may be while the RDMA device is in use.
 */

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/platform_device.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

static char *netdev;
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "The Ethernet device of the RDMA device");

static char *lacks;
module_param(lacks, charp, 0444);
MODULE_PARM_DESC(lacks, "What the RDMA device lacks: groups, networks or restarts");

static bool on_bus;
module_param(on_bus, bool, 0444);
MODULE_PARM_DESC(on_bus, "Whether the RDMA device is below another one");

static struct ib_device *device;
static struct ib_device_ops operations;
static struct device *parent;
static struct platform_device *bus;

static int poll_cq(struct ib_cq *cq, int count, struct ib_wc *wc)
{
	int index, done = operations.poll_cq(cq, count, wc);

	for (index = 0; index < done; index++) {
		wc[index].wc_flags &= ~IB_WC_WITH_NETWORK_HDR_TYPE;
		wc[index].network_hdr_type = RDMA_NETWORK_IB;
	}
	return done;
}

/* The queue pairs that have been started, by their numbers. */
static DEFINE_XARRAY(started);

static int modify_qp(struct ib_qp *qp, struct ib_qp_attr *attributes, int mask, struct ib_udata *udata)
{
	bool starts = (mask & IB_QP_STATE) && attributes->qp_state == IB_QPS_INIT;
	int error;

	if (starts && xa_load(&started, qp->qp_num))
		return -EINVAL;
	error = operations.modify_qp(qp, attributes, mask, udata);
	if (!error && starts)
		error = xa_err(xa_store(&started, qp->qp_num, xa_mk_value(1), GFP_KERNEL));
	return error;
}

static int take(const char *what)
{
	if (!strcmp(what, "groups"))
		device->ops.attach_mcast = NULL;
	else if (!strcmp(what, "networks"))
		device->ops.poll_cq = poll_cq;
	else if (!strcmp(what, "restarts"))
		device->ops.modify_qp = modify_qp;
	else
		return -EINVAL;
	return 0;
}

static int put_on_bus(void)
{
	bus = platform_device_register_simple("poor_adapter", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(bus))
		return PTR_ERR(bus);
	device->dev.parent = &bus->dev;
	return 0;
}

static int move_to(const char *name, const struct kernel_param *parameter)
{
	char buffer[IFNAMSIZ + 1];
	struct net_device *ethernet;
	int error;

	if (!device)
		return -ENODEV;
	strscpy(buffer, name, sizeof(buffer));
	ethernet = dev_get_by_name(current->nsproxy->net_ns, strim(buffer));
	if (!ethernet)
		return -ENODEV;
	error = ib_device_set_netdev(device, ethernet, 1);
	dev_put(ethernet);
	return error;
}

static const struct kernel_param_ops moves = {
	.set = move_to,
};

module_param_cb(moved_to, &moves, NULL, 0200);
MODULE_PARM_DESC(moved_to, "The Ethernet device that the port comes to");

static void restore(void)
{
	device->dev.parent = parent;
	device->ops = operations;
	ib_device_put(device);
	xa_destroy(&started);
	if (!IS_ERR_OR_NULL(bus))
		platform_device_unregister(bus);
}

static int __init poor_adapter_init(void)
{
	struct net_device *ethernet = dev_get_by_name(&init_net, netdev ?: "");
	int error = 0;

	if (!ethernet)
		return -ENODEV;
	device = ib_device_get_by_netdev(ethernet, RDMA_DRIVER_UNKNOWN);
	dev_put(ethernet);
	if (!device)
		return -ENODEV;
	operations = device->ops;
	parent = device->dev.parent;
	if (lacks)
		error = take(lacks);
	if (!error && on_bus)
		error = put_on_bus();
	if (error)
		restore();
	return error;
}

static void __exit poor_adapter_exit(void)
{
	restore();
}

module_init(poor_adapter_init);
module_exit(poor_adapter_exit);
MODULE_DESCRIPTION("Makes an RDMA device like those of some adapters, for tests");
MODULE_LICENSE("GPL");
