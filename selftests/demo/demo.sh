#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What `make demo` shows: two nodes on one Ethernet cable. Both do what n1 shows; n2 then serves.
#
# nodes: 2
# timeout: 300
# demo: yes

. selftests/node.sh

failed=0

heading() { # text
	on_node 1 printf '\n== %s\n\n' "$1"
}

# Run a command as an administrator types it, and show it with its output on n1.
run() { # command...
	local output
	output=$("$@" 2>&1) || failed=1
	[ "$NODE" = 1 ] || return 0
	printf '# %s\n' "$*"
	[ -z "$output" ] || printf '%s\n' "$output"
}

# The same on n1 alone, where n2 is the other end.
run_here() { # command...
	on_node 1 run "$@"
}

heading "A soft-RoCE device on the Ethernet device of each node"
ethernet_up 9000
run modprobe rdma_rxe
run rdma link add rxe0 type rxe netdev eth0
eventually rxe_is_active
run rdma link show

heading "oxib.ko gives it an IP interface"
run insmod "$MODULES/oxib.ko"
eventually ib_exists || failed=1
run ip -brief link show ib0

heading "ib0 is configured like any interface"
run ip address add "10.99.0.$NODE/24" dev ib0
run ip address add "fd00:99::$NODE/64" dev ib0 nodad
run ip link set ib0 up
eventually carrier_is 1 || failed=1
barrier up

[ "$NODE" = 1 ] || in_background iperf3 -s
barrier serving

heading "Ping, IPv4 and IPv6"
run_here ping -c 3 10.99.0.2
run_here ping -c 3 fd00:99::2
run_here ip neighbour show dev ib0

heading "iperf3, TCP"
run_here iperf3 -c 10.99.0.2 -t 3

heading "iperf3, UDP"
run_here iperf3 -c 10.99.0.2 -u -b 50M -l 4000 -t 3

heading "The interface, with its 20-byte address"
run_here ip -d -s link show ib0

heading "What oxib counted"
run_here ethtool -S ib0
barrier done

run rmmod oxib
[ "$failed" = 0 ] || note "something failed on node n$NODE"
exit "$failed"
