#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The first act of `make demo`: two nodes on one Ethernet cable. Both do what n1 shows; n2 then serves.
#
# nodes: 2
# timeout: 300
# demo: yes

. selftests/lib/node.sh

# shellcheck source=selftests/lib/demo.sh
. selftests/lib/demo.sh

# The same on n1 alone, where n2 is the other end.
run_here() { # command...
	on_node 1 run "$@"
}

# A server of its own for each, which listens when n1 comes; an amount, not a time: on a busy machine a server gives a test up that
# takes longer than its time and ten seconds.
transfer() { # iperf3 option...
	on_node 2 in_background iperf3 -s
	on_node 2 eventually listens || failed=1
	barrier serving
	run_here iperf3 -c 10.99.0.2 "$@"
	barrier served
	stop_jobs
}

listens() {
	[ -n "$(ss -Hltn 'sport = :5201')" ]
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

heading "Ping, IPv4 and IPv6"
run_here ping -c 3 10.99.0.2
run_here ping -c 3 fd00:99::2
run_here ip neighbour show dev ib0

heading "iperf3, TCP"
transfer -n 32M

heading "iperf3, UDP"
transfer -n 16M -u -b 50M -l 4000

heading "The interface, with its 20-byte address"
run_here ip -d -s link show ib0

heading "What oxib counted"
run_here ethtool -S ib0
barrier done

run rmmod oxib
end
