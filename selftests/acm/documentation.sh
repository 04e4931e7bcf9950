#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Documentation/many-subnets.md, on two subnets with a router: the subnet managers run with the files that the page has, and
# every command in its blocks is run as it is written there and does what the page says.
#
# nodes: 1
# kernels: fast
# timeout: 400

. selftests/lib/acm.sh
# shellcheck source=selftests/lib/as_written.sh
. selftests/lib/as_written.sh
# shellcheck source=selftests/lib/installed.sh
. selftests/lib/installed.sh

managers='Subnet managers'
files='Collect, distribute, load'

# The page's nodes are the fabric's hosts: node1 is h1, node3 is h3.
of_this_fabric() {
	sed -e "s/fec0:0:0:1:2:c903:0:2/$(port_field h1 gids/0)/g" -e "s/fec0:0:0:2:2:c903:0:2/$(port_field h3 gids/0)/g" \
		-e "s/10\.88\.0\.1\b/$(v4_of h1)/g" -e "s/10\.88\.0\.3\b/$(v4_of h3)/g" \
		-e "s/fd00:88::1\b/$(v6_of h1)/g" -e "s/fd00:88::3\b/$(v6_of h3)/g" \
		-e '/# on node3/s/mlx5_0/h3/' -e 's/mlx5_0/h1/g' -e 's/\bnode1\b/h1/g' -e 's/\bnode3\b/h3/g'
}

# What stands in the fabric's place has to be right as well.
page_has_gids() {
	grep -oE 'fec0:[0-9a-f:]+' "$page" | sort -u | python3 -c 'import ipaddress, sys; [ipaddress.IPv6Address(gid.strip()) for gid in sys.stdin]'
}

# --- the subnet managers' files ----------------------------------------------------------------------------------------------

# The page has those of subnet 1; subnet 2 is its mirror.
of_subnet() { # 1|2
	if [ "$1" = 1 ]; then cat; else sed 's/0xfec0000000000001/ONE/; s/0xfec0000000000002/0xfec0000000000001/; s/ONE/0xfec0000000000002/'; fi
}

# Each port of the subnet has a line as the page's one, whose GUID and LIDs are its own, and an empty line.
write_lids() { # host...
	local host line
	line=$(block "$managers" 3)
	for host in "$@"; do
		sed -E "s/^0x\S+ 0x\S+ 0x\S+$/$(port_guid "$host") $(wanted_lid "$host") $(wanted_lid "$host")/" <<<"$line"
		echo
	done
}

start_as_written() { # subnet, host...
	local lines
	mkdir -p "/tmp/sm.$2"
	mapfile -t lines < <(block "$managers" 1 | of_subnet "$1")
	block "$managers" 2 | of_subnet "$1" >"/tmp/sm.$2/prefix-routes.conf"
	write_lids "${@:2}" >"/tmp/sm.$2/guid2lid"
	block "$managers" 4 >"/tmp/sm.$2/partitions.conf"
	start_sm "$2" "${lines[@]}"
}

has_lid_of_guid() { # host
	equal "$(($(wanted_lid "$1")))" "$(port_number "$1" lid)"
}

# --- commands ----------------------------------------------------------------------------------------------------------------

# Both of the hosts that the page has a line for, and the same for the others.
write_table() {
	local host
	block "$files" 1 | of_this_fabric
	for host in h2 h4; do
		printf '%s %s %s\n' "$host" "$(v4_of "$host")" "$(v6_of "$host")"
	done
}

path_of() { # host, host: the path record between their ports
	says "$1" "saquery --sgid-to-dgid $(port_field "$1" gids/0)-$(port_field "$2" gids/0)" "$3" 'hop_flow_raw\.+ *0x[0-9A-Fa-f]*[1-9A-Fa-f]'
}

router_lid() { # host: where it sees the router
	at "$1" ibnetdiscover --ports | sed -nE "s/^RT +([0-9]+) .*\( 'r1' - .*/\1/p"
}

check "GIDs on the page are written as GIDs are" page_has_gids
check "there is a place for the page's files" make_place
load_softib || bail_out "softib.ko could not be loaded"
fabric_up routed || bail_out "the fabric could not be built"
start_as_written 1 h1 h2
start_as_written 2 h3 h4
check "with the page's files every port becomes active" eventually all_active
check "and has its subnet's prefix" eventually all_have_prefixes "h1 h2" "h3 h4"
for host in "${hosts[@]}"; do
	check "$host has the LID that its GUID ends in" has_lid_of_guid "$host"
done
check "the kernel's modules have a place to be joined in" replace_modules veth
check "oxib can be installed" install_built
check "depmod finds it" depmod
driver=oxib
run_on_hosts Interfaces 1 8
check "every host's interface comes up" interfaces_up "${hosts[@]}"
run_block h1 "$managers" 5
check "the path leads to the router, with a hop limit" path_of h1 h3 "dlid\.+ *$(router_lid h1)$"

write_table >"$place/addresses.txt"
run_block h1 "$files" 2
runs_as_written h3 "$(block "$files" 2 | sed 's/subnet1/subnet2/')"
run_block h1 "$files" 3
for host in "${hosts[@]}"; do
	run_block "$host" "$files" 4
done
check_equal "all hosts' addresses are in the cache" 8 "$(at h1 oxib -j acm show | jq length)"
run_block h1 Check 1
check "the peer's GID is in its neighbour entry" \
	matches "$(port_field h3 gids/0 | sed 's/://g; s/../&:/g; s/:$//')" "$(at h1 ip neighbour show "$(v4_of h3)" dev ib0)"
check "and the other way" host_reaches h3 "$(v4_of h2)"
run_on_hosts Programs 1 11
check "they can be unloaded" eventually unload_managers
take_down_routed_fabric
give_modules_back
finish
