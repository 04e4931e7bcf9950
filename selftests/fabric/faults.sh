#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Memory that cannot be had: while softib is loaded, while fabrics are built, while OpenSM, IP over InfiniBand and the test of
# verbs are at work. Each failure is clean, and once there is memory again everything works.
#
# faults.sh [SAMPLES]: how many allocations of a call to fail, spread evenly, 12; 0 for each of them, as soak/faults has it.
#
# nodes: 1
# kernels: debug
# timeout: 1800
# memory: 2048

. selftests/lib/fabric.sh
. selftests/lib/memory.sh

samples=${1:-12}
switch=/sys/kernel/config/softib/switch

test_loading() {
	check "allocations fail while softib.ko is loaded" \
		python3 selftests/lib/nth.py load "$MODULES/softib.ko" --samples "$samples"
	check "it loads when none does" load_softib
}

test_switch() {
	ip link add t0 type veth peer name t1
	ip link set t0 up && ip link set t1 up
	if ! { mkdir -p "$switch/t" && echo "t0 t1" >"$switch/t/ports"; }; then bail_out "there is no switch"; fi
	check "allocations fail while a switch is enabled" \
		python3 selftests/lib/nth.py enable "$switch/t/enable" --samples "$samples"
	rmdir "$switch/t" "$switch"
	ip link delete t0
}

# Some are built, and some are refused; what is built can be used and taken down.
build_roughly() {
	local round built=0 before
	before=$(failed_allocations)
	for ((round = 0; round < 10; round++)); do
		knob probability 5
		if scripts/fabric up "$topologies/star.fabric"; then
			built=$((built + 1))
			knob probability 0
			scripts/fabric down || return
		fi
		knob probability 0
		equal "" "$(ip netns list)" && equal "" "$(rdma link show)" || return
	done
	printf '%d of %d were built\n' "$built" "$round"
	more_failed "$before"
}

# A fifth of softib's allocations fail: packets are lost, and sent again where that is promised.
work_roughly() {
	local before
	before=$(failed_allocations)
	knob probability 20 || return
	at h2 ping -q -f -c 300 -W 1 -s 1000 "$(v4_of h1)"
	at h3 ibnetdiscover
	at h4 timeout 20 iperf3 -c "$(v4_of h1)" -t 5
	echo "h1 h2 reliable" >"$verbs_control"
	echo "h1 h2 queue" >"$verbs_control"
	knob probability 0
	more_failed "$before"
}

works() {
	eventually all_active && eventually host_reaches h2 "$(v4_of h1)" -s 20000 && eventually discovers_its_subnet star h1
}

arm || bail_out "this kernel cannot inject faults"
everything
modprobe -a ib_core ib_umad
test_loading
only softib || bail_out "where softib.ko lies in memory is not to be found"
test_switch
check "fabrics are built while allocations fail" build_roughly
fabric_up star || bail_out "the fabric could not be built"
start_sm h1
check "ports become active" eventually all_active
check "IP over InfiniBand comes up" ipoib_up "${hosts[@]}"
check "the test of verbs can be loaded" load_verbs_test
in_background_at h1 iperf3 -s
echo 5 >/sys/module/verbs_test/parameters/patience
check "everything is at work while allocations fail" work_roughly
knob probability 0
everything
check "it works once there is memory" works
echo 60 >/sys/module/verbs_test/parameters/patience
verbs "with memory: " h1 h2 reliable
check "the test of verbs can be unloaded" rmmod verbs_test
take_down_fabric
finish
