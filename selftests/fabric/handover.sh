#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Two subnet managers: the one of higher priority is the master, the other takes over when that dies, and hands over when
# it comes back. Meanwhile nothing changes for the ports.
#
# nodes: 1
# kernels: fast
# timeout: 400

. selftests/lib/fabric.sh

preferred=(h1 "sm_priority 10")
other=(h2 "sm_priority 5")

all_lids() {
	local host
	for host in "${hosts[@]}"; do
		printf '%s=%s ' "$host" "$(port_number "$host" lid)"
	done
}

every_port_knows() { # host: the master
	local host
	for host in "${hosts[@]}"; do
		equal "$host: $(port_number "$1" lid)" "$host: $(port_number "$host" sm_lid)" || return
	done
}

is_master() { # host, description
	check "$2: h3 is told that it is $1" eventually master_is h3 "$1"
	check "$2: every port is told" eventually every_port_knows "$1"
	check "$2: every port is active" all_active
}

# The SM of h2 has found the master before that dies.
stands_by() { # host
	says "$1" "sminfo $(port_number "$1" lid)" SMINFO_STANDBY
}

bring_up_fabric star "${preferred[*]}"
start_sm "${other[@]}"
check "the second one stands by" eventually stands_by h2
is_master h1 "two subnet managers"
lids=$(all_lids)
kill_sm h1
is_master h2 "the master has died"
check_equal "no LID has changed" "$lids" "$(all_lids)"
check "the new one answers queries" eventually says h4 'saquery -N' 'NodeDescription.*h4'
start_sm "${preferred[@]}"
is_master h1 "the first one has come back"
check "the second one stands by again" eventually stands_by h2
check_equal "no LID has changed then, either" "$lids" "$(all_lids)"
take_down_fabric
finish
