#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# ib0 in a network namespace of its own, as containers have it, while the RDMA device stays where it is; and an RDMA
# device that moves to a namespace, where the kernel lets it.
#
# nodes: 2
# kernels: fast
# timeout: 180

. selftests/lib/node.sh

in_blue() { # command...
	ip netns exec blue "$@"
}

move_to_blue() {
	ip netns add blue && ip link set ib0 netns blue
}

up_in_blue() {
	in_blue ip link set lo up &&
		in_blue ip address add 10.99.0.1/24 dev ib0 && in_blue ip address add fd00:99::1/64 dev ib0 nodad &&
		in_blue ip link set ib0 up && eventually blue_has_carrier
}

blue_has_carrier() {
	in_blue grep -qx 1 /sys/class/net/ib0/carrier
}

talks_in_blue() {
	in_blue ping -q -c "$echoes" -i 0.2 -W "$patience" 10.99.0.2 && in_blue ping -q -c "$echoes" -i 0.2 -W "$patience" fd00:99::2
}

test_moving() {
	check "ib0 moves to a namespace" move_to_blue
	check "it is not in the first one any more" ib_is_gone
	check "it comes up there" up_in_blue
	check "IPv4 and IPv6 reach the peer from there" talks_in_blue
	check "the namespace can be deleted" ip netns del blue
	check "ib0 comes back" eventually ib_exists
	check "it comes up again" ib_up
	check "the peer is reached again" eventually answers 10.99.0.2
}

test_unloading() {
	check "ib0 moves to a namespace again" move_to_blue
	check "it comes up there again" up_in_blue
	check "oxib.ko can be unloaded then" unload_oxib
	check_refused "ib0 is not in the namespace any more" in_blue ip link show ib0
	ip netns del blue
	check "oxib.ko can be loaded again" load_oxib
	check "ib0 is back in the first namespace" ib_up
	check "the peer is reached" eventually answers 10.99.0.2
}

# Namespaces of which each has its own RDMA devices. Possible while there is one namespace alone.
test_exclusive() {
	local moves="an RDMA device takes its ib0 to its namespace"
	local back="ib0 comes back with it"
	check "oxib bears RDMA devices in namespaces of their own" eventually rdma system set netns exclusive
	check "the peer is reached as before" eventually answers 10.99.0.2
	ip netns add blue
	if ! rdma dev set rxe0 netns blue 2>/tmp/rdma.log; then
		skip "$moves" "this kernel's soft-RoCE cannot move: $(tr '\n' ' ' </tmp/rdma.log)"
		skip "$back" "it could not go"
	else
		check "$moves" eventually in_blue ip link show ib0
		ip netns del blue
		check "$back" eventually ib_exists
	fi
}

bring_up 9000
if [ "$NODE" = 1 ]; then
	check "the peer is reached" reaches 10.99.0.2
	test_moving
	test_unloading
	test_exclusive
fi
barrier done
take_down
finish
