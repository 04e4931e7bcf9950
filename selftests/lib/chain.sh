# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Three InfiniBand subnets of a host each in a row, and two routers between them that are told where everything is. For scripts that
# have subnets.sh.

routers=/sys/kernel/config/softib/router

inform() { # router, routes|neighbours, entry...
	local table
	table=$(IFS=, && printf '%s' "${*:3}")
	printf '%s\n' "$table" >"$routers/$1/$2"
}

# A host's entry in a router's table.
neighbour() { # host
	printf '%s %s\n' "$(port_field "$1" gids/0)" "$(port_number "$1" lid)"
}

# A subnet manager in each, whose paths to other subnets lead to the routers.
start_chain() {
	local number
	routes_of h1 "$(prefix_of 2) *" "$(prefix_of 3) *"
	routes_of h2 "$(prefix_of 1) $(router_guid r1-2)" "$(prefix_of 3) $(router_guid r2-1)"
	routes_of h3 "$(prefix_of 1) *" "$(prefix_of 2) *"
	for number in 1 2 3; do
		start_sm "h$number" "subnet_prefix $(prefix_of "$number")"
	done
	eventually all_active || return
	for number in 1 2 3; do
		eventually gid_has_prefix "h$number" "$number" || return
	done
}

inform_chain() {
	inform r1 neighbours "$(neighbour h1)" "$(neighbour h2)" && inform r2 neighbours "$(neighbour h2)" "$(neighbour h3)" &&
		inform r1 routes "fec0:0:0:3::/64 2 $(router_lid h2 r2)" && inform r2 routes "fec0:0:0:1::/64 1 $(router_lid h2 r1)"
}
