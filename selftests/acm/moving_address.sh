#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# An IP address moves to another node, which announces it by gratuitous ARP (keepalived and Pacemaker do so): with either driver
# the others follow. With oxib also if the address cache has an entry for it, unless the entry names the queue pair: the cache answers
# then for the node that the administrator named, until the entry changes.
#
# moving_address.sh [DRIVER...]
#
# nodes: 1
# kernels: fast
# timeout: 300

. selftests/lib/acm.sh

drivers=("$@")
[ $# -gt 0 ] || drivers=(ib_ipoib oxib)
topologies=/tmp
virtual=10.88.99.99

# --- the address -----------------------------------------------------------------------------------------------------

move_to() { # host
	local host
	for host in h2 h3; do
		[ "$host" = "$1" ] || at "$host" ip address delete "$virtual/16" dev ib0 2>/dev/null
	done
	at "$1" ip address replace "$virtual/16" brd + dev ib0 && at "$1" arping -q -U -c 2 -I ib0 "$virtual"
	return 0
}

# The stack of h1 verifies what it knows, as it does some seconds after an address was used.
verifies() {
	at h1 ip neighbour change "$virtual" dev ib0 nud probe && eventually has_verified
}

has_verified() {
	ip -n h1 neighbour show to "$virtual" dev ib0 | grep -q REACHABLE
}

is_at() { # host: by what h1's stack knows
	local known
	known=$(ip -n h1 neighbour show to "$virtual" dev ib0 | sed -nE 's/.* lladdr ([0-9a-f:]+) .*/\1/p')
	equal "$(at "$1" cut -c 13- /sys/class/net/ib0/address)" "${known:12}"
}

# --- moves -----------------------------------------------------------------------------------------------------------

follows() { # what the cache has
	check "$driver, $1: h2 has the address" move_to h2
	check "$driver, $1: h1 reaches it" eventually host_answers h1 "$virtual"
	check "$driver, $1: it is at h2" is_at h2
	check "$driver, $1: it moves to h3" move_to h3
	check "$driver, $1: h1 takes notice" eventually is_at h3
	check "$driver, $1: h1 verifies that" verifies
	check "$driver, $1: it is at h3 still" is_at h3
	check "$driver, $1: h1 reaches it" eventually host_answers h1 "$virtual"
	flush_neighbours h1
	check "$driver, $1: h1 finds it when it asks all" eventually host_answers h1 "$virtual"
	check "$driver, $1: at h3" is_at h3
}

entry() { # word...
	printf '%s %s\n' "$1 $virtual" "${*:2}" | cache_at h1 -
}

test_named_queue_pair() {
	local what="the cache has a queue pair"
	check "$what: h2 has the address" move_to h2
	check "$what: it is entered" entry replace "$(port_field h2 gids/0)" qpn "$(qpn_of h2)"
	flush_neighbours h1
	check "$what: h1 reaches it" eventually host_answers h1 "$virtual"
	check "$what: it moves to h3" move_to h3
	check "$what: h1 verifies it" verifies
	check "$what: it is where the entry says" is_at h2
	check "$what: the entry changes" entry replace "$(port_field h3 gids/0)" qpn "$(qpn_of h3)"
	check "$what: h1 verifies it again" verifies
	check "$what: it is where the entry says now" is_at h3
	check "$what: h1 reaches it" eventually host_answers h1 "$virtual"
	check "$what: the entry goes" entry del
}

test_driver() {
	check "$driver: it loads" load_driver "$driver"
	check "$driver: the interfaces come up" interfaces_up "${hosts[@]}"
	if [ "$driver" = oxib ]; then
		follows "no entry"
		check "the cache of h1 has h2" entry replace "$(port_field h2 gids/0)"
		follows "an entry for h2 without a queue pair"
		check "the cache of h1 has nothing" entry del
		test_named_queue_pair
	else
		follows "no cache"
	fi
	check "$driver: it unloads" unload_driver
}

printf '%s\n' 'star hosts=3' >/tmp/three.fabric
bring_up_fabric three h2
for driver in "${drivers[@]}"; do
	test_driver
done
take_down_fabric
finish
