#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A peer across the router that runs the kernel's ib_ipoib and ib_cm: n1 has oxib, n3 the kernel's drivers, n2 is the router.
# The cache's entry has the peer's queue pair, as that does not take part in exchanges. IP in datagrams and by connections, and NVMe over
# RDMA, with the target on either side. n1 asks its subnet administrator once for the target's path, for all connections of the disk.
#
# nodes: 3
# kernels: fast
# timeout: 500

. selftests/lib/crossing.sh
. selftests/lib/nvme.sh

# The target is where nvme.sh looks for it.
target_node=3

address_of() { # v4, node of two
	v4_of_node "$target_node"
}

load_here() {
	case $NODE in
	1) load_oxib_here ;;
	3) load_kernel_here ;;
	esac
}

# The number of the queue pair in a hardware address.
queue_pair_in() { # hardware address
	printf '%d\n' "0x$(printf '%s\n' "$1" | sed -E 's/^..:(..):(..):(..):.*/\1\2\3/')"
}

# Each has another address in the other mode: it says whether connections are taken.
meet() {
	is_router || tell gid "$(gid_here)"
	is_router || tell address "$(hardware_address)"
	barrier told
	on_node 1 check "n1 has an entry of n3, with its queue pair" enter_far qpn "$(queue_pair_in "$(told address 3)")"
	on_node 3 check "n3 has a neighbour entry of n1" enter_neighbour "$(told address 1)"
	barrier met
}

set_mode_here() { # datagram|connected
	echo "$1" >/sys/class/net/ib0/mode && eventually carrier_is 1
}

offers_connections() {
	matches '^80:' "$(hardware_address)"
}

test_disk() { # node of the target, node of the host
	target_node=$1
	on_node "$1" check "the target on n$1 listens" export_namespace
	barrier exported
	if [ "$NODE" = "$2" ]; then
		modprobe nvme_rdma
		check "n$2 finds the target on n$1" connect
		check "n$2 writes the disk" write_all
		check "n$2 reads back what it wrote" reads_back
		check "n$2 disconnects" disconnect
	fi
	barrier used
	on_node "$1" check "the target on n$1 can go" unexport_namespace
	barrier gone
}

queries_are() { # number
	local number
	number=$(watched_queries)
	note "asked $number times"
	equal "$1" "$number"
}

lay_ground
if ! is_router; then
	check "n$NODE loads its drivers" load_here
	check "n$NODE: ib0 comes up" interface_here
fi
barrier up
meet
is_router || reaches_far datagrams
barrier reached
on_node 1 check "n1's queries of paths are counted" watch_queries
test_disk 3 1
test_disk 3 1
on_node 1 check "n1 asked once for the path to the target" queries_are 1
on_node 1 stop_watching_queries
test_disk 1 3
if ! is_router; then
	check "n$NODE goes to connected mode" set_mode_here connected
	check "n$NODE says so in its address" eventually offers_connections
fi
barrier connected
meet
is_router || reaches_far connections
on_node 1 check "n1 has made a connection" holds "$(counter connections_out 2>/dev/null || echo 0)" -gt 0
on_node 1 check "n1 has taken one" holds "$(counter connections_in 2>/dev/null || echo 0)" -gt 0
barrier done
if ! is_router; then
	ip link set ib0 down
	check "n$NODE: its drivers can be unloaded" eventually unload_here
fi
clear_ground
finish
