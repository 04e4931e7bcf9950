#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Unmodified programs between two nodes, of which one or both run oxib's connection manager, over IPv4 and IPv6.
#
# programs.sh [few] [N1:N2...]: the connection managers of n1, which calls, and of n2, which serves; few: a program of each kind, for
# machines that are emulated.
#
# nodes: 2
# kernels: fast
# timeout: 500

. selftests/lib/cm.sh

few=
if [ "${1:-}" = few ]; then
	few=yes
	shift
fi
combinations=("$@")
[ $# -gt 0 ] || combinations=(oxib:oxib oxib:kernel kernel:oxib)

# Over IPv6 not mckey, as rdma_cm refuses IPv6 groups on RoCE v2, and not cmtime, which meets its peer over IPv4 alone.
programs[v4]="rping ucmatose udaddy mckey rstream riostream ib_send_lat ib_write_bw cmtime"
programs[v6]="rping ucmatose udaddy rstream riostream ib_send_lat ib_write_bw"
# Connections and service resolutions that these make at least.
requests=$((2 * connections)) resolutions=40
if [ -n "$few" ]; then
	programs[v4]="rping udaddy mckey rstream ib_write_bw"
	programs[v6]="rping riostream"
	requests=4 resolutions=20
fi

# --- a combination ---------------------------------------------------------------------------------------------------------

# The cable and the rxe device stay; what stands on them changes.
test_combination() {
	local mine=${combination%:*}
	[ "$NODE" = 1 ] || mine=${combination#*:}
	check "$combination: n$NODE runs the connection manager of $mine" load_cm "$mine"
	barrier loaded
	run_programs v4
	run_programs v6
	on_node 1 check "$combination: the requests were counted" holds "$(cm_counter tx_msgs req)" -gt "$requests"
	on_node 1 check "$combination: and the answers" holds "$(cm_counter rx_msgs rep)" -gt "$requests"
	on_node 2 check "$combination: the service resolutions were counted" holds "$(cm_counter rx_msgs sidr_req)" -ge "$resolutions"
	note_counters
	check "$combination: n$NODE can unload it" unload_cm
	barrier unloaded
}

ground_up
slow_names
for combination in "${combinations[@]}"; do
	test_combination
done
ground_down
finish
