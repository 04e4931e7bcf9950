#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The kernel's IP over InfiniBand in connected mode on oxib's connection manager, in one node or both. Large packets pass in one
# piece after the peer was down, was unloaded or did not answer, after RTUs were lost, and while senders reject their requests.
#
# ib_ipoib.sh [N1:N2...]: the connection managers of n1 and n2.
#
# nodes: 2
# kernels: fast
# timeout: 400

. selftests/lib/cm.sh
. selftests/lib/fabric.sh
. selftests/lib/cable.sh

combinations=("$@")
if [ $# = 0 ]; then
	combinations=(oxib:oxib oxib:kernel kernel:oxib)
	[ "$KERNEL" != debug ] || combinations=(oxib:oxib)
fi
# The payload of a packet that does not fit into a datagram.
large=20000

interface_up() {
	eventually ib_exists && echo connected >/sys/class/net/ib0/mode &&
		ip address replace "10.88.0.$NODE/24" brd + dev ib0 && ip link set ib0 up && eventually carrier_is 1
}

is_connected_mode() {
	equal connected "$(cat /sys/class/net/ib0/mode)" && equal 65520 "$(cat /sys/class/net/ib0/mtu)"
}

has_no_connection() {
	! rdma resource show qp | grep -q 'type RC'
}

# ib_ipoib closes connections in the background, and does not wait for that when it is unloaded (see infiniband.sh).
unload_ipoib() {
	ip link set ib0 down && eventually has_no_connection && modprobe -r ib_ipoib
}

load_ipoib() {
	modprobe ib_ipoib && interface_up
}

# Without a connection, ib_ipoib reports large packets as too big, and routes cache that.
passes_large() {
	ip route flush cache
	answers "10.88.0.$peer" -M do -s "$large"
}

check_passes() { # when
	on_node 1 check "$combination: $1, large packets go whole" eventually passes_large
	on_node 1 check "$combination: all of them" reaches "10.88.0.$peer" -M do -s "$large"
	barrier passed
}

transfers() { # iperf3 option...
	iperf iperf3 -n 1M -c 10.88.0.2 "$@" && iperf_received 100000
}

test_tcp() {
	on_node 2 in_background iperf3 -s
	barrier serving
	on_node 1 check "$combination: TCP to n2" transfers
	on_node 1 check "$combination: TCP from n2" transfers -R
	barrier transferred
	stop_jobs
}

goes_down() { # node
	on_node "$1" check "$combination: n$1 goes down" ip link set ib0 down
	on_node "$1" check "$combination: and comes up" interface_up
	barrier up
	check_passes "after n$1 was down"
}

is_reloaded() { # node
	on_node "$1" check "$combination: n$1 unloads ib_ipoib with connections" unload_ipoib
	on_node "$1" check "$combination: and loads it again" load_ipoib
	barrier loaded
	check_passes "after n$1 had no driver"
}

loses_connection() {
	! answers "10.88.0.$peer" -M do -s "$large"
}

is_silent() {
	on_node 2 check "$combination: n2 hears nothing" go_deaf
	barrier deaf
	on_node 1 check "$combination: n1 loses the connection" loses_connection
	barrier lost
	on_node 2 check "$combination: n2 hears again" hear_again
	barrier hearing
	check_passes "after n2 was silent"
}

loses_rtu() {
	on_node 1 ip link set ib0 down
	on_node 2 check "$combination: n2 does not get RTUs" drop_rtu
	barrier dropping
	on_node 1 interface_up
	on_node 1 check "$combination: without RTU, large packets go whole" eventually passes_large
	barrier whole
	on_node 2 check "$combination: an RTU was thrown away" eventually has_dropped
	on_node 2 check "$combination: n2 hears them again" hear_again
	barrier hearing
	check_passes "after an RTU was lost"
}

# The service ID contains the queue pair of the interface; the private data is the sender's queue pair and its MTU.
hammer() {
	hammer_service $((0x1000000000000000 | $(told qpn 2))) 64 0000000100010000
}

answers_are() { # number: as many answers of the ping in the background, or more
	holds "$(grep -c 'bytes from' /tmp/hammered)" -ge "$1"
}

# The connection that is there already carries large packets all the time.
is_hammered_under_traffic() {
	local answers
	eventually answers_are 1 || return
	answers=$(grep -c 'bytes from' /tmp/hammered)
	hammer && eventually answers_are $((answers + 2))
}

is_hammered() {
	on_node 2 tell qpn "$(queue_pair)"
	barrier told
	# Truncated here, so that the previous combination's answers are not counted.
	on_node 1 eval ': >/tmp/hammered'
	on_node 1 in_background sh -c "exec ping -i 0.2 -s $large 10.88.0.2 >/tmp/hammered"
	on_node 1 check "$combination: requests are sent and rejected by their senders" is_hammered_under_traffic
	stop_jobs
	barrier hammered
	check_passes "after that"
}

test_combination() {
	local mine=${combination%:*}
	[ "$NODE" = 1 ] || mine=${combination#*:}
	check "$combination: n$NODE runs the connection manager of $mine" load_cm "$mine"
	check "$combination: n$NODE has IP over InfiniBand of the kernel's on it" load_ipoib
	check "$combination: n$NODE: in connected mode" is_connected_mode
	barrier up
	check_passes "at first"
	test_tcp
	goes_down 2
	goes_down 1
	is_reloaded 2
	is_silent
	loses_rtu
	is_hammered
	check_refused "$combination: n$NODE does not unload ib_cm while it is used" rmmod ib_cm
	barrier refused
	on_node 1 check "$combination: n1 unloads ib_ipoib with connections" unload_ipoib
	barrier first
	on_node 1 check "$combination: n1 can unload its connection manager" unload_cm
	on_node 2 check "$combination: n2 unloads ib_ipoib after it" unload_ipoib
	on_node 2 check "$combination: n2 can unload its connection manager" unload_cm
	barrier unloaded
}

cable_up
for combination in "${combinations[@]}"; do
	test_combination
done
cable_down
finish
