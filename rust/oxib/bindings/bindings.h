/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The C interfaces oxib is bound to. bindgen makes bindings_generated.rs of it; rust/oxib/bindings/parameters says which
 * headers' contents are taken.
 *
 * Inline functions and macros of the kernel are functions in the C files here, by subject, so that Rust can call them. One
 * statement each where that is possible: no logic lives there.
 */

#include <linux/hrtimer_types.h>

#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/if_infiniband.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rhashtable.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <net/addrconf.h>
#include <net/arp.h>
#include <net/gro.h>
#include <net/ip.h>
#include <net/ndisc.h>
#include <net/neighbour.h>
#include <net/netdev_queues.h>
#include <net/page_pool/helpers.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pack.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>

#include "cm_counters.h"
#include "acm_export.h"
#include "cm_export.h"
#include "cm_trace.h"
#include "genetlink.h"
#include "hash_table.h"
#include "link.h"
#include "lock.h"
#include "napi.h"
#include "neighbour.h"
#include "netdev.h"
#include "netlink_socket.h"
#include "pages.h"
#include "params.h"
#include "rdma.h"
#include "roce.h"
#include "skb.h"
