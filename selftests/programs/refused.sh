#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Unmodified programs that ask for what there is not: a GID of no port, a subnet that no router knows, a partition in which the peer
# is not, a port at which nobody listens. Then two hundred at once, and one that is killed while it writes. All of it on a fabric with a
# router, with oxib and then with the kernel's drivers, whose errors are the same. How long each takes is noted.
#
# nodes: 1
# kernels: fast
# timeout: 600

. selftests/lib/acm.sh

# How many programs at once: for the kernel's drivers, with which they are compared, a few are enough.
declare -A many=([oxib]=200 [ib_ipoib]=20)
pkey=0x8001
drivers=(oxib ib_ipoib)
# A host number that no host has, for each kind of peer.
declare -A numbers=([nobody]=91 [elsewhere]=92)

# --- peers -----------------------------------------------------------------------------------------------------------------------

bytes_of() { # GID
	sed 's/:/ /g; s/\([0-9a-f][0-9a-f]\)\([0-9a-f][0-9a-f]\)/\1:\2/g; s/ /:/g' <<<"$1"
}

# As if it had been looked up: both drivers take it from there.
add_neighbour() { # host, address, GID, [interface]
	at "$1" ip neigh replace "$2" lladdr "80:00:00:48:$(bytes_of "$3")" dev "${4:-ib0}" nud permanent
}

# Its port's GUID is another one, or its subnet's prefix.
add_missing() {
	local gid
	gid=$(port_field h1 gids/0)
	add_neighbour h1 "$(v4_of "h${numbers[nobody]}")" "${gid%:*}:00ee" && gid=$(port_field h3 gids/0) &&
		add_neighbour h1 "$(v4_of "h${numbers[elsewhere]}")" "fec0:0000:0000:0077:${gid#*:*:*:*:}"
}

child_of() { # host
	printf '10.90.0.%d\n' "$(host_number "$1")"
}

child_has_carrier() {
	at h1 grep -q 1 /sys/class/net/blue/carrier
} 2>/dev/null

# A partition without h2.
add_child() {
	printf '%s\n' 'Default=0x7fff, ipoib: ALL=full;' "blue=0x0001, ipoib: $(port_guid h1)=full;" >/tmp/sm.h1/partitions.conf
	reread h1
	at h1 ip link add link ib0 name blue type ipoib pkey "$pkey" && at h1 ip address add "$(child_of h1)/24" dev blue &&
		at h1 ip link set blue up && eventually child_has_carrier &&
		add_neighbour h1 "$(child_of h2)" "$(port_field h2 gids/0)" blue
}

# --- what programs say -----------------------------------------------------------------------------------------------------------

# The event with its error: what else rping says is now one thread's, now the other's. How long it took goes apart.
asks() { # name, command...
	local begin status=0
	begin=$(date +%s%3N)
	at h1 timeout $((4 * patience)) "${@:2}" >/tmp/said 2>&1 || status=$?
	printf '%s: %s ended with %d\n' "$1" "$2" "$status"
	sed -n "s/^cma event/$1: &/p" /tmp/said
	printf '%s ms: %s\n' $(($(date +%s%3N) - begin)) "$1" >&2
}

ask_all() {
	asks "no listener" rping -c -a "$(v4_of h3)" -p 7175 -C 1
	asks "no port" rping -c -a "$(v4_of "h${numbers[nobody]}")" -C 1
	asks "no subnet" rping -c -a "$(v4_of "h${numbers[elsewhere]}")" -C 1
	asks "no partition" rping -c -a "$(child_of h2)" -C 1
}

# --- many ------------------------------------------------------------------------------------------------------------------------

start_server() {
	ip netns exec h3 rping -s -P -a "$(v4_of h3)" >/tmp/server 2>&1 &
	server=$!
	eventually listens_cm h3 7174
}

all_connect() { # number
	local processes=() process failures=0 i
	for ((i = 0; i < $1; i++)); do
		ip netns exec h1 timeout "$longest" rping -c -a "$(v4_of h3)" -C 2 -S 64 >"/tmp/client.$i" 2>&1 &
		processes+=($!)
	done
	for process in "${processes[@]}"; do
		wait "$process" || failures=$((failures + 1))
	done
	equal 0 "$failures" || sort /tmp/client.* | uniq -c | head -n 10
	equal 0 "$failures"
}

test_many() { # driver
	check "$1: a server listens" start_server
	check "$1: ${many[$1]} programs connect at once" all_connect "${many[$1]}"
	kill -KILL "$server"
	wait "$server" 2>/dev/null
	check "$1: nothing is left of the server" eventually has_no_objects h3
	check "$1: nor of them" eventually has_no_objects h1
}

# --- one that is killed ----------------------------------------------------------------------------------------------------------

writes() {
	eventually has_objects h1 qp mr && eventually has_objects h3 qp mr && pause 1
}

test_killed() { # driver
	local client
	ip netns exec h3 rping -s -a "$(v4_of h3)" -S 4000 >/tmp/server 2>&1 &
	server=$!
	eventually listens_cm h3 7174 || note "the server does not listen"
	ip netns exec h1 rping -c -a "$(v4_of h3)" -S 4000 >/tmp/client 2>&1 &
	client=$!
	check "$1: rping writes and reads across the router" writes
	kill -KILL "$client"
	wait "$client" 2>/dev/null
	check "$1: nothing is left of it when it is killed" eventually has_no_objects h1
	check "$1: the other end ends, too" eventually has_ended "$server"
	wait "$server" 2>/dev/null
	check "$1: and nothing is left of that" eventually has_no_objects h3
}

# --- both drivers ----------------------------------------------------------------------------------------------------------------

test_driver() { # driver
	local host
	bring_up_subnets_with "$1" routed "h1 h2" "h3 h4"
	check "$1: the connection manager is loaded" load_managers_of "$1"
	for host in h1 h3; do
		check "$1: $host knows the other end" add_neighbour "$host" "$(v4_of "$(other "$host")")" "$(port_field "$(other "$host")" gids/0)"
	done
	check "$1: h1 knows peers that are not there" add_missing
	check "$1: h1 has a partition in which h2 is not" add_child
	ask_all >"/tmp/refused.$1" 2>"/tmp/times.$1"
	note "$1: $(paste -sd, "/tmp/times.$1")"
	test_many "$1"
	test_killed "$1"
	check "$1: the connection manager can be unloaded" unload_managers_of "$1"
	take_down_routed_fabric
}

other() { # host
	[ "$1" = h1 ] && echo h3 || echo h1
}

same_errors() {
	diff /tmp/refused.ib_ipoib /tmp/refused.oxib && holds "$(grep -c 'cma event' /tmp/refused.oxib)" -eq 4 &&
		! grep 'ended with 0' /tmp/refused.oxib
}

ulimit -l unlimited
ulimit -n 4096
for driver in "${drivers[@]}"; do
	test_driver "$driver"
done
check "programs are refused with the errors that they have with the kernel's drivers" same_errors
finish
