# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Two InfiniBand subnets with routers between them, each with a subnet manager on one of its hosts. For scripts that have fabric.sh.

prefix=0xfec000000000000

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
	[ -e "/tmp/sm.$3/prefix-routes.conf" ] || routes_of "$3" "$prefix$2 *"
	for host in "${@:3}"; do
		printf '%s %s %s\n\n' "$(port_guid "$host")" "$(wanted_lid "$host")" "$(wanted_lid "$host")"
	done >"/tmp/sm.$3/guid2lid"
	start_sm "$3" "subnet_prefix $prefix$1" 'honor_guid2lid_file TRUE'
}

gid_has_prefix() { # host, subnet
	matches "^fec0:0000:0000:000$2:" "$(port_field "$1" gids/0)"
}
