#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Two subnets, each with a subnet manager of its own, and a router between them: prefix-routes.conf gives paths across it,
# packets with a GRH cross it in both directions, what is link-local stays, and so does what has no hops left.
#
# nodes: 1
# kernels: fast
# timeout: 400

. selftests/fabric.sh

prefix=0xfec000000000000

# The LID that the router expects a host to have, and that it therefore is to have.
wanted_lid() { # host
	port_guid "$1" | sed 's/.*\(....\)$/0x\1/'
}

# A path to the other subnet leads to any router.
start_subnet() { # its number, the other's, host...
	local host place=/tmp/sm.$3
	mkdir -p "$place"
	printf '%s *\n' "$prefix$2" >"$place/prefix-routes.conf"
	for host in "${@:3}"; do
		printf '%s %s %s\n\n' "$(port_guid "$host")" "$(wanted_lid "$host")" "$(wanted_lid "$host")"
	done >"$place/guid2lid"
	start_sm "$3" "subnet_prefix $prefix$1" 'honor_guid2lid_file TRUE'
}

has_wanted_lid() { # host
	equal "$(($(wanted_lid "$1")))" "$(port_number "$1" lid)"
}

# With the prefix of its subnet.
gid_of() { # host
	port_field "$1" gids/0
}

gid_has_prefix() { # host, subnet
	matches "^fec0:0000:0000:000$2:" "$(gid_of "$1")"
}

# The router's LID, where a host sees it.
router_lid() { # host
	at "$1" ibnetdiscover --ports | awk '$1 == "RT" { print $2; exit }'
}

has_path() { # from, to
	says "$1" "saquery --sgid-to-dgid $(gid_of "$1")-$(gid_of "$2")" "dlid\.+ *$(router_lid "$1")$" \
		'hop_flow_raw\.+ *0x[0-9A-Fa-f]*FF$' "dgid\.+"
}

load_softib || bail_out "softib.ko could not be loaded"
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
for host in h2 h4; do
	check "$host discovers its subnet, with the router and without what is behind" \
		eventually discovers_its_subnet routed "$host"
	check "$host sees the router by name" says "$host" ibrouters '"r1"|r1'
done
check "the router's ports are active" says h1 "smpquery portinfo $(router_lid h1) 1" 'LinkState:\.+Active'
check "h1 has a path to h3: the router's LID, hop limit 255" eventually has_path h1 h3
check "h4 has a path to h2: the router's LID, hop limit 255" eventually has_path h4 h2
check "the test of verbs can be loaded" load_verbs_test
lids="$(router_lid h1) $(router_lid h3)"
# shellcheck disable=SC2086 # two words
verbs "across the router: " h1 h3 datagram $lids
verbs "across the router, the other way: " h4 h2 datagram "${lids#* }" "${lids% *}"
# shellcheck disable=SC2086
verbs "across the router: " h1 h3 reliable $lids
check "it can be unloaded" rmmod verbs_test
take_down_fabric
finish
