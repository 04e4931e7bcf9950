#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Partitions across a router: children in one of which hosts of both subnets are members reach each other. If the host behind the
# router is no member any more, or the router is not, or the entry is for another partition, the resolution says so, it is
# counted, nothing hangs, and the default partition is as it was. Nobody outside a partition is told queue pairs in it, nor
# makes a host forget one. An interface asks by an address of its own, also for packets from another interface's.
#
# nodes: 1
# kernels: fast
# timeout: 500

. selftests/lib/acm.sh

pkey=0x8001

# --- membership ------------------------------------------------------------------------------------------------------------------

# The default partition has all.
blue_has() { # host of the subnet manager, GUID of a port...
	local guid members=
	for guid in "${@:2}"; do
		members+=", $guid=full"
	done
	printf '%s\n' 'Default=0x7fff, ipoib: ALL=full;' "blue=0x0001, ipoib: ${members#, };" >"/tmp/sm.$1/partitions.conf"
	reread "$1"
}

is_member() { # host
	at "$1" sh -c "cat /sys/class/infiniband/$1/ports/1/pkeys/*" | grep -q "$pkey"
}

is_no_member() { # host
	! is_member "$1"
}

has_path() { # from, to
	says "$1" "saquery --sgid-to-dgid $(port_field "$1" gids/0)-$(port_field "$2" gids/0) --pkey $pkey" 'dlid\.+ *[1-9]'
}

has_no_path() { # from, to
	! has_path "$@"
}

# --- children --------------------------------------------------------------------------------------------------------------------

child_of() { # host
	printf '10.90.0.%d\n' "$(host_number "$1")"
}

child_up() { # host
	at "$1" ip link add link ib0 name blue type ipoib pkey "$pkey" &&
		at "$1" ip address add "$(child_of "$1")/24" dev blue && at "$1" ip link set blue up
}

child_has_carrier() { # host
	at "$1" grep -q 1 /sys/class/net/blue/carrier
} 2>/dev/null

child_has_no_carrier() { # host
	! child_has_carrier "$1"
}

enter_child() { # host, other host, [word of the entry...]
	cache_at "$1" replace "$(child_of "$2")" "$(port_field "$2" gids/0)" "${@:3}"
}

# --- failures --------------------------------------------------------------------------------------------------------------------

# The kernel's counters of the interface's namespace, and of the interface.
drops_of() { # host, interface
	at "$1" ethtool -S "$2" | awk '$1 == "tx_drop_unresolved:" || $1 == "tx_drop_unreachable:" { sum += $2 } END { print sum + 0 }'
}

forget() { # host
	at "$1" ip neighbour flush dev blue
	oxib -n "$1" acm paths flush
}

# It is told which step fails, and why, in less time than would look like none.
says_why() { # host, interface, step and outcome, reason
	local said
	if said=$(timeout "$patience" oxib -n "$1" acm resolve "$(child_of h3)" dev "$2" 2>&1); then
		printf '%s\n' "$said"
		return 1
	else
		[ $? != 124 ] || return
	fi
	matches "^$3 .*$4" "$said"
}

# Once what was known of the peer before is doubted, which takes some seconds without an answer.
counts_drops() { # before
	at h1 ping -q -c 1 -W 1 "$(child_of h3)"
	holds "$(drops_of h1 blue)" -gt "$1"
}

default_is_as_it_was() { # description
	check "$1: h1 reaches h3 in the default partition" host_reaches h1 "$(v4_of h3)"
	check "$1: and h3 h1" host_reaches h3 "$(v4_of h1)"
}

test_failure() { # description, step and outcome, reason
	local before
	before=$(drops_of h1 blue)
	forget h1
	check "$1: h1 does not reach h3 in blue" is_lost h1 "$(child_of h3)"
	check "$1: the reason is told" says_why h1 blue "$2" "$3"
	check "$1: what was to be sent is counted" eventually counts_drops "$before"
	default_is_as_it_was "$1"
}

# --- what may be missing ---------------------------------------------------------------------------------------------------------

test_shared() { # description
	check "$1: h1 reaches h3 in blue" eventually host_answers h1 "$(child_of h3)"
	check "$1: h3 reaches h1 in blue" eventually host_answers h3 "$(child_of h1)"
}

test_peer() {
	local before
	check "h3 is no member any more" blue_has h3 "$(router_guid r1-2)"
	check "its port is not" eventually is_no_member h3
	check "its child has no carrier" eventually child_has_no_carrier h3
	statistics_of h1
	before=$(($(noted h1 sidr-timeouts) + $(noted h1 sidr-refused)))
	test_failure "h3 is no member" "sidr +(no answer|refused)" "(partition|does not have the address)"
	statistics_of h1
	check "h3 is no member: that it does not answer is counted" \
		holds "$(($(noted h1 sidr-timeouts) + $(noted h1 sidr-refused)))" -gt "$before"
	check "h3 is no member: it is counted as a peer across a router" holds "$(noted h1 router-no-oxib)" -gt 0
	check "h3 is a member again" blue_has h3 "$(router_guid r1-2)" "$(port_guid h3)"
	check "its child has carrier again" eventually child_has_carrier h3
	test_shared "h3 is a member again"
}

test_router() {
	check "the router is no member any more" blue_has h1 "$(port_guid h1)" "$(port_guid h2)"
	check "there is no path to h3 in blue" eventually has_no_path h1 h3
	test_failure "the router is no member" "path +not known" "no path"
	check "the router is a member again" blue_has h1 "$(port_guid h1)" "$(port_guid h2)" "$(router_guid r1-1)"
	check "there is a path to h3 in blue" eventually has_path h1 h3
	test_shared "the router is a member again"
}

test_entry() {
	check "the entry is for the default partition" enter_child h1 h3 pkey 0xffff
	test_entry_for blue
	check "the entry is for blue" enter_child h1 h3 pkey "$pkey"
	test_entry_for ib0
	test_shared "the entry is for blue"
	check "the entry is for any partition" enter_child h1 h3
}

test_entry_for() { # interface for which it is not
	at h1 ip neighbour flush dev "$1"
	check "on $1 it is told that the entry is for another partition" says_why h1 "$1" "cache +not known" "another partition"
	default_is_as_it_was "an entry that is not for $1"
}

# --- packets of another partition ------------------------------------------------------------------------------------------------

# Asks for the queue pair of h1's child, as a packet of h2's on the cable.
asks_in_blue() { # inside|outside: whether the packet is of that partition, too
	at h2 python3 selftests/acm/forged.py port1 "$(port_number h1 lid)" "$(port_number h2 lid)" "$(child_of h1)" 10.90.0.99 \
		"$(port_field h2 gids/0)" 0x123456 "$1=$pkey"
}

# Whatever the answer is.
answers_of() { # host
	at "$1" cat "/sys/class/infiniband/$1/ports/1/cm_tx_msgs/sidr_rep"
}

has_answered() { # host, more than
	holds "$(answers_of "$1")" -gt "$2"
}

has_served() { # host, more than
	holds "$(statistic_at "$1" sidr-served)" -gt "$2"
}

# Before there is traffic, for which h1 would be asked by others.
test_outside() {
	local served answers
	served=$(statistic_at h1 sidr-served)
	check "a packet in blue asks h1 for its queue pair there" asks_in_blue inside
	check "it is told" eventually has_served h1 "$served"
	served=$(statistic_at h1 sidr-served)
	answers=$(answers_of h1)
	check "a packet in the default partition asks for it, in the name of blue" asks_in_blue outside
	check "it is answered" eventually has_answered h1 "$answers"
	check_equal "but not told" "$served" "$(statistic_at h1 sidr-served)"
}

knows_queue_pair() { # host, address, queue pair
	equal "$3" "$(cache_at "$1" show "$2" 2>/dev/null | awk '{ print $3 }')"
}

# h1 asks again some seconds after h2 has not answered.
has_answer_of_h2() {
	at h1 ip neighbour flush dev ib0
	host_answers h1 "$(v4_of h2)" && knows_queue_pair h1 "$(v4_of h2)" "$(qpn_of h2)"
}

# What the stack learns by arp_accept: then oxib has had the packet, too.
has_neighbour_in_blue() { # host, address
	[ -n "$(at "$1" ip neighbour show to "$2" dev blue)" ]
}

# h2 says that it has the address. h1 hears it.
is_heard_in_blue() { # address
	at h2 arping -q -U -c 1 -I blue "$1"
	has_neighbour_in_blue h1 "$1"
}

# In blue h2 has another queue pair. It says so of its address in the default partition.
test_announced() {
	local address
	address=$(v4_of h2)
	check "h1 has an entry of h2 for the default partition" \
		cache_at h1 replace "$address" "$(port_field h2 gids/0)" pkey 0xffff
	check "h2 has one of h1, so that it answers" know h2 h1
	check "h1 reaches h2, and has its queue pair" eventually has_answer_of_h2
	at h1 sysctl -qw net.ipv4.conf.blue.arp_accept=1
	check "h2 announces that address in blue" eventually is_heard_in_blue "$address"
	check "h1 still knows the queue pair" knows_queue_pair h1 "$address" "$(qpn_of h2)"
	at h1 ip neighbour flush dev blue
	check "h1 has the entry for any partition again" know h1 h2
}

# --- in the name of another interface --------------------------------------------------------------------------------------------

# What waits for h2 at ib0 comes from the child's address, and in that name the stack asks. h2 need not answer the ping.
h2_is_told_ib0() {
	at h1 ip neighbour flush dev ib0
	know h1 h2 || return
	at h1 ping -q -c 1 -W 1 -I "$(child_of h1)" "$(v4_of h2)"
	knows_queue_pair h2 "$(v4_of h1)" "$(qpn_of h1)"
}

is_not_told_of_child() {
	! knows_queue_pair h2 "$(child_of h1)" "$(qpn_of h1)"
}

test_name() {
	at h2 ip neighbour flush dev ib0
	check "h2 has entries of h1's ib0 and child, without queue pairs" eval 'know h2 h1 && enter_child h2 h1'
	check "ib0 of h1 asks h2 by its own address" eventually h2_is_told_ib0
	check "h2 does not take its queue pair for the child's" is_not_told_of_child
}

bring_up_routed_fabric
check "hosts know each other" eval 'know h1 h2 h3 && know h3 h1 h2'
check "h1, h2 and the router are in blue" blue_has h1 "$(port_guid h1)" "$(port_guid h2)" "$(router_guid r1-1)"
check "h3 and the router are" blue_has h3 "$(port_guid h3)" "$(router_guid r1-2)"
for host in h1 h2 h3; do
	check "$host's port is a member" eventually is_member "$host"
	check "$host has a child in blue" child_up "$host"
	check "$host's child has carrier" eventually child_has_carrier "$host"
done
test_outside
check "h1 has an entry of h3's child" enter_child h1 h3
check "h3 has one of h1's" enter_child h3 h1
default_is_as_it_was "with children"
test_shared "both are members"
test_announced
test_name
test_peer
test_router
test_entry
take_down_routed_fabric
finish
