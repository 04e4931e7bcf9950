#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What ethtool changes of ib0 while it is in use: lengths of the rings, number of queues, gathering of completions; what is
# refused; and what it shows of driver and link.
#
# nodes: 2
# kernels: fast
# timeout: 240

. selftests/lib/node.sh

peer4=10.99.0.$peer

current() { # ethtool's option, field: as it is now
	ethtool "$1" ib0 | sed -n '/Current/,$p' | awk -v name="$2:" '$1 == name { print $2 }'
}

most() { # ethtool's option, field: the most there can be
	ethtool "$1" ib0 | sed '/Current/,$d' | awk -v name="$2:" '$1 == name { print $2 }'
}

# By the names that ib_ipoib has for them.
stack_is_shown() {
	local name
	for name in rx_dropped tx_dropped multicast; do
		equal "$(statistic "$name")" "$(counter "$name")" || return
	done
}

test_driver() {
	check "-i names driver and version" matches '^driver: oxib$' "$(ethtool -i ib0)"
	check "-i has a line for the firmware" matches '^firmware-version:' "$(ethtool -i ib0)"
	check "-S counts" matches '^ *rx_packets: [0-9]+$' "$(ethtool -S ib0)"
	check "-S shows what the stack counts" eventually stack_is_shown
	check "-k shows features" matches '^generic-receive-offload: on' "$(ethtool -k ib0)"
	check "-k takes one away" ethtool -K ib0 gro off
	check "and gives it back" ethtool -K ib0 gro on
	check "the link's settings are shown" matches 'Link detected: yes' "$(ethtool ib0)"
	check "the port is of no usual kind" matches 'Port: Other' "$(ethtool ib0)"
}

is_used() { # what is not asserted in numbers: both ways, all sizes
	reaches "$peer4" && reaches "fd00:99::$peer" && reaches "$peer4" -s 20000
}

# Packets that keep coming while the queues change.
rain() {
	while :; do
		ping -q -f -c 2000 -W 1 "$peer4"
	done
}

test_rings() {
	local before=() after
	mapfile -t before < <(current -g TX && current -g RX)
	check_equal "the rings are as the module was told" "256 256" "${before[*]}"
	check "longer rings are taken" ethtool -G ib0 tx 512 rx 1024
	check_equal "the send rings are as long" 512 "$(current -g TX)"
	check_equal "the receive ring is as long" 1024 "$(current -g RX)"
	check "ib0 has carrier again" eventually carrier_is 1
	check "its address has a new queue pair's number, and there is such a queue pair" \
		matches "lqpn $(queue_pair) type UD state RTS" "$(rdma resource show qp)"
	check "the peer is reached" eventually is_used
	check "a length between is taken for the next power of two" ethtool -G ib0 tx 300
	check_equal "and shown as that" 512 "$(current -g TX)"
	check_equal "the other is as it was" 1024 "$(current -g RX)"
	check "the shortest are taken" ethtool -G ib0 tx 128 rx 128
	check "the peer is reached over them" eventually is_used
	after=$(most -g TX)
	check "the longest are taken" ethtool -G ib0 tx "$after" rx "$after"
	check "the peer is reached over them" eventually is_used
	check_refused "none at all is refused" ethtool -G ib0 tx 0
	check_refused "too short is refused" ethtool -G ib0 rx 64
	check "in words" matches 'give rings of 128 to' "$(ethtool -G ib0 rx 64 2>&1)"
	check_refused "too long is refused" ethtool -G ib0 tx $((after + 1))
	check_equal "the rings are as before" "$after $after" "$(current -g TX) $(current -g RX)"
	ip link set ib0 down
	check "they change while ib0 is down" ethtool -G ib0 tx 256 rx 256
	check "it comes up again" ib_up
	check "the peer is reached" eventually is_used
}

test_queues() {
	local most
	most=$(most -l TX)
	check "one transmit queue is taken" ethtool -L ib0 tx 1
	check_equal "it is one" 1 "$(current -l TX)"
	check_equal "the stack has one" 1 "$(find /sys/class/net/ib0/queues -name 'tx-*' | wc -l)"
	check "ib0 has carrier again" eventually carrier_is 1
	check "the peer is reached" eventually is_used
	check "all transmit queues are taken" ethtool -L ib0 tx "$most"
	check_equal "there are so many" "$most" "$(current -l TX)"
	check "the peer is reached" eventually is_used
	check_refused "none is refused" ethtool -L ib0 tx 0
	check_refused "too many are refused" ethtool -L ib0 tx $((most + 1))
	check_equal "there are as many as before" "$most" "$(current -l TX)"
}

# soft-RoCE has no such thing.
test_completions() {
	check "-c shows what is there" matches 'rx-usecs:[[:space:]]+0' "$(ethtool -c ib0)"
	check "what is there already is taken" ethtool -C ib0 rx-usecs 0 rx-frames 0
	check_refused "what the device cannot do is refused" ethtool -C ib0 rx-usecs 10
	check "in words" matches 'rxe0 cannot coalesce' "$(ethtool -C ib0 rx-usecs 10 2>&1)"
	check_refused "more than there is room for is refused" ethtool -C ib0 rx-usecs 65536
	check_refused "what IPoIB does not have is refused" ethtool -C ib0 tx-usecs 10
	check "-c shows what it did" matches 'rx-usecs:[[:space:]]+0' "$(ethtool -c ib0)"
}

change_again_and_again() { # times
	local round
	for ((round = 0; round < $1; round++)); do
		packets_pass || return
		ethtool -G ib0 tx $((128 << round % 3)) rx $((128 << (round + 1) % 3)) || return
		packets_pass || return
		ethtool -L ib0 tx $((1 + round % 2)) 2>/dev/null
	done
}

bring_up 9000
if [ "$NODE" = 1 ]; then
	check "the peer is reached" eventually is_used
	test_driver
	test_rings
	test_queues
	test_completions
	barrier rain
	in_background rain
	check "rings and queues change again and again, packets coming and going" change_again_and_again "$(some 10)"
	stop_jobs
	check "the peer is reached after that" eventually is_used
else
	barrier rain
	in_background rain
fi
barrier done
take_down
finish
