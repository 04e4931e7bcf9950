#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Memory that cannot be had, on InfiniBand links: while loading, while interfaces and children come up and go to connected mode,
# while paths are asked for, groups joined and connections made, and while HCAs go and come. Each failure is clean, and once
# there is memory again everything works.
#
# faults.sh [SAMPLES [MODE...]]: how many allocations of a call to fail, spread evenly, 12; 0 for each of them, as soak/faults
# has it. What happens after these calls happens in each mode: datagram and connected, unless they are named.
#
# nodes: 1
# kernels: debug
# timeout: 1800
# memory: 2048

. selftests/lib/children.sh
. selftests/lib/memory.sh

samples=${1:-12}
modes=("${@:2}")
[ ${#modes[@]} -gt 0 ] || modes=(datagram connected)
fail_each() { # host, call of nth.py, what
	at "$1" python3 selftests/lib/nth.py "$2" "$3" --samples "$samples"
}

hosts_up() {
	host_up h2 && host_up h3
}

test_calls() {
	check "allocations fail while oxib.ko is loaded" fail_each h2 load "$MODULES/oxib.ko"
	check "it loads when none does" load_driver oxib
	check "interfaces come up, with children" hosts_up
	check "they work" works
	check "ib0 goes down" at h2 ip link set ib0 down
	only oxib || bail_out "where oxib.ko lies in memory is not to be found"
	check "allocations fail while ib0 comes up" fail_each h2 up ib0
	check "the child goes" at h2 ip link delete blue
	check "allocations fail while a child is made" fail_each h2 child ib0
	check "ib0 and its child come up when none does" host_up h2
	check "allocations fail while ib0 goes to connected mode" fail_each h2 connect ib0
	check "it works in datagram mode" works
}

# A third of oxib's allocations fail, with destinations, groups and connections that are new.
rough_traffic() {
	knob probability 33 || return
	flush_neighbours h2 h3
	at h2 ip link set ib0 down
	at h2 ip link set ib0 up
	at h2 ping -q -f -c 300 -W 1 -s 100 "$(v4_of h3)"
	at h2 ping -q -f -c 100 -W 1 -s 20000 "$(v6_of h3)"
	at h3 timeout 20 ping -q -i 0.05 -c 100 -W 1 -s 1500 "$(child_of h2)"
	knob probability 0
}

groups_are() { # number
	equal "$1" "$(counter_at h3 multicast_groups)"
}

test_groups() {
	local before failed
	before=$(counter_at h3 multicast_groups)
	failed=$(failed_allocations)
	knob probability 33
	in_background_at h3 python3 selftests/ipoib/group.py hold 40
	check "allocations fail while they are joined" eventually more_failed "$failed"
	pause 5
	knob probability 0
	check "groups that could not be joined for want of memory are joined later" eventually groups_are $((before + 40))
	knob probability 33
	stop_jobs
	pause 5
	knob probability 0
	check "groups are left again" eventually groups_are "$before"
}

rough_devices() {
	local round
	knob probability 10 || return
	for ((round = 0; round < 5; round++)); do
		at h3 rdma link delete h3
		at h3 rdma link add h3 type softib netdev port1 || return
		at h3 ip link set ib0 up
		pause 0.5
	done
	knob probability 0
	at h3 rdma link delete h3 && at h3 rdma link add h3 type softib netdev port1 && eventually is_active h3
}

test_devices() {
	check "devices come and go while allocations fail" fails_some rough_devices
	knob probability 0
	check "the interfaces come up once there is memory" host_up h3
	check "they work" works
}

arm || bail_out "this kernel cannot inject faults"
everything
bring_up_fabric star h1
write_blue h2 h3
test_calls
for mode in "${modes[@]}"; do
	check "$mode: interfaces come up" hosts_up
	check "$mode: they work" works
	check "$mode: traffic while every third allocation fails" fails_some rough_traffic
	knob probability 0
	check "$mode: interfaces come up once there is memory" hosts_up
	check "$mode: they work" works
	test_groups
	test_devices
done
everything
check "oxib can be unloaded" unload_driver
stop_jobs
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
