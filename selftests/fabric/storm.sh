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

. selftests/fabric.sh

times=${1:-10}

# What goes on until the fabric has gone, whatever it says then.
noise() {
	local host
	for host in "${hosts[@]}"; do
		at "$host" ping -q -f -s 1000 "$(v4_of h1)" &
		at "$host" ping -q -f -s 4 -b -B 10.88.0.255 &
		while at "$host" ibnetdiscover; do :; done &
	done
	while echo "h1 h2 reliable" >"$verbs_control"; do :; done &
	at h2 iperf3 -s &
	at h3 iperf3 -c "$(v4_of h2)" -t 1000 -P 4 &
} >/dev/null 2>&1

# Deleted at once, as soon as ports are active, or with traffic on everything.
round() { # number, topology
	fabric_up "$2" || return
	start_sm h1
	case $(($1 % 3)) in
	1) ;;
	2) eventually all_active || return ;;
	0)
		eventually all_active && ipoib_up "${hosts[@]}" && host_reaches h2 "$(v4_of h1)" || return
		noise
		pause 2
		;;
	esac
	fabric_down || return
	unset "sm_processes[h1]"
	# What was at work ends, now that its host has gone; the loop of verbs by its device.
	wait
}

load_softib || bail_out "softib.ko could not be loaded"
check "the test of verbs can be loaded" load_verbs_test
for ((number = 1; number <= times && tap_failures < 3; number++)); do
	topology=star
	[ $((number % 5)) != 0 ] || topology=pair
	check "fabric $number of $times, $topology" round "$number" "$topology"
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
