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

topologies=/tmp
port=7471
peers=10
each=$(some 100)

drivers=(oxib ib_ipoib)

# --- programs --------------------------------------------------------------------------------------------------------------------

servers=()

all_listen() {
	local host
	for host in "${hosts[@]}"; do
		listens_cm "$host" "$port" || return
	done
}

serve_all() { # connections of each
	local host
	servers=()
	for host in "${hosts[@]}"; do
		at "$host" timeout "$longest" ucmatose -b "$(v4_of "$host")" -p "$port" -c "$1" -C 1 -S 100 &
		servers+=($!)
	done
	eventually all_listen
}

wait_for_all() { # process...
	local process status=0
	for process in "$@"; do
		wait "$process" || status=1
	done
	return "$status"
}

# From h1 of n1 to each host of n2, at the same time.
call_all() { # connections to each
	local host processes=()
	for ((host = 1; host <= peers; host++)); do
		at h1 timeout "$longest" ucmatose -s "$(v4_of "h$host" 2)" -p "$port" -c "$1" -C 1 -S 100 &
		processes+=($!)
	done
	wait_for_all "${processes[@]}"
}

# The queries of paths that a command has sent.
asks() { # number, command...
	local number
	: >"$tracing/trace"
	"${@:2}" || return
	number=$(watched_queries)
	printf 'the subnet administrator was asked %d times, in %d tries\n' "$number" "$(watched_tries)"
	equal "$1" "$number"
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

# The kernel waits more than three minutes for an answer, instead of two seconds: one that is late on a busy machine is no query.
wait_long() { # milliseconds
	python3 selftests/acm/local_service.py patience "$1"
}

test_connections() { # to each, queries
	on_node 2 check "the servers of $peers peers listen" serve_all "$1"
	barrier listening
	on_node 1 check "$((peers * $1)) connections to $peers peers ask $2 times" asks "$2" call_all "$1"
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
