// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client of RDMA devices that keeps each device that is being removed, as long as its parameter keeps is Y. Clients that came
 * later have lost the device by then; those that came earlier still have it.
 */

#include <linux/delay.h>
#include <linux/module.h>
#include <rdma/ib_verbs.h>

static bool keeps = true;
module_param(keeps, bool, 0644);
MODULE_PARM_DESC(keeps, "Whether devices that are being removed are kept (Y); to be N when this is unloaded");

static int add_device(struct ib_device *device)
{
	return 0;
}

static void remove_device(struct ib_device *device, void *data)
{
	while (READ_ONCE(keeps))
		msleep(20);
}

static struct ib_client client = {
	.name = "keeping_client",
	.add = add_device,
	.remove = remove_device,
};

static int __init keeping_client_init(void)
{
	return ib_register_client(&client);
}

static void __exit keeping_client_exit(void)
{
	ib_unregister_client(&client);
}

module_init(keeping_client_init);
module_exit(keeping_client_exit);
MODULE_DESCRIPTION("Client of RDMA devices that keeps those being removed, for tests");
MODULE_LICENSE("GPL");
