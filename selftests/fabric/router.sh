#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Two subnets, each with a subnet manager of its own, and routers between them: prefix-routes.conf gives paths across them,
# packets with a GRH cross them in both directions, what is link-local stays, and so does what has no hops left. With one
# router, and with two to choose from.
#
# nodes: 1
# kernels: fast
# timeout: 400

. selftests/lib/fabric.sh
. selftests/lib/subnets.sh

# --- subnets -----------------------------------------------------------------------------------------------------------------

has_wanted_lid() { # host
	equal "$(($(wanted_lid "$1")))" "$(port_number "$1" lid)"
}

# With the prefix of its subnet.
gid_of() { # host
	port_field "$1" gids/0
}

has_path() { # from, to, router's LID
	says "$1" "saquery --sgid-to-dgid $(gid_of "$1")-$(gid_of "$2")" "dlid\.+ *$3$" 'hop_flow_raw\.+ *0x[0-9A-Fa-f]*FF$' "dgid\.+"
}

# --- one router --------------------------------------------------------------------------------------------------------------

test_discovery() { # host...
	local host
	for host in "$@"; do
		check "$host discovers its subnet, with the router and without what is behind" \
			eventually discovers_its_subnet routed "$host"
		check "$host sees the router by name" says "$host" ibrouters '"r1"|r1'
	done
}

test_one_router() {
	local host first second
	fabric_up routed || bail_out "the fabric could not be built"
	start_subnet 1 2 h1 h2
	start_subnet 2 1 h3 h4
	check "every port becomes active" eventually all_active
	for host in "${hosts[@]}"; do
		check "$host has the LID by which the router finds it" has_wanted_lid "$host"
	done
	for host in h1 h2; do
		check "$host has a GID of the first subnet" eventually gid_has_prefix "$host" 1
	done
	for host in h3 h4; do
		check "$host has a GID of the second subnet" eventually gid_has_prefix "$host" 2
	done
	test_discovery h2 h4
	first=$(router_lid h1 r1)
	second=$(router_lid h3 r1)
	check "the router's port is active" says h1 "smpquery portinfo $first 1" 'LinkState:\.+Active'
	check "h1 has a path to h3: the router's LID, hop limit 255" eventually has_path h1 h3 "$first"
	check "h4 has a path to h2: the router's LID, hop limit 255" eventually has_path h4 h2 "$second"
	verbs "across the router: " h1 h3 datagram "$first" "$second"
	verbs "across the router, the other way: " h4 h2 datagram "$second" "$first"
	verbs "across the router: " h1 h3 reliable "$first" "$second"
	stop_sm
	check "the fabric with one router can be taken down" fabric_down
}

# --- two routers ------------------------------------------------------------------------------------------------------------

# The subnets reach each other by that router.
route_by() { # router
	routes_of h1 "$(prefix_of 2) $(router_guid "$1-1")"
	routes_of h2 "$(prefix_of 1) $(router_guid "$1-2")"
}

test_either_router() { # router
	local first second
	first=$(router_lid h1 "$1")
	second=$(router_lid h2 "$1")
	check "h1 has a path to h2 by $1" eventually has_path h1 h2 "$first"
	check "h2 has a path to h1 by $1" eventually has_path h2 h1 "$second"
	verbs "by $1: " h1 h2 datagram "$first" "$second"
	verbs "by $1: " h2 h1 reliable "$second" "$first"
}

test_two_routers() {
	fabric_up routers || bail_out "the fabric could not be built"
	route_by r1
	start_subnet 1 2 h1
	start_subnet 2 1 h2
	check "with two routers every port becomes active" eventually all_active
	check "h1 has a GID of the first subnet" eventually gid_has_prefix h1 1
	check "h2 has a GID of the second subnet" eventually gid_has_prefix h2 2
	check "h1 discovers its subnet, with both routers" eventually discovers_its_subnet routers h1
	check "h2 discovers its subnet, with both routers" eventually discovers_its_subnet routers h2
	test_either_router r1
	route_by r2
	reread h1 h2
	test_either_router r2
	routes_of h1 "$(prefix_of 2) *"
	reread h1
	check "the cable of r2 is pulled" ip link set r2-1 down
	check "h1 has a path to h2 by the router that is left" eventually has_path h1 h2 "$(router_lid h1 r1)"
}

load_softib || bail_out "softib.ko could not be loaded"
check "the test of verbs can be loaded" load_verbs_test
test_one_router
test_two_routers
check "the test of verbs can be unloaded" rmmod verbs_test
take_down_fabric
finish
