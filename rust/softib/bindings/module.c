// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a module must say in C.
 */

#include <linux/module.h>
#include <rdma/rdma_netlink.h>

/* `rdma link add ... type softib` loads the module. */
MODULE_ALIAS_RDMA_LINK("softib");
