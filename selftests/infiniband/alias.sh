#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# An interface that goes to another GID of its port, one that the subnet administrator has made of an alias GUID, and back. It
# is a member of its groups by the GID that it sends from, and by no other: the broadcast group, one that it listens to, and one
# that it only sends to. Its carrier stays, and no join is refused.
#
# nodes: 1
# kernels: fast
# timeout: 120

. selftests/lib/infiniband.sh

# As saquery writes them, in the default partition.
broadcast=ff12:401b:ffff::ffff:ffff
# 239.9.9.9.
group=ff12:401b:ffff::f09:909

# One without a zero at which a GID could be written in another way.
alias_guid() { # host
	printf '1234567890abcd1%d\n' "$(host_number "$1")"
}

ask_for_alias() { # host
	at "$1" python3 selftests/infiniband/alias.py "$(umad_of "$1")" "$(port_number "$1" sm_lid)" "$(port_number "$1" lid)" \
		"0x$(alias_guid "$1")"
}

has_alias() { # host
	equal "fe80:0000:0000:0000:$(alias_guid "$1" | sed -E 's/(....)\B/\1:/g')" "$(port_field "$1" gids/1)"
}

use_alias() { # host
	local address
	address=$(hardware_address_at "$1")
	at "$1" ip link set ib0 address "${address:0:36}$(alias_guid "$1" | sed -E 's/(..)\B/\1:/g')"
}

carrier_changes() { # host
	at "$1" cat /sys/class/net/ib0/carrier_changes
}

# By the GID at one place of the port's table, and not by the one at the other.
is_member_by() { # group, host, join state, place, other place
	equal "$3" "$(join_state "$1" "$2" "$4")" && equal '' "$(join_state "$1" "$2" "$5")"
}

is_no_member() { # group, host, place
	equal '' "$(join_state "$@")"
}

is_heard() { # text
	at h1 python3 selftests/ipoib/group.py say 239.9.9.9 5000 "$1"
	grep -qx "$1" /tmp/heard
}

# h1 sends to the group, h2 listens to it.
test_members() { # name, place, other place
	local host
	for host in h1 h2; do
		check "$1: $host is a member of the broadcast group by the GID that it sends from alone" \
			eventually is_member_by "$broadcast" "$host" 1 "$2" "$3"
	done
	check "$1: h2 is a member of the group that it listens to by that alone" eventually is_member_by "$group" h2 1 "$2" "$3"
	check "$1: h2 hears what h1 says" eventually is_heard "$1"
	check "$1: h1 has joined the group to send, by that alone" eventually is_member_by "$group" h1 8 "$2" "$3"
	check "$1: h2 is reached" eventually host_reaches h1 "$(v4_of h2)"
}

# Who ends threaded polling waits for the interface's polls, which are stopped when it goes down, and for a change of the GID.
# An interface that is down has none, and refuses.
turn_threads_on_and_off() { # host
	at "$1" sh -c 'while :; do echo 1 >/sys/class/net/ib0/threaded; echo 0 >/sys/class/net/ib0/threaded; done' 2>/dev/null
}

go_down_and_up() { # host
	for _ in {1..5}; do
		at "$1" ip link set ib0 down && at "$1" ip link set ib0 up || return
	done
}

go_to_and_fro() { # host
	for _ in {1..20}; do
		use_alias "$1" && at "$1" ip link set ib0 address "${own[$1]}" || return
	done
}

test_threads() {
	turn_threads_on_and_off h1 &
	jobs_running+=($!)
	check "h1 goes to its alias and back, while its polls become threads and end" go_to_and_fro h1
	check "and goes down and up" go_down_and_up h1
	check "h1 has its carrier again" eventually has_carrier h1
	check "threaded polling can be ended" at h1 sh -c 'echo 0 >/sys/class/net/ib0/threaded'
	check "h2 is reached" eventually host_reaches h1 "$(v4_of h2)"
}

bring_up_fabric star h4
load_driver oxib || bail_out "oxib.ko could not be loaded"
check "each host has an interface with carrier" interfaces_up "${hosts[@]}"
for host in h1 h2; do
	check "$host: the subnet administrator takes an alias GUID" ask_for_alias "$host"
	check "$host: its port has it" eventually has_alias "$host"
done
: >/tmp/heard
ip netns exec h2 python3 selftests/ipoib/group.py listen --member 239.9.9.9 5000 >/tmp/heard &
jobs_running+=($!)
check "h2 listens to a group" eventually grep -q listening /tmp/heard
test_members own 0 1
changes=$(carrier_changes h2)
declare -A own
for host in h1 h2; do
	own[$host]=$(hardware_address_at "$host")
	check "$host goes to its alias" use_alias "$host"
done
test_members alias 1 0
for host in h1 h2; do
	check "$host goes back to its own GUID" at "$host" ip link set ib0 address "${own[$host]}"
done
test_members back 0 1
check_equal "h2: its carrier has stayed" "$changes" "$(carrier_changes h2)"
check_refused "no join was refused" kernel_log_has 'does not let port|cannot join the broadcast group'
test_threads
stop_jobs
check "oxib.ko can be unloaded" unload_driver
for place in 0 1; do
	check "then h2 is no member by its GID $place" eventually is_no_member "$broadcast" h2 "$place"
done
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
