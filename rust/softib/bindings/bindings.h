/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The C interfaces softib is bound to, as rust/oxib/bindings/bindings.h names those of oxib.
 */

#include <linux/hrtimer_types.h>

#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pack.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_netlink.h>

#include "../../oxib/bindings/lock.h"
#include "inline.h"
#include "programs.h"
