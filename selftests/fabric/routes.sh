#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Routers that an administrator tells where hosts and other subnets are: three subnets in a row are joined by two routers, and
# what the tables do not have is not reached.
#
# nodes: 1
# kernels: fast
# timeout: 300

. selftests/lib/fabric.sh

# shellcheck source=selftests/lib/subnets.sh
. selftests/lib/subnets.sh
# shellcheck source=selftests/lib/chain.sh
. selftests/lib/chain.sh

dropped() { # router, cause
	awk -v cause="$2" '$1 == cause { print $2 }' "$routers/$1/drops"
}

# The router drops what the hosts send to each other, for that cause.
not_reached() { # router, cause, argument of the test of verbs...
	local before
	before=$(dropped "$1" "$2")
	printf '%s\n' "${*:3}" >"$verbs_control" || return
	holds "$(dropped "$1" "$2")" -gt "$before" && holds "$(grep -c '^not ok' "$verbs_control")" -gt 0
}

load_softib || bail_out "softib.ko could not be loaded"
fabric_up chain || bail_out "the fabric could not be built"
check "every port becomes active, and each host has a GID of its subnet" start_chain
check "the test of verbs can be loaded" load_verbs_test
first="$(router_lid h1 r1) $(router_lid h2 r1)"
second="$(router_lid h2 r2) $(router_lid h3 r2)"
both="${first% *} ${second#* }"
note "LIDs of r1: $first, of r2: $second"

# What is missing is not waited for long.
echo 1 >/sys/module/verbs_test/parameters/patience
check "nobody is reached by a router that knows nobody" not_reached r1 no_neighbour h1 h2 unreliable "$first"
check "nor another subnet by one without routes" not_reached r1 no_subnet h1 h3 unreliable "$both"
echo 60 >/sys/module/verbs_test/parameters/patience

check "r1 is told of its neighbours" inform r1 neighbours "$(neighbour h1)" "$(neighbour h2)"
# shellcheck disable=SC2086 # two words
verbs "across r1: " h1 h2 datagram $first
check "r2 is told of its neighbours" inform r2 neighbours "$(neighbour h2)" "$(neighbour h3)"
check "r1 is told of the third subnet" inform r1 routes "fec0:0:0:3::/64 2 ${second% *}"
check "r2 is told of the first" inform r2 routes "fec0:0:0:1::/64 1 ${first#* }"
# shellcheck disable=SC2086
verbs "across both routers: " h1 h3 unreliable $both
# shellcheck disable=SC2086
verbs "across both routers: " h3 h1 reliable ${both#* } ${both% *}
check "the tables say what they were told" matches "^fec0:0:0:3::/64 2 ${second% *}\$" "$(cat "$routers/r1/routes")"
check_equal "a line for each" 2 "$(wc -l <"$routers/r2/neighbours")"
check "r2's route is taken away" inform r2 routes ''
echo 1 >/sys/module/verbs_test/parameters/patience
check "the first subnet is not reached any more" not_reached r2 no_subnet h3 h1 unreliable "${both#* } ${both% *}"
check "it can be unloaded" rmmod verbs_test
take_down_fabric
finish
