#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The ground goes from under ib0 while traffic of every kind crosses it: the RDMA device is removed, the Ethernet device
# goes down, the module is unloaded. Each time everything comes back and works.
#
# removal.sh [TIMES]: how many such events, one after the other, 6. On the debug kernel it is a part of debug/ipoib; a hundred are
# soak/removal's.
#
# nodes: 2
# kernels: fast
# timeout: 300

. selftests/lib/node.sh

times=${1:-6}

# --- traffic ---

# On the debug kernel a shower takes one or two seconds, and a storm without pauses leaves the node no time for anything else: an
# event took a minute.
pause=0
[ "$KERNEL" != debug ] || pause=2

storm() {
	in_background nice -n 10 python3 selftests/ipoib/storm.py "10.99.0.$peer" "fd00:99::$peer" "$pause"
}

# Packets come and go, at this moment: a hundred more of each within the time-out.
traffic_flows() {
	local sent received
	sent=$(statistic tx_packets)
	received=$(statistic rx_packets)
	eventually packets_reach $((sent + 100)) $((received + 100)) || {
		printf 'sent %s, then %s; received %s, then %s\n' "$sent" "$(statistic tx_packets)" \
			"$received" "$(statistic rx_packets)"
		ethtool -S ib0
		return 1
	}
}

packets_reach() { # sent, received
	[ "$(statistic tx_packets)" -ge "$1" ] && [ "$(statistic rx_packets)" -ge "$2" ]
}

# ib0 is there again: configured as before, it works as before.
works_again() {
	if ! comes_back; then
		what_there_is
		return 1
	fi
}

comes_back() {
	eventually ib_exists && ib_up && eventually answers "10.99.0.$peer" && eventually answers "fd00:99::$peer" &&
		traffic_flows
}

what_there_is() {
	ip -s link show ib0
	ip neighbour show
	ethtool -S ib0 | grep -v ' 0$'
	rdma resource show qp
	ip maddress show dev eth0
	grep -H . /sys/class/infiniband/rxe0/ports/1/gids/* | grep -v 0000:0000:0000:0000:0000:0000:0000:0000
	cat /sys/class/infiniband/rxe0/ports/1/hw_counters/*
}

# --- what happens to it ---

remove_rxe() {
	rdma link delete rxe0 && ib_is_gone && rdma link add rxe0 type rxe netdev eth0 && works_again
}

ethernet_down() {
	ip link set eth0 down && eventually carrier_is 0 && ip link set eth0 up && eventually carrier_is 1 && works_again
}

unload() {
	rmmod oxib && ib_is_gone && load_oxib && works_again
}

bring_up 9000
storm
barrier storm
if [ "$NODE" = 1 ]; then
	check "traffic flows" traffic_flows
	for ((event = 1; event <= times; event++)); do
		case $((event % 3)) in
		1) check "event $event: the RDMA device is removed" remove_rxe ;;
		2) check "event $event: the module is unloaded" unload ;;
		0) check "event $event: the Ethernet device goes down" ethernet_down ;;
		esac
		[ "$tap_failures" -le 3 ] || break
	done
	check_equal "all events were gone through" "$times" $((event - 1))
	check "the module is unloaded for good, under traffic" unload_oxib
	check "ib0 has gone with it" ib_is_gone
	stop_jobs
	rdma link delete rxe0
	barrier done
else
	barrier done
	take_down
fi
finish
