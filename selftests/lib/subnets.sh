# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Two InfiniBand subnets with routers between them, each with a subnet manager on one of its hosts. For scripts that have fabric.sh.

# UCX takes the LID of the router from the GID of the port that it wants to reach: bits 16 to 31 of the subnet's prefix, the FLID. 0: subnets
# have none. Else subnet N has this and N, which is the LID of the router r1 in the other subnet.
flid=0

prefix_of() { # subnet
	printf '0xfec00000%04x%04x\n' $((flid ? flid + $1 : 0)) "$1"
}

# The LID that a router which computes LIDs expects a host to have, and that it therefore is to have.
wanted_lid() { # host
	port_guid "$1" | sed 's/.*\(....\)$/0x\1/'
}

routes_of() { # host of the subnet manager, line of prefix-routes.conf...
	mkdir -p "/tmp/sm.$1"
	printf '%s\n' "${@:2}" >"/tmp/sm.$1/prefix-routes.conf"
}

# Paths to the other subnet lead to any router, if nothing else is said before.
start_subnet() { # its number, the other's, host...
	local host
	[ -e "/tmp/sm.$3/prefix-routes.conf" ] || routes_of "$3" "$(prefix_of "$2") *"
	for host in "${@:3}"; do
		printf '%s %s %s\n\n' "$(port_guid "$host")" "$(wanted_lid "$host")" "$(wanted_lid "$host")"
	done >"/tmp/sm.$3/guid2lid"
	[ "$flid" = 0 ] || printf '%s %#x %#x\n\n' "$(router_guid "r1-$1")" $((flid + $2)){,} >>"/tmp/sm.$3/guid2lid"
	start_sm "$3" "subnet_prefix $(prefix_of "$1")" 'honor_guid2lid_file TRUE'
}

gid_has_prefix() { # host, subnet
	matches "^fec0:0000:....:000$2:" "$(port_field "$1" gids/0)"
}
