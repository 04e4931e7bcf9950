#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Memory that cannot be had: while loading, while coming up, while sending, receiving and joining groups. Each failure
# is clean, and once there is memory again everything works.
#
# faults.sh [SAMPLES]: how many allocations of a call to fail, spread evenly, 12; 0 for each of them, as soak/faults has it.
#
# nodes: 2
# kernels: debug
# timeout: 1800

. selftests/lib/node.sh
. selftests/lib/memory.sh

samples=${1:-12}

test_loading() {
	check "allocations fail while oxib.ko is loaded" python3 selftests/lib/nth.py load "$MODULES/oxib.ko" --samples "$samples"
	check "it loads when none does" load_oxib
	check "ib0 works then" ib_works
}

ib_works() {
	ib_up && eventually answers 10.99.0.2 && eventually answers fd00:99::2
}

test_coming_up() {
	check "ib0 goes down" ip link set ib0 down
	check "allocations fail while ib0 comes up" python3 selftests/lib/nth.py up ib0 --samples "$samples"
	check "ib0 works when none does" ib_works
}

# A third of oxib's allocations fail while packets of all kinds come and go.
rough_traffic() {
	knob probability 33 || return
	ip neighbour flush dev ib0
	ping -q -f -c 500 -W 1 -s 100 10.99.0.2
	ping -q -f -c 100 -W 1 -s 4000 10.99.0.2
	ping -q -f -c 100 -W 1 -s 20000 fd00:99::2
	timeout 20 iperf3 -c 10.99.0.2 -t 5
	timeout 20 iperf3 -c 10.99.0.2 -t 5 -R -u -b 10M
	knob probability 0
}

dropped_for_memory() {
	printf '%d\n' $(($(counter rx_drop_memory) + $(counter tx_drop_memory)))
}

test_traffic() {
	local before
	before=$(dropped_for_memory)
	check "traffic while every third allocation fails" fails_some rough_traffic
	knob probability 0
	check "packets were dropped for want of memory, and counted" holds "$(dropped_for_memory)" -gt "$before"
	check "the peer is reached once there is memory" eventually answers 10.99.0.2 -s 4000
	check "by IPv6, too" eventually answers fd00:99::2 -s 4000
}

groups_are() { # number
	[ "$(counter multicast_groups)" = "$1" ]
}

test_groups() {
	local before failed
	before=$(counter multicast_groups)
	failed=$(failed_allocations)
	knob probability 33
	in_background python3 selftests/ipoib/group.py hold 40
	check "allocations fail while they are joined" eventually more_failed "$failed"
	sleep 5
	knob probability 0
	check "groups that could not be joined for want of memory are joined later" eventually groups_are $((before + 40))
	knob probability 33
	stop_jobs
	sleep 5
	knob probability 0
	check "groups are left again" eventually groups_are "$before"
}

# The rxe device goes and comes, so that ib0 is removed and made, while allocations of oxib fail.
rough_devices() {
	local round
	knob probability 10 || return
	for ((round = 0; round < 5; round++)); do
		rdma link delete rxe0
		rdma link add rxe0 type rxe netdev eth0 || return
		ip link set ib0 up
		sleep 0.5
	done
	knob probability 0
	rdma link delete rxe0 && rdma link add rxe0 type rxe netdev eth0
}

test_devices() {
	check "devices come and go while allocations fail" fails_some rough_devices
	knob probability 0
	check "ib0 works once there is memory" ib_works
}

make_rxe 9000
if [ "$NODE" = 2 ]; then
	load_oxib || bail_out "oxib.ko could not be loaded"
	ib_up || bail_out "ib0 did not come up"
	in_background iperf3 -s
	barrier ready
	barrier done
	take_down
	finish
fi

barrier ready
arm || bail_out "this kernel cannot inject faults"
everything
test_loading
only oxib || bail_out "where oxib.ko lies in memory is not to be found"
test_coming_up
test_traffic
test_groups
test_devices
everything
barrier done
take_down
finish
