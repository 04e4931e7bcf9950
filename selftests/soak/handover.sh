#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Queries of paths in a large subnet, with either driver: while nothing happens, and when another subnet manager takes over.
#
# handover.sh [oxib|ib_ipoib [LEAVES [PEERS]]]: each leaf switch (16) has 32 hosts, each host sends to so many others (4).
#
# nodes: 1
# kernels: fast
# timeout: 3600
# memory: 6144
# soak: yes

. selftests/lib/infiniband.sh

driver=${1:-oxib}
leaves=${2:-16}
peers=${3:-4}
quiet=120
watched=60

# The addresses of infiniband.sh are enough for 254 hosts.
v4_of() { # host
	local number
	number=$(host_number "$1")
	printf '10.88.%d.%d\n' $((number >> 8)) $((number & 255))
}

# Peers of a host are on its own leaf and on others.
peers_of() { # number of the host
	local each distance=1
	for ((each = 0; each < peers; each++)); do
		printf 'h%d\n' $((($1 - 1 + distance) % ${#hosts[@]} + 1))
		distance=$((distance * 5 + 1))
	done
}

# A packet and its answer every two seconds: no neighbour goes stale for want of use.
talk() {
	local host peer
	for host in "${hosts[@]}"; do
		for peer in $(peers_of "$(host_number "$host")"); do
			ip netns exec "$host" ping -q -i 2 "$(v4_of "$peer")" >/dev/null &
			jobs_running+=($!)
		done
	done
}

# Peers of the first, the middle and the last host.
some_answer() {
	local host peer
	for host in h1 "h$((${#hosts[@]} / 2))" "h${#hosts[@]}"; do
		for peer in $(peers_of "$(host_number "$host")"); do
			host_answers "$host" "$(v4_of "$peer")" || return
		done
	done
}

queries_in() { # seconds, what happens meanwhile
	check "$driver: queries of paths are watched" watch_queries
	[ $# = 1 ] || check "$driver: ${*:2}" "${@:2}"
	pause "$1"
	asked=$(watched_queries)
}

another_takes_over() {
	start_sm h2 "sm_priority 15" && eventually master_is h3 h2
}

topologies=/tmp
printf 'fattree leaves=%d spines=4 hosts=32\n' "$leaves" >/tmp/soak.fabric
bring_up_fabric soak "h1 sweep_interval 0"
load_driver "$driver" || bail_out "$driver could not be loaded"
check "$driver: each of ${#hosts[@]} hosts has an interface with carrier" interfaces_up "${hosts[@]}"
talk
check "$driver: hosts reach their peers" eventually some_answer
pause 30
queries_in "$quiet"
note "$driver: ${#hosts[@]} hosts with $peers peers each: $asked queries of paths in $quiet s"
queries_in "$watched" another_takes_over
note "$driver: $asked in $watched s after another subnet manager took over"
check "$driver: hosts still reach their peers" eventually some_answer
stop_jobs
check "$driver can be unloaded" unload_driver
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
