#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# NVMe over RDMA across a router, by the IP addresses of oxib's interfaces: the disk of n3, used by n1, in an InfiniBand subnet
# each; n2 between them is a router. How often the subnet administrators are asked is counted: never by the end that accepts
# connections, once by the end that makes them, however many.
#
# nodes: 3
# kernels: fast
# timeout: 500

. selftests/lib/crossing.sh
. selftests/lib/cm.sh
. selftests/lib/nvme.sh

# The target is on n3.
address_of() { # v4, node of two: 2 is the far one
	if [ "$1" = v4 ]; then v4_of_node $((2 * $2 - 1)); else v6_of_node $((2 * $2 - 1)); fi
}

# --- questions to the subnet administrator ---------------------------------------------------------------------------------------

# Each subnet's manager is on its host, so questions to it are not on the cable. Those of this node are counted.
queries_are() { # least, most
	local number
	number=$(watched_queries)
	note "asked $number times"
	holds "$number" -ge "$1" && holds "$number" -le "$2"
}

# --- programs --------------------------------------------------------------------------------------------------------------------

test_disk() { # description
	check "$1: the host finds the target" connect
	check "$1: it writes the disk" write_all
	check "$1: it reads back what it wrote" reads_back
	check "$1: it disconnects" disconnect
}

lay_ground
if ! is_router; then
	check "n$NODE: oxib loads, with its connection manager" load_cm oxib
	check "n$NODE: ib0 comes up" interface_here
	tell gid "$(gid_here)"
fi
barrier up
is_router || check "n$NODE learns of the other" enter_far
barrier learned
if [ "$NODE" = 1 ]; then
	check "n1 reaches n3 by IPv4" eventually answers "$(v4_of_node 3)"
	check "n1 reaches n3 by IPv6" eventually answers "$(v6_of_node 3)"
fi
barrier reached
is_router || check "n$NODE: queries are counted" watch_queries
for nvme_family in v4 v6; do
	on_node 3 check "the target listens to IP$nvme_family" export_namespace
	barrier "exported $nvme_family"
	if [ "$NODE" = 1 ]; then
		modprobe nvme_rdma
		test_disk "across the router by IP$nvme_family"
	fi
	barrier "used $nvme_family"
	on_node 3 check "the target can go" unexport_namespace
done
# The target's service has one path for each of IPv4, which names a QoS class, and IPv6, which names a traffic class.
on_node 1 check "n1 asked once for the target, by IPv4 and by IPv6" queries_are 2 2
on_node 3 check "n3 asked for no path" queries_are 0 0
is_router || stop_watching_queries
is_router || check "n$NODE: oxib and its connection manager can be unloaded" unload_cm
clear_ground
finish
