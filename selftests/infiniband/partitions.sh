#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Partitions that the subnet manager changes under interfaces that are in use: another P_Key comes first in a port's table, and
# the port's own interface goes to that partition and comes back; full members become limited ones; the P_Key is taken away
# and given back. A peer that goes, of which a limited member learns as others do. And a peer whose LID changes without anybody
# being told.
#
# nodes: 1
# kernels: fast
# timeout: 400

. selftests/lib/infiniband.sh

sm_host=h4

# Lines of partitions.conf; the manager and the switch are in the default partition in any case.
write_partitions() { # members of the default partition, [line...]
	{
		printf 'Default=0x7fff, ipoib: SELF=full, ALL_SWITCHES=full, %s;\n' "$1"
		shift
		[ $# = 0 ] || printf '%s\n' "$@"
	} >"/tmp/sm.$sm_host/partitions.conf"
	[ -z "${sm_processes[$sm_host]:-}" ] || kill -HUP "${sm_processes[$sm_host]}"
}

members() { # HOST=full|limited...
	local item list=()
	for item in "$@"; do
		list+=("$(port_guid "${item%=*}")=${item#*=}")
	done
	(IFS=, && printf '%s\n' "${list[*]}")
}

first_pkey_is() { # host, P_Key
	equal "$2" "$(port_field "$1" pkeys/0)"
}

has_pkey() { # host, P_Key
	at "$1" sh -c "cat /sys/class/infiniband/$1/ports/1/pkeys/*" | grep -q "$2"
}

is_in() { # host, P_Key
	equal "$2" "$(at "$1" cat /sys/class/net/ib0/pkey)"
}

# As the broadcast address has it.
broadcast_has() { # host, P_Key as two bytes
	equal "$2" "$(at "$1" ip -j link show ib0 | jq -r '.[0].broadcast' | cut -c 25-29)"
}

# All ports have their P_Keys, of the manager's opinion as well.
everybody=(h1=full h2=full h3=full)
blue() { # [flag of the partition]
	printf 'blue=0x0001, ipoib%s: %s;\n' "${1:-}" "$(members h1=full h2=full)"
}

# --- groups ---------------------------------------------------------------------------------------------------------------------

listening() { # host
	at "$1" python3 selftests/ipoib/group.py listen --member 239.9.9.9 5000 >"/tmp/heard.$1" &
	jobs_running+=($!)
	eventually grep -q listening "/tmp/heard.$1"
}

group_is_heard() { # by, text
	at h1 python3 selftests/ipoib/group.py say 239.9.9.9 5000 "$2"
	grep -qx "$2" "/tmp/heard.$1"
}

# --- what changes ---------------------------------------------------------------------------------------------------------------

test_first() {
	local host
	write_partitions "$(members "${everybody[@]}")" "$(blue ', indx0')"
	for host in h1 h2; do
		check "$host: blue comes first in its port's table" eventually first_pkey_is "$host" 0x8001
		check "$host: ib0 is in blue" eventually is_in "$host" 0x8001
		check "$host: so says its broadcast address" broadcast_has "$host" 80:01
		check "$host: it has carrier" eventually has_carrier "$host"
	done
	check "the log says so" kernel_log_has 'ib0: port 1 has the P_Key 0x8001 first now'
	check "h1 reaches h2 in blue" eventually host_reaches h1 "$(v4_of h2)"
	check "by IPv6, too" eventually host_reaches h2 "$(v6_of h1)"
	check "h1 is heard by the group's member there" eventually group_is_heard h2 blue
	check_refused "h3 is in another partition" host_answers h3 "$(v4_of h1)"
	check "a child of h1 in the default partition" at h1 ip link add link ib0 name c1 type ipoib pkey 0xffff
	at h1 ip address add 10.89.0.1/24 dev c1
	at h1 ip link set c1 up
	at h3 ip address add 10.89.0.3/24 dev ib0
	check "reaches h3" eventually host_reaches h1 10.89.0.3
	check "with ib0 down the partition changes, too" at h2 ip link set ib0 down
	write_partitions "$(members "${everybody[@]}")"
	for host in h1 h2; do
		check "$host: the default partition comes first again" eventually first_pkey_is "$host" 0xffff
		check "$host: ib0 is in it" eventually is_in "$host" 0xffff
		check "$host: so says its broadcast address" broadcast_has "$host" ff:ff
	done
	check "h2: ib0 comes up" interfaces_up h2
	check "h3 reaches h1" eventually host_reaches h3 "$(v4_of h1)"
	check "h1 reaches h2" eventually host_reaches h1 "$(v4_of h2)"
	check "h1 is heard by members in both" eventually group_is_heard h2 back
	check "also where nothing had changed" eventually group_is_heard h3 again
	check "the child, which is in the same partition now, is reached" eventually host_reaches h3 10.89.0.1
	check "it goes" at h1 ip link delete c1
}

# The subnet manager has it.
is_in_subnet() { # host
	at "$sm_host" saquery -N | grep -E "NodeDescription\.+ *$1\$"
}

is_out_of_subnet() { # host
	local nodes
	nodes=$(at "$sm_host" saquery -N) && ! grep -qE "NodeDescription\.+ *$1\$" <<<"$nodes"
}

# OpenSM gives no path to h1 then, and none from h2, a limited member, to itself. The path in use is given up all the same.
test_gone() {
	local gid
	gid=$(port_field h1 gids/0)
	check "h2 keeps h1 for a neighbour" at h2 ip neighbour change "$(v4_of h1)" dev ib0 nud permanent
	check_equal "it knows the path" yes "$(knows_path h2 "$gid")"
	check "the subnet manager has h1" eventually is_in_subnet h1
	check "the cable of h1 is pulled" pull h1
	check "the subnet manager sees that" eventually is_out_of_subnet h1
	check "h2 is to register again" register_again h2
	check "it gives the path up" eventually has_lost_path h2 "$gid" "$(v4_of h1)"
	check "the cable is put back" put_back h1
	check "h1 is to be found anew" at h2 ip neighbour delete "$(v4_of h1)" dev ib0
	check "h2 reaches it" eventually host_reaches h2 "$(v4_of h1)"
}

test_limited() {
	write_partitions "$(members h1=full h2=limited h3=limited)"
	for host in h2 h3; do
		check "$host is a limited member" eventually first_pkey_is "$host" 0x7fff
		check "$host: ib0 is shown as a full one's" is_in "$host" 0xffff
	done
	check "h2 reaches a full member" eventually host_reaches h2 "$(v4_of h1)"
	test_gone
	check "a full member reaches h3" eventually host_reaches h1 "$(v4_of h3)"
	flush_neighbours h2 h3
	check_refused "limited members do not reach each other" host_answers h2 "$(v4_of h3)"
	check "h3 comes up as a limited member" interfaces_up h3
	check "and reaches a full one" eventually host_reaches h3 "$(v4_of h1)"
	write_partitions "$(members "${everybody[@]}")"
	check "h2 is a full member again" eventually first_pkey_is h2 0xffff
	check "h3, too" eventually first_pkey_is h3 0xffff
	check "h2 reaches h3" eventually host_reaches h2 "$(v4_of h3)"
}

# OpenSM has everybody in the default partition, at least as a limited member: that P_Key takes the place of another that it takes
# away. A partition without the port is a matter of children (configuration.sh).
test_taken() {
	local host
	write_partitions "$(members "${everybody[@]}")" "blue=0x0001, ipoib, indx0: $(members h2=full h3=full);"
	check "h3: ib0 is in blue" eventually is_in h3 0x8001
	check "it is reached there" eventually host_reaches h2 "$(v4_of h3)"
	write_partitions "$(members "${everybody[@]}")" "blue=0x0001, ipoib, indx0: $(members h2=full);"
	check "h3 is not in blue any more" eventually refused has_pkey h3 0x8001
	check "its interface is in what comes first then" eventually is_in h3 0xffff
	check "it is reached there" eventually host_reaches h1 "$(v4_of h3)"
	check_refused "and not by who is in blue" host_answers h2 "$(v4_of h3)"
	write_partitions "$(members "${everybody[@]}")" "blue=0x0001, ipoib, indx0: $(members h2=full h3=full);"
	check "h3 is given its P_Key back" eventually is_in h3 0x8001
	check "it is reached" eventually host_reaches h2 "$(v4_of h3)"
	write_partitions "$(members "${everybody[@]}")"
	for host in h2 h3; do
		check "$host: ib0 is in the default partition again" eventually is_in "$host" 0xffff
	done
}

# --- LIDs -----------------------------------------------------------------------------------------------------------------------

queries() {
	counter_at h1 sa_path_queries
}

# A neighbour that does not answer is asked that often before it is asked for by broadcast.
ask_directly() { # host, times
	at "$1" sh -c "echo $2 >/proc/sys/net/ipv4/neigh/ib0/ucast_solicit"
}

# Ports are not asked to register again: hosts have to find out by themselves. The new subnet manager knows no groups, so
# there is no broadcast.
test_lid() { # mode, LID
	local before host
	for host in h1 h3; do
		check "$1: $host knows h2" eventually host_reaches "$host" "$(v4_of h2)"
		ask_directly "$host" 1000
	done
	check "$1: the subnet manager is stopped" stop_sm "$sm_host"
	check "$1: it is to give h2 the LID $2" give_lid "$sm_host" h2 "$2"
	before=$(queries)
	start_sm "$sm_host" 'no_clients_rereg TRUE' 'honor_guid2lid_file TRUE'
	check "$1: h2 has that LID" eventually lid_is h2 "$2"
	check "$1: h1 reaches it there" eventually host_answers h1 "$(v4_of h2)"
	note "$1: h1 has asked the SA $(($(queries) - before)) times"
	check "$1: h3 does" eventually host_answers h3 "$(v4_of h2)"
}

# One that has the ports register again.
groups_again() {
	stop_sm "$sm_host" && start_sm "$sm_host" && eventually group_is_heard h3 "$1"
}

set_mode() { # host, datagram|connected
	at "$1" sh -c "echo $2 >/sys/class/net/ib0/mode" && eventually has_carrier "$1"
}

# ------------------------------------------------------------------------------------------------------------------------------

bring_up_fabric star "$sm_host"
load_driver oxib || bail_out "oxib could not be loaded"
check "each host has an interface with carrier" interfaces_up "${hosts[@]}"
mount_debugfs
for host in h2 h3; do
	check "$host is a member of a group" listening "$host"
done
check "h1 is heard" eventually group_is_heard h3 first
test_first
test_limited
test_taken
test_lid datagram 64
check "the next subnet manager learns of groups" groups_again last
for host in h1 h3; do
	ask_directly "$host" 3
done
for host in h1 h2; do
	check "$host goes to connected mode" set_mode "$host" connected
done
test_lid connected 65
stop_jobs
check "oxib can be unloaded" unload_driver
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
