// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a module must say in C: parameters that the module! macro does not know, aliases, load order. Ranges are checked
 * by ipoib/options.rs, so that a bad value is named in the log.
 */

#include <linux/module.h>
#include <net/rtnetlink.h>

#include "params.h"

MODULE_VERSION(OXIB_VERSION);

unsigned int oxib_send_queue_size = 256;
module_param_named(send_queue_size, oxib_send_queue_size, uint, 0444);
MODULE_PARM_DESC(send_queue_size,
		 "Packets in each send ring: a power of two from 128 to 8192 (default 256)");

unsigned int oxib_recv_queue_size = 256;
module_param_named(recv_queue_size, oxib_recv_queue_size, uint, 0444);
MODULE_PARM_DESC(recv_queue_size,
		 "Packets in the receive ring: a power of two from 128 to 8192 (default 256)");

unsigned int oxib_tx_queues;
module_param_named(tx_queues, oxib_tx_queues, uint, 0444);
MODULE_PARM_DESC(tx_queues,
		 "Transmit queues of an interface: 1 to 64, or 0 for as many as CPUs and completion vectors allow, and one for a child (default 0)");

unsigned int oxib_max_connections = 1024;
module_param_named(max_connections, oxib_max_connections, uint, 0444);
MODULE_PARM_DESC(max_connections,
		 "Connections of an interface in connected mode, both directions together: 1 to 32768; further peers get datagrams (default 1024)");

unsigned int oxib_connection_idle = 512;
module_param_named(connection_idle, oxib_connection_idle, uint, 0444);
MODULE_PARM_DESC(connection_idle,
		 "Seconds without a packet after which a connection is closed: 1 to 86400 (default 512)");

char *oxib_devices = "";
module_param_named(devices, oxib_devices, charp, 0444);
MODULE_PARM_DESC(devices,
		 "RDMA devices to use: names separated by commas (default: all)");

bool oxib_ipoib = true;
module_param_named(ipoib, oxib_ipoib, bool, 0444);
MODULE_PARM_DESC(ipoib,
		 "Make IP over InfiniBand interfaces; 0 leaves that to ib_ipoib (default 1)");

unsigned int oxib_half_open = 4096;
module_param_named(half_open, oxib_half_open, uint, 0444);
MODULE_PARM_DESC(half_open,
		 "Connections of a listener that are not finished, at most: 1 or more; requests beyond that are dropped (default 4096)");

char *oxib_acm = "prefer";
module_param_named(acm, oxib_acm, charp, 0444);
MODULE_PARM_DESC(acm,
		 "Address cache: off, prefer (before ARP and neighbour discovery) or only (default prefer)");

bool oxib_acm_learn;
module_param_named(acm_learn, oxib_acm_learn, bool, 0444);
MODULE_PARM_DESC(acm_learn,
		 "Enter the addresses that peers without an entry say are theirs when they ask for one of ours (default 0)");

char *oxib_acm_programs = "exact";
module_param_named(acm_programs, oxib_acm_programs, charp, 0444);
MODULE_PARM_DESC(acm_programs,
		 "Paths for programs that connect by rdma_cm: off (they ask the subnet administrator), exact (known for each service ID and QoS class) or shared (one for all of them, and for IP) (default exact)");

unsigned int oxib_acm_entries = 1048576;
module_param_named(acm_entries, oxib_acm_entries, uint, 0444);
MODULE_PARM_DESC(acm_entries,
		 "Entries of a network namespace's address cache that an administrator makes, at most: 1 to 67108864 (default 1048576)");

/* `modprobe ipoib`, by the name that users know. */
MODULE_ALIAS("ipoib");
/* `ip link add … type ipoib` */
MODULE_ALIAS_RTNL_LINK("ipoib");
