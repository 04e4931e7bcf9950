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

# A path to the other subnet leads to any router.
prepare_sm() { # host, other subnet
	mkdir -p "/tmp/sm.$1"
	printf '%s *\n' "$prefix$2" >"/tmp/sm.$1/prefix-routes.conf"
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

prepare_sm h1 2
prepare_sm h3 1
bring_up_fabric routed "h1 subnet_prefix ${prefix}1" "h3 subnet_prefix ${prefix}2"
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
