#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# NVMe over RDMA across a router, by the IP addresses of oxib's interfaces: the disk of n3, used by n1, in an InfiniBand subnet
# each; n2 between them is a router. How often the subnet administrators are asked is counted: never by who accepts a
# connection, once by who makes one. (Programs in user space need verbs there, which softib does not have.)
#
# nodes: 3
# kernels: fast
# machine: qemu
# timeout: 500

. selftests/crossing.sh
. selftests/cm.sh
. selftests/nvme.sh

# The target is on n3.
address_of() { # v4, node of two: 2 is the far one
	if [ "$1" = v4 ]; then v4_of_node $((2 * $2 - 1)); else v6_of_node $((2 * $2 - 1)); fi
}

port_directory=/sys/class/infiniband/hca0/ports/1

# Connections that this node has asked for: on a busy machine a program asks again for one that takes too long.
requests() {
	printf '%d\n' $(($(cm_counter tx_msgs req) - $(cm_counter tx_retries req)))
}

# --- questions to the subnet administrator ---------------------------------------------------------------------------------------

# Each subnet's manager is on its host, so questions to it are not on the cable: who asks calls this function, whoever it is.
tracing=/sys/kernel/tracing

count_queries() {
	mountpoint -q "$tracing" || mount -t tracefs tracefs "$tracing"
	echo 'p:queries ib_sa_path_rec_get' >"$tracing/kprobe_events" && echo 1 >"$tracing/events/kprobes/queries/enable"
}

all_queries() {
	awk '$1 == "queries" { print $2 }' "$tracing/kprobe_profile"
}

queries_are() { # least, most
	local number
	number=$(all_queries)
	note "asked $number times"
	holds "$number" -ge "$1" && holds "$number" -le "$2"
}

stop_counting() {
	echo 0 >"$tracing/events/kprobes/queries/enable"
	: >"$tracing/kprobe_events"
}

path_queries() {
	ethtool -S ib0 | awk '$1 == "sa_path_queries:" { print $2 }'
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
before=0
if ! is_router; then
	before=$(path_queries)
	requested=$(requests)
	check "n$NODE: queries are counted" count_queries
fi
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
# One for each connection by rdma_cm itself.
[ "$NODE" != 1 ] || check "n1 asked once for each connection, at most" queries_are 1 $(($(requests) - requested))
on_node 3 check "n3 asked for no path" queries_are 0 0
if ! is_router; then
	check_equal "n$NODE: oxib asked for no path more" "$before" "$(path_queries)"
	stop_counting
fi
is_router || check "n$NODE: oxib and its connection manager can be unloaded" unload_cm
clear_ground
finish
