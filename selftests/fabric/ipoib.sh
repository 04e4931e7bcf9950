#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The kernel's IP over InfiniBand on the fabric: ping, iperf3 and multicast in datagram and in connected mode; the subnet
# manager restarts; a cable is pulled and put back. Before that: an HCA has two ports in one subnet.
#
# nodes: 1
# kernels: fast
# timeout: 900

. selftests/lib/fabric.sh

amount=(-n 2M)
[ "$KERNEL" != debug ] || amount=(-n 150K -l 4K)

transfers() { # iperf3 option...: what the receiver got, in bytes
	iperf ip netns exec h1 iperf3 "${amount[@]}" "$@" && iperf_received 10000
}

test_traffic() { # mode, MTU
	local size
	for size in 8 1000 $(($2 - 28)) 20000 60000; do
		check "$1: ping with $size bytes over IPv4" host_reaches h1 "$(v4_of h2)" -s "$size"
		check "$1: ping with $size bytes over IPv6" host_reaches h1 "$(v6_of h2)" -s "$size"
	done
	check "$1: TCP to h2" transfers -c "$(v4_of h2)"
	check "$1: TCP from h2" transfers -c "$(v4_of h2)" -R
	check "$1: TCP over IPv6, four connections" transfers -c "$(v6_of h2)" -P 4
	check "$1: UDP to h2" transfers -c "$(v4_of h2)" -u -b 10M -l 1000
	# The kernel's driver gives up a connection, with what waits for it, when one acknowledgement is late.
	check "$1: every host reaches every other" eventually all_reach
}

# At the same time.
all_reach() {
	local from to process processes=() status=0
	for from in "${hosts[@]}"; do
		for to in "${hosts[@]}"; do
			[ "$from" != "$to" ] || continue
			host_reaches "$from" "$(v4_of "$to")" &
			processes+=($!)
		done
	done
	for process in "${processes[@]}"; do
		wait "$process" || status=1
	done
	return "$status"
}

# h3 and h4 are members of a group, and h2 is not; what h1 says to it, members hear.
test_multicast() { # group
	local host
	for host in h2 h3 h4; do
		member=--member
		[ "$host" != h2 ] || member=
		: >"/tmp/heard.$host"
		# shellcheck disable=SC2086 # nothing, or a word
		at "$host" python3 selftests/ipoib/group.py listen $member "$1" 5000 >"/tmp/heard.$host" &
		jobs_running+=($!)
		check "$1: $host listens" eventually grep -q listening "/tmp/heard.$host"
	done
	check "$1: what h1 says is heard by members" eventually is_heard "$1" h3 h4
	check "$1: h2 hears what is for it alone" eventually h2_hears "$(own_of h2 "$1")" 'to h2'
	check_refused "$1: but not what is for members" grep -q 'to all' /tmp/heard.h2
	stop_jobs
}

# Of the group's family.
own_of() { # host, group
	if [[ $2 == *:* ]]; then v6_of "$1"; else v4_of "$1"; fi
}

h2_hears() { # address, text
	at h1 python3 selftests/ipoib/group.py say "$1" 5000 "$2"
	grep -qx "$2" /tmp/heard.h2
}

is_heard() { # group, host...
	local host
	at h1 python3 selftests/ipoib/group.py say "$1" 5000 'to all'
	shift
	for host in "$@"; do
		grep -q 'to all' "/tmp/heard.$host" || return
	done
}

set_mode() { # datagram|connected, MTU
	local host
	for host in "${hosts[@]}"; do
		at "$host" sh -c "echo $1 >/sys/class/net/ib0/mode" && at "$host" ip link set ib0 mtu "$2" || return
	done
	for host in "${hosts[@]}"; do
		eventually at "$host" grep -q 1 /sys/class/net/ib0/carrier || return
	done
}

flush_neighbours() {
	local host
	for host in "${hosts[@]}"; do
		at "$host" ip neighbour flush dev ib0
	done
}

# A new subnet manager asks everybody to register again, and knows no group before that.
test_sm_restart() {
	check "h1 and h2 know each other" host_reaches h1 "$(v4_of h2)"
	check "the subnet manager is stopped" stop_sm h1
	check "without one, who knows each other goes on" host_reaches h1 "$(v4_of h2)"
	start_sm h2
	check "a subnet manager comes up elsewhere" eventually master_is h3 h2
	flush_neighbours
	check "hosts that do not know each other find each other" eventually all_reach
	test_multicast 239.9.9.10
}

no_carrier() { # host
	at "$1" grep -q 0 /sys/class/net/ib0/carrier
}

carrier() { # host
	at "$1" grep -q 1 /sys/class/net/ib0/carrier
}

port_is_down() { # host
	[ "$(port_field "$1" state)" = '1: DOWN' ]
}

test_cable() {
	check "the cable of h3 is pulled" pull h3
	check "its port is down" eventually port_is_down h3
	check "its interface has no carrier" eventually no_carrier h3
	check_refused "it is not reached" host_answers h1 "$(v4_of h3)"
	check "the others are" host_reaches h1 "$(v4_of h4)"
	check "the cable is put back" put_back h3
	check "its port becomes active" eventually is_active h3
	check "its interface has carrier" eventually carrier h3
	check "it is reached" eventually host_reaches h1 "$(v4_of h3)"
	check "it reaches others" eventually host_reaches h3 "$(v6_of h4)"
	check "the cable of h4 is pulled at the switch's end" ip link set s1-4 down
	check "its port is down" eventually port_is_down h4
	check "the cable is put back" ip link set s1-4 up
	check "it is reached" eventually host_reaches h4 "$(v4_of h1)"
}

# At both ports of h1.
counted() { # cause
	printf '%d\n' $(($(port_field h1 "hw_counters/$1" 1) + $(port_field h1 "hw_counters/$1" 2)))
}

counts_from() { # cause, number: at least
	holds "$(counted "$1")" -ge "$2"
}

has_two_members() {
	eventually at h1 ip link set ib1 up 2>/dev/null && eventually at h1 grep -q 1 /sys/class/net/ib1/carrier
}

# Packets to the group that both of h1's interfaces are in come to both of its ports, and each port has one member.
test_two_ports() {
	local came refused
	check "h1 has an interface at each port" has_two_members
	came=$(counted received_multicast)
	refused=$(counted wrong_queue_pair)
	# There may be no answer: hosts do not answer such pings.
	at h2 ping -q -c 40 -i 0.05 -b 10.88.0.255 >/dev/null 2>&1
	check "what h2 says to all comes to both" eventually counts_from received_multicast $((came + 80))
	check "no port tries the other's member" holds $(($(counted wrong_queue_pair) - refused)) -lt 40
}

bring_up_fabric two_ports h1
check "ib_ipoib makes interfaces in hosts with two ports" ipoib_up h1 h2
test_two_ports
take_down_fabric

bring_up_fabric star h1
check "ib_ipoib makes an interface in each host, with carrier" ipoib_up "${hosts[@]}"
check_equal "its MTU is that of an InfiniBand MTU of 4096 or 2048" 1 \
	"$(at h1 ip -j link show ib0 | jq '.[0].mtu | if . == 4092 or . == 2044 then 1 else . end')"
check "ethtool -i: the HCA is a child of softib's device" matches 'bus-info: softib' "$(at h1 ethtool -i ib0)"
check_refused "ethtool -d: there are no registers" at h1 ethtool -d ib0
in_background_at h2 iperf3 -s
test_traffic datagram "$(at h1 ip -j link show ib0 | jq '.[0].mtu')"
test_multicast 239.9.9.9
test_multicast ff05::99
check "all go into connected mode" set_mode connected 65520
in_background_at h2 iperf3 -s
test_traffic connected 65520
check "all go back into datagram mode" set_mode datagram 2044
test_sm_restart
test_cable
take_down_fabric
finish
