#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Children of an interface as `ip link … type ipoib` makes, shows, changes and removes them, and what is refused in which
# words; sysfs; children in namespaces, and when the interface, the RDMA device or the module goes. On a RoCE port, which
# has the default partition alone; infiniband/configuration.sh has others.
#
# nodes: 2
# kernels: fast
# timeout: 300

. selftests/lib/node.sh

# A request must fail, and its words must match.
check_words() { # description, extended regular expression, command...
	local description=$1 words=$2
	shift 2
	check "$description" fails_with "$words" "$@"
}

fails_with() { # extended regular expression, command...
	local words=$1 said
	shift
	if said=$("$@" 2>&1); then
		printf 'it was not refused, and said: %s\n' "$said"
		return 1
	fi
	matches "$words" "$said"
}

says() { # extended regular expression, command...: which succeeds
	local words=$1 said
	shift
	said=$("$@" 2>&1) || {
		printf 'it failed: %s\n' "$said"
		return 1
	}
	matches "$words" "$said"
}

child_up() { # interface, third byte of the address
	ip address replace "10.$2.0.$NODE/24" brd + dev "$1" && ip address replace "fd00:$2::$NODE/64" dev "$1" nodad &&
		ip link set "$1" up && eventually carrier_is 1 "$1"
}

# As ethtool says it. On a node with one processor no interface has more than one receive queue.
most_receive_queues() { # interface
	ethtool -l "$1" | sed '/Current/,$d' | awk '$1 == "RX:" { print $2 }'
}

test_making() {
	check "ip link add makes a child" ip link add link ib0 name c1 type ipoib
	check "ip -d link says what it is" says 'ipoib pkey +0xffff mode +datagram umcast +0000' ip -d link show c1
	check "ip -d link says it of ib0, too" says 'ipoib pkey +0xffff mode +datagram umcast +0000' ip -d link show ib0
	check_equal "its parent is ib0" ib0 "$(link_field .link c1)"
	check_equal "its type is InfiniBand" infiniband "$(link_field .link_type c1)"
	check_equal "its broadcast address is its parent's" "$(link_field .broadcast)" "$(link_field .broadcast c1)"
	check_equal "its MTU is its parent's" "$(link_field .mtu)" "$(link_field .mtu c1)"
	check "it has a queue pair of its own" holds "$(hardware_address c1)" != "$(hardware_address)"
	check_equal "on the same GID" "$(hardware_address | cut -c 13-)" "$(hardware_address c1 | cut -c 13-)"
	check_equal "it has one transmit queue" 1 "$(find /sys/class/net/c1/queues -name 'tx-*' | wc -l)"
	check "another in the same partition is made, with a warning" says 'Warning: .*another child in partition 0xffff' \
		ip link add link ib0 name c2 type ipoib pkey 0xffff mode datagram umcast 1
	check "umcast is as it was asked for" says 'umcast +0001' ip -d link show c2
	check "it goes" ip link delete c2
	check_refused "it is gone" ip link show c2
	check "a partial member's key names the same partition" says 'another child' \
		ip link add link ib0 name c2 type ipoib pkey 0x7fff
	check "it is shown as a full member's" says 'pkey +0xffff' ip -d link show c2
	ip link delete c2
	check "one may have fewer queues" ip link add link ib0 name c2 numtxqueues 1 type ipoib
	check_equal "and has" 1 "$(find /sys/class/net/c2/queues -name 'tx-*' | wc -l)"
	ip link delete c2
	check "one may have fewer receive queues" ip link add link ib0 name c2 numrxqueues 1 type ipoib
	check_equal "and ethtool knows" 1 "$(most_receive_queues c2)"
	check "more are refused in words" fails_with 'exceeds maximum' ethtool -L c2 rx 2
	ip link delete c2
	check "one may have a smaller MTU from the start" ip link add link ib0 name c2 mtu 1500 type ipoib
	check_equal "and has" 1500 "$(link_field .mtu c2)"
	ip link delete c2
}

test_refusals() {
	check_words "a partition that a RoCE port has not is refused" '0x8001: a RoCE port has no partition but 0xffff' \
		ip link add link ib0 name bad type ipoib pkey 0x8001
	check_words "P_Key 0x8000 is refused" '0x8000 names no partition' ip link add link ib0 name bad type ipoib pkey 0x8000
	check_words "P_Key 0 is refused" '0x0000 names no partition' ip link add link ib0 name bad type ipoib pkey 0
	check_words "a child of a child is refused" 'c1 is a child itself: make it a child of ib0' \
		ip link add link c1 name bad type ipoib
	check_words "a child of nothing is refused" 'give the interface to be the child of' ip link add name bad type ipoib
	check_words "a child of an Ethernet device is refused" "not an interface of oxib's" ip link add link eth0 name bad type ipoib
	check_words "a name that is taken is refused" 'File exists' ip link add link ib0 name c1 type ipoib
	check_words "an MTU beyond the port's is refused" '[Mm]tu|MTU' ip link add link ib0 name bad mtu 70000 type ipoib
	check_words "another P_Key for what is there is refused" 'P_Key of an interface is fixed' \
		python3 selftests/ipoib/linkinfo.py c1 1 0x8001
	check_words "a mode that is none is refused" 'there is no mode 7' python3 selftests/ipoib/linkinfo.py c1 2 7
	check_words "an attribute of a wrong length is refused" 'Attribute' python3 selftests/ipoib/linkinfo.py c1 2 7 1
	check "umcast is taken" ip link set c1 type ipoib umcast 1
	check "and shown" says 'umcast +0001' ip -d link show c1
	check "and taken back" ip link set c1 type ipoib umcast 0
	check_refused "no refused one is there" ip link show bad
	check_refused "another GUID is refused, as a RoCE port's GID is an IP address" \
		ip link set ib0 address "$(hardware_address | cut -c 1-57):5a"
	check "the deletion of ib0 changes nothing" ip link delete ib0
	check "ib0 is still there" ib_exists
	check "the log says why" kernel_log_has 'ib0 is the interface of port 1'
}

write() { # interface, attribute, text
	printf '%s\n' "$3" >"/sys/class/net/$1/$2"
}

attribute() { # interface, attribute
	cat "/sys/class/net/$1/$2"
}

test_sysfs() {
	check_equal "sysfs: mode" datagram "$(attribute ib0 mode)"
	check_equal "sysfs: pkey" 0xffff "$(attribute ib0 pkey)"
	check_equal "sysfs: umcast" 0 "$(attribute ib0 umcast)"
	check_equal "sysfs: dev_id" 0x0 "$(attribute ib0 dev_id)"
	check_equal "sysfs: dev_port" 0 "$(attribute ib0 dev_port)"
	check_equal "sysfs: parent of the child" ib0 "$(attribute c1 parent)"
	check_refused "sysfs: a port's interface has no parent" [ -e /sys/class/net/ib0/parent ]
	check_refused "sysfs: a child makes no children" [ -e /sys/class/net/c1/create_child ]
	check "sysfs: umcast is taken" write ib0 umcast 1
	check_equal "sysfs: and shown" 1 "$(attribute ib0 umcast)"
	check "sysfs: and taken back" write ib0 umcast 0
	check "sysfs: the mode it has is taken" write ib0 mode datagram
	for text in "" connectd "datagram connected" "$(printf 'x%.0s' {1..4000})"; do
		check_refused "sysfs: mode '${text:0:20}' is refused" write ib0 mode "$text"
	done
	for text in "" ff00g -1 0x10000 65536 0x8000 0 0xffff 0x8001 "1 2"; do
		check_refused "sysfs: create_child '$text' is refused" write ib0 create_child "$text"
	done
	for text in "" 0xffff 0x8001 x; do
		check_refused "sysfs: delete_child '$text' is refused" write ib0 delete_child "$text"
	done
	check "sysfs: the child that netlink made is still there" [ -e /sys/class/net/c1 ]
}

# The child is on ib0's network: one must not answer for the other's address, or packets to ib0 go to the child.
test_traffic() {
	echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore
	check "the child comes up" child_up c1 88
	barrier child-up
	check "the peer's child answers over IPv4" eventually reaches "10.88.0.$peer"
	check "the peer's child answers over IPv6" reaches "fd00:88::$peer"
	check "large packets reach it, too" reaches "10.88.0.$peer" -s 20000
	check "the peer's ib0 answers as before" reaches "10.99.0.$peer"
	barrier child-used
	check "the child goes down" ip link set c1 down
	check "ib0 does not mind" reaches "10.99.0.$peer"
	check "the child comes up again" child_up c1 88
	check "the peer's child answers" eventually reaches "10.88.0.$peer"
	barrier child-done
}

in_blue() { # command...
	ip netns exec blue "$@"
}

test_namespaces() {
	ip netns add blue
	check "a child is made in another namespace" ip link add link ib0 name c3 netns blue type ipoib
	check "ip shows it there" in_blue ip -d link show c3
	check "it is not here" refused ip link show c3
	check "its parent is told to be in another namespace" says 'link-netns' in_blue ip link show c3
	check "a child moves there, too" ip link set c1 netns blue
	check "it comes up there" in_blue ip address add "10.88.0.$NODE/24" dev c1
	in_blue ip link set c1 up
	check "the peer's child is reached from there" eventually in_blue ping -q -c 1 -W 2 "10.88.0.$peer"
	check "the namespace is deleted" ip netns del blue
	check "the children come back" eventually ip link show c1
	check "all of them" eventually ip link show c3
	check "one of them goes" ip link delete c3
}

churn() {
	local round
	for ((round = 0; round < $1; round++)); do
		ip link add link ib0 name churn type ipoib && ip link set churn up && ip link delete churn || return
	done
}

test_going() {
	check "children come and go again and again" churn "$(some 10)"
	ip link add link ib0 name c4 type ipoib
	ip link set c4 up
	check "the RDMA device goes, with ib0 and its children" rdma link delete rxe0
	check "ib0 is gone" eventually ib_is_gone
	check_refused "c1 is gone" ip link show c1
	check_refused "c4 is gone" ip link show c4
	rdma link add rxe0 type rxe netdev eth0
	check "it comes again, and ib0 with it" eventually ib_up
	check "a child is made again" ip link add link ib0 name c1 type ipoib
	check "it comes up" child_up c1 88
	check "a module with children can be unloaded" unload_oxib
	check "ib0 is gone" ib_is_gone
	check_refused "c1 is gone" ip link show c1
	check "it can be loaded again" load_oxib
	check "ib0 comes up" eventually ib_up
}

check "the module is what a link of type ipoib asks for" matches '^rtnl-link-ipoib$' "$(modinfo -F alias "$MODULES/oxib.ko")"
bring_up 9000
test_making
test_refusals
test_sysfs
test_traffic
if [ "$NODE" = 1 ]; then
	test_namespaces
	test_going
fi
barrier done
take_down
finish
