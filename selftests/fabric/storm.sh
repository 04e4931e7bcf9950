#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Fabrics are made and deleted while everything is at work on them: subnet manager, IP over InfiniBand, the test of verbs.
#
# storm.sh [TIMES]: more of them in soak/fabric.
#
# nodes: 1
# kernels: fast
# timeout: 600

. selftests/lib/fabric.sh

times=${1:-3}

# What goes on until the fabric has gone, whatever it says then; less than the processors can do, so that deleting is no matter
# of minutes.
noise() {
	local host
	renice -n 19 "$BASHPID"
	for host in "${hosts[@]}"; do
		at "$host" ping -q -i 0.005 -s 1000 "$(v4_of h1)" &
		at "$host" ping -q -i 0.02 -s 4 -b -B 10.88.0.255 &
		while at "$host" ibnetdiscover; do :; done &
	done
	while echo "h1 h2 reliable" >"$verbs_control"; do :; done &
	at h2 iperf3 -s &
	at h3 iperf3 -c "$(v4_of h2)" -t 1000 -P 4 -b 10M &
	# What was at work ends when its host has gone; the loop of verbs by its device.
	wait
} >/dev/null 2>&1

make_fabric() { # topology
	fabric_up "$1" || return
	start_sm h1
}

delete_fabric() {
	fabric_down || return
	unset "sm_processes[h1]"
	wait
}

# With all that is at work on them, the subnet manager's last: without it no subnet administrator answers hosts that leave their groups.
delete_hcas() {
	local number
	for ((number = ${#hosts[@]} - 1; number >= 0; number--)); do
		at "${hosts[number]}" rdma link delete "${hosts[number]}" || return
	done
}

# Before its subnet manager is done with it.
deleted_early() { # topology
	make_fabric "$1" && delete_fabric
}

deleted_when_active() { # topology
	make_fabric "$1" && eventually all_active && delete_fabric
}

deleted_under_traffic() { # topology
	make_fabric "$1" && eventually all_active && ipoib_up "${hosts[@]}" && host_reaches h2 "$(v4_of h1)" || return
	noise &
	pause 2
	delete_hcas && delete_fabric
}

load_softib || bail_out "softib.ko could not be loaded"
check "the test of verbs can be loaded" load_verbs_test
check "a fabric is deleted before it is up" deleted_early star
check "a fabric is deleted as its ports are active" deleted_when_active star
for ((number = 1; number <= times && tap_failures < 3; number++)); do
	check "fabric $number of $times is deleted under traffic" deleted_under_traffic star
done
check_equal "all of them were made" "$times" $((number - 1))
check_equal "no namespace is left" "" "$(ip netns list)"
check_equal "no RDMA device is left" "" "$(rdma link show)"
check_equal "no net device is left" "" "$(ip -o link show type veth)"
check "it works after that: a fabric" fabric_up star
start_sm h1
check "it works after that: ports are active" eventually all_active
check "it works after that: IP over InfiniBand" ipoib_up "${hosts[@]}"
check "it works after that: a ping" eventually host_reaches h1 "$(v4_of h4)"
check "the test of verbs can be unloaded" rmmod verbs_test
take_down_fabric
finish
