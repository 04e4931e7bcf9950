#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part of the benchmark of programs that connects by IP address across a router, with oxib or with the kernel's drivers: what
# cmtime takes for rdma_resolve_addr(), rdma_resolve_route() and rdma_connect() until their events, one connection after another.
# The peer's address is known beforehand, to ib_ipoib by a neighbour entry: it cannot look up an address across a router.
# scripts/bench reads what this prints: "connect DRIVER USEC".
#
# connect.sh DRIVER REPETITIONS

. selftests/lib/acm.sh

driver=$1 repetitions=$2
near=h1 far=h3
port=7471

know_each_other() {
	if [ "$driver" = oxib ]; then
		know "$near" "$far"
		know "$far" "$near"
	else
		add_neighbour "$near" "$far"
		add_neighbour "$far" "$near"
	fi
}

add_neighbour() { # host, other
	at "$1" ip neigh replace "$(v4_of "$2")" lladdr "$(at "$2" cat /sys/class/net/ib0/address)" dev ib0 nud permanent
}

connect() {
	local server
	ip netns exec "$far" timeout "$longest" cmtime -b "$(v4_of "$far")" -c 1 >/tmp/server 2>&1 &
	server=$!
	eventually listens_cm "$far" "$port" || bail_out "the server does not listen: $(cat /tmp/server)"
	at "$near" timeout "$longest" cmtime -s "$(v4_of "$far")" -c 1 >/tmp/client 2>&1 ||
		bail_out "the client failed: $(cat /tmp/client)"
	wait "$server" || bail_out "the server failed: $(cat /tmp/server)"
	printf 'connect %s %d\n' "$driver" "$(awk '/^Connect .*QPs test/ { found = 1 }
		/no QPs$/ { exit }
		found && /^(resolve addr|resolve route|cm connect) / { sum += $(NF - 5) }
		END { print sum }' /tmp/client)"
}

bring_up_subnets_with "$driver" routed "h1 h2" "h3 h4"
load_managers_of "$driver" || bail_out "the connection manager could not be loaded"
know_each_other
eventually host_answers "$near" "$(v4_of "$far")" || bail_out "$far is not reached"
for ((repetition = 0; repetition < repetitions; repetition++)); do
	connect
done
check "the connection manager can be unloaded" unload_managers_of "$driver"
take_down_routed_fabric
ok "the measurements were taken"
finish
