#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The ground goes from under HCAs at work: their net devices are deleted, or move to another network namespace; namespaces end
# with HCAs inside, also while these are being deleted; an HCA goes that is asked for its counters; softib.ko is unloaded.
#
# removal.sh [TIMES [short]]: how many times namespaces end while HCAs are deleted, 1; without a fabric of hosts with two ports,
# for the debug kernel. More in soak/fabric.
#
# nodes: 1
# kernels: fast
# timeout: 400

. selftests/lib/fabric.sh

times=${1:-1}
extent=${2:-whole}

# On the debug kernel a storm without pauses leaves the node no time for anything else.
storm=(-f) breath=0
[ "$KERNEL" != debug ] || storm=(-i 0.02) breath=0.05

hca_is_gone() { # host
	! rdma link show "$1/1" && ! at "$1" rdma link show "$1/1"
} 2>/dev/null

no_hca_is_left() {
	equal "" "$(rdma link show)"
}

no_cable_is_left() {
	equal "" "$(ip -o link show type veth)"
}

# In hosts that have IP over InfiniBand: datagrams to one, and to all, also to themselves; and what verbs there are.
traffic() { # host...
	local host
	start_traffic "$@"
	for host in "$@"; do
		eventually has_programs "$host" 3 || note "not all of them came into $host"
	done
}

start_traffic() { # host...
	local host
	for host in "$@"; do
		at "$host" ping -q "${storm[@]}" -s 1000 "$(v4_of h1)" &
		at "$host" ping -q "${storm[@]}" -s 4 -b 10.88.0.255 &
		at "$host" ping -q "${storm[@]}" "$(v4_of "$host")" &
	done
	while echo "$1 $2 reliable" >"$verbs_control"; do pause "$breath"; done &
} >/dev/null 2>&1

# A name is free again when the HCA before has ended, some time after it is no more to be seen.
start() { # topology: a fabric that works
	eventually fabric_up "$1" || return
	start_sm h1
	eventually all_active && ipoib_up "${hosts[@]}" && host_reaches h2 "$(v4_of h1)"
}

# When namespaces end, the kernel takes their HCAs out one after the other, and each waits in ib_core until its multicast
# groups are left: as long as ib_sa asks a subnet manager that has ended with its namespace.
eventually_each() { # command...
	local patience=$((patience * ${#hosts[@]}))
	eventually "$@"
}

# What the test leaves behind, and what runs in the hosts.
clear_away() {
	scripts/fabric down
	unset "sm_processes[h1]"
	wait
	equal "" "$(ip netns list)" && no_hca_is_left && no_cable_is_left
}

# The net devices of its cable stay as they are.
link_is() { # regular expression: what h1 finds of the switch's port to h4
	says h1 'smpquery -D portinfo 0,1 4' "^LinkState:\.+$1\$"
}

made_anew() { # host
	at "$1" rdma link delete "$1" && eventually at "$1" rdma link add "$1" type softib netdev port1
}

test_hca() {
	check "an HCA is deleted" at h4 rdma link delete h4
	check "there is no link at the other end of its cable" eventually link_is Down
	# As OpenSM does where it finds no neighbour.
	check "a subnet manager takes the link down there, too" at h1 ibportstate -D 0,1 4 down
	check "that makes no link of it" link_is Down
	check "it is made again" eventually at h4 rdma link add h4 type softib netdev port1
	check "it becomes active" eventually is_active h4
	check "it is deleted and made again at once" made_anew h4
	check "it becomes active" eventually is_active h4
}

test_net_device() {
	check "a fabric of four hosts" start star
	test_hca
	traffic h2 h3
	check "a net device is deleted under an HCA" ip -n h2 link delete port1
	check "the HCA goes" eventually hca_is_gone h2
	check "one is deleted under a switch, and with it the other end of its cable" ip link delete s1-3
	check "the HCA there goes" eventually hca_is_gone h3
	check "a net device moves to another namespace" ip -n h4 link set port1 netns h1 name moved
	check "the HCA goes with it" eventually hca_is_gone h4
	check "it can be an HCA's there" eventually at h1 rdma link add h4 type softib netdev moved
	ip -n h1 link set moved up
	check "that one becomes active" eventually at h1 grep -q ACTIVE /sys/class/infiniband/h4/ports/1/state
	check "what is left is cleared away" clear_away
}

# The namespaces go, and not what they held.
end_namespaces() {
	local host
	for host in "${hosts[@]}"; do
		ip netns pids "$host" | xargs -r kill -KILL
		ip netns delete "$host" || return
	done
}

test_namespaces() {
	local round
	check "a fabric of four hosts, again" start star
	traffic h2 h3
	check "its namespaces end" end_namespaces
	check "their net devices go, and with them the other ends of the cables" eventually_each no_cable_is_left
	check "their HCAs go" eventually_each no_hca_is_left
	check "all is cleared away" clear_away
	for ((round = 1; round <= times && tap_failures == 0; round++)); do
		check "namespaces end while their HCAs are deleted, $round of $times" end_of_both "$round"
	done
}

# Which of the two is the first to get at an HCA is different each time.
end_of_both() { # number
	local host
	eventually fabric_up star || return
	[ $(($1 % 2)) = 0 ] || eventually is_linked h1 || return
	for host in "${hosts[@]}"; do
		at "$host" rdma link delete "$host" &
	done
	end_namespaces
	wait
	eventually_each no_hca_is_left && scripts/fabric down
} 2>/dev/null

is_linked() { # host
	[ "$(port_field "$1" phys_state)" = '5: LinkUp' ]
}

# An HCA whose address handles take time is mostly at work on an answer.
write_slow_fabric() {
	printf '%s\n' 'host h1' 'host h2 command_ms=5' 'cable h1 h2' >/tmp/slow.fabric
}

test_questions() {
	local round topologies=/tmp
	write_slow_fabric
	check "two hosts, one with slow commands" eventually fabric_up slow
	start_sm h1
	check "both become active" eventually all_active
	at h1 python3 selftests/fabric/questions.py "$(umad_of h1)" "$(port_number h2 lid)" 0.006 &
	for ((round = 1; round <= 5; round++)); do
		check "the slow one answers, round $round" eventually is_asked h2
		check "it is deleted meanwhile" at h2 rdma link delete h2
		check "it is made again" eventually at h2 rdma link add h2 type softib netdev port1
		check "it becomes active" eventually is_active h2
	done
	end_processes $!
	check "the fabric is cleared away" clear_away
}

is_asked() { # host
	holds "$(at "$1" cat "/sys/class/infiniband/$1/ports/1/counters/port_rcv_packets")" -gt 20
}

test_unloading() {
	check "two hosts back to back" start pair
	traffic h2 h1
	check "softib.ko is unloaded under traffic" rmmod softib
	check "no HCA is left" no_hca_is_left
	check "softib.ko can be loaded again" load_softib
	check "what there was of the fabric is cleared away" clear_away
}

# What an HCA is told before it is made does not outlive the module: kmemleak would find it.
test_options() {
	local options=/sys/kernel/config/softib/hca
	check "an HCA has options" mkdir -p "$options/h1" "$options/h2"
	check "they go" rmdir "$options/h1" "$options/h2" "$options"
}

# A port takes the packets to itself, whichever it is.
test_second_port() {
	[ "$extent" = whole ] || return 0
	check "a fabric of hosts with two ports" eventually fabric_up two_ports
	start_sm h1
	check "both ports of h1 become active" eventually both_active
	check "its second port answers itself" says h1 "smpquery --Port 2 nodeinfo $(port_number2 h1 lid)" 'PortGuid'
	check "it is cleared away" clear_away
}

both_active() {
	[ "$(port_field h1 state 1)" = '4: ACTIVE' ] && [ "$(port_field h1 state 2)" = '4: ACTIVE' ]
}

port_number2() { # host, field
	printf '%d\n' "$(port_field "$1" "$2" 2)"
}

load_softib || bail_out "softib.ko could not be loaded"
check "the test of verbs can be loaded" load_verbs_test
# An HCA goes when a test on it has come to its end, and what these wait for does not come any more.
echo 1 >/sys/module/verbs_test/parameters/patience
test_net_device
test_namespaces
test_questions
test_unloading
test_options
test_second_port
check "the test of verbs can be unloaded" rmmod verbs_test
rmmod ib_ipoib 2>/dev/null
check "softib.ko can be unloaded" unload_softib
finish
