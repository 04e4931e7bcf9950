#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Many connections of programs to peers that run the kernel's ib_ipoib and ib_cm: n1 has oxib, n2 the peers, on one fabric. The
# subnet administrator is asked once for each peer, and then no more.
#
# nodes: 2
# kernels: fast
# timeout: 500

. selftests/lib/acm.sh
# shellcheck source=selftests/lib/connections.sh
. selftests/lib/connections.sh

topologies=/tmp
port=7471
peers=10
each=$(some 100)

drivers=(oxib ib_ipoib)

# --- programs --------------------------------------------------------------------------------------------------------------------

# From h1 of n1 to each host of n2, at the same time.
call_all() { # connections to each
	local host addresses=()
	for ((host = 1; host <= peers; host++)); do
		addresses+=("$(v4_of "h$host" 2)")
	done
	call_connections "$1" "$port" h1 "${addresses[@]}"
}

# --- what is tested --------------------------------------------------------------------------------------------------------------

runs_kernel_cm() {
	[ -d /sys/module/ib_cm ] && ! grep -q '^oxib ' /proc/modules
}

reaches_all() {
	local host
	for ((host = 1; host <= peers; host++)); do
		eventually host_answers h1 "$(v4_of "h$host" 2)" || return
	done
}

test_connections() { # to each, queries
	on_node 2 check "the servers of $peers peers listen" serve_connections "$1" "$port" "${hosts[@]}"
	barrier listening
	on_node 1 check "$((peers * $1)) connections to $peers peers ask $2 times" asks "$2" "$2" call_all "$1"
	barrier called
	on_node 2 check "their servers have them all" wait_for_all "${servers[@]}"
}

ulimit -n 65536
number=1
[ "$NODE" = 1 ] || number=$peers
printf '%s\n' "star hosts=$number" 'cable s1 @eth0' >"$topologies/$shared_topology.fabric"
bring_up_shared_fabric "${drivers[NODE - 1]}"
check "n$NODE: the connection manager is loaded" load_managers_of "$driver"
on_node 2 check "n2 runs the kernel's connection manager" runs_kernel_cm
barrier managers
if [ "$NODE" = 1 ]; then
	check "n1 reaches all peers" reaches_all
	check "the kernel waits long for a local service" wait_long 200000
	watch_queries
fi
test_connections "$each" "$peers"
test_connections 10 0
if [ "$NODE" = 1 ]; then
	stop_watching_queries
	check "the kernel waits as ever" wait_long 2000
fi
on_node 1 check "n1: the connection manager can be unloaded" eventually unload_managers
on_node 2 check "n2: the connection manager can be unloaded" unload_managers_of ib_ipoib
take_down_shared_fabric
finish
