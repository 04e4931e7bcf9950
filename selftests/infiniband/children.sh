#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# children.sh [DRIVER of n1 [DRIVER of n2]]: oxib or ib_ipoib
#
# Children in a partition of their own on one fabric, by oxib in both nodes or by the kernel's driver in one, in both modes: in
# each node h1 is a full member and h2 a limited one. Limited members do not reach each other, all else does.
#
# nodes: 2
# kernels: fast
# timeout: 600

. selftests/lib/infiniband.sh

drivers=("${1:-oxib}" "${2:-oxib}")
pair="${drivers[0]} and ${drivers[1]}"

child_of() { # host, [node]
	printf '10.90.%d.%d\n' "${2:-$NODE}" "$(host_number "$1")"
}

child6_of() { # host, [node]
	printf 'fd00:90::%x:%x\n' "${2:-$NODE}" "$(host_number "$1")"
}

# The first node's h1 has the subnet manager.
write_partitions() {
	local node members=
	for node in 1 2; do
		members+=", $(told guid.h1 "$node")=full, $(told guid.h2 "$node")=limited"
	done
	printf '%s\n' 'Default=0x7fff, ipoib: ALL=full;' "blue=0x0001, ipoib: ${members#, };" >/tmp/sm.h1/partitions.conf
	kill -HUP "${sm_processes[h1]}"
}

has_pkey() { # host, P_Key
	at "$1" sh -c "cat /sys/class/infiniband/$1/ports/1/pkeys/*" | grep -q "$2"
}

child_has_carrier() { # host
	at "$1" grep -q 1 /sys/class/net/blue/carrier
} 2>/dev/null # an interface that is down has none

make_child() { # host
	at "$1" ip link add link ib0 name blue type ipoib pkey 0x8001 &&
		at "$1" ip address add "$(child_of "$1")/16" brd + dev blue &&
		at "$1" ip address add "$(child6_of "$1")/64" dev blue nodad &&
		at "$1" ip link set blue up && eventually child_has_carrier "$1"
}

# What neighbours and routes know is of the mode before.
child_in_mode() { # host, datagram|connected
	at "$1" ip link set blue type ipoib mode "$2" && eventually child_has_carrier "$1" &&
		at "$1" ip neighbour flush dev blue && at "$1" ip route flush cache
}

test_full() { # mode
	local address
	for address in "$(child_of h1 2)" "$(child6_of h1 2)"; do
		check "$pair, $1: $address is found" eventually host_answers h1 "$address"
		at h1 ip route flush cache
		check "$pair, $1: ping $address, packets of 1500 bytes" eventually host_reaches h1 "$address" -s 1500
		check "$pair, $1: ping $address, packets of 20000 bytes" eventually host_answers h1 "$address" -s 20000
	done
	check "$pair, $1: TCP to the other" measured -c "$(child_of h1 2)"
	check "$pair, $1: TCP from the other" measured -c "$(child6_of h1 2)" -R
}

test_limited() { # mode
	check "$pair, $1: a full member reaches a limited one" eventually host_answers h1 "$(child_of h2 2)"
	check "$pair, $1: a limited member reaches a full one" eventually host_answers h2 "$(child_of h1 2)"
	check "$pair, $1: by IPv6, too" eventually host_answers h2 "$(child6_of h1 2)" -s 1500
	check_refused "$pair, $1: limited members do not reach each other" host_answers h2 "$(child_of h2 2)"
	check_refused "$pair, $1: nor by IPv6" host_answers h2 "$(child6_of h2 2)"
}

child_is_down() { # host
	[ -z "$(at "$1" ip link show dev blue up)" ]
}

# One program takes ib0 down while another brings it up, and the last word is up. The kernel's driver does not bring up a child that
# is about to go down.
change_parent_by_two() { # host
	local round
	for ((round = 0; round < 10; round++)); do
		at "$1" ip link set ib0 down &
		at "$1" ip link set ib0 up
		wait $!
	done
	at "$1" ip link set ib0 up
}

test_parent() { # host
	at "$1" ip link set ib0 down
	check "$driver: the child of $1 goes down with ib0" eventually child_is_down "$1"
	at "$1" ip link set ib0 up
	check "$driver: and comes up with it" eventually child_has_carrier "$1"
	[ "$driver" = oxib ] || return 0
	change_parent_by_two "$1"
	check "oxib: the child of $1 is up after that" eventually child_has_carrier "$1"
}

# The kernel's driver ends connections in the background, and frees what they use with the child: in Linux 7.2 and 7.3 that is a use
# after free, unless there are none any more.
delete_child() { # host
	[ "$driver" = oxib ] || { at "$1" ip link set blue down && eventually has_no_connection "$1"; } || return
	at "$1" ip link delete blue
}

bring_up_shared_fabric "${drivers[NODE - 1]}"
for host in h1 h2; do
	tell "guid.$host" "$(port_guid "$host")"
done
[ "$NODE" != 1 ] || write_partitions
check "h1 is a full member of blue" eventually has_pkey h1 0x8001
check "h2 is a limited one" eventually has_pkey h2 0x0001
for host in h1 h2; do
	check "$driver: $host has a child there, with carrier" make_child "$host"
done
on_node 2 in_background_at h1 iperf3 -s
for mode in datagram connected; do
	for host in h1 h2; do
		check "$driver: the child of $host is in $mode mode" child_in_mode "$host" "$mode"
	done
	barrier "$mode"
	on_node 1 test_full "$mode"
	on_node 1 test_limited "$mode"
	barrier "tested $mode"
done
for host in h1 h2; do
	test_parent "$host"
	check "$driver: the child of $host goes" delete_child "$host"
done
take_down_shared_fabric
finish
