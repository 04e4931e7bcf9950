#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part of the benchmark of routes that runs inside a node: what rdma_resolve_route takes until its event, for a path that is
# known to the service that the kernel asks, in microseconds, one after the other and many at once; and how many management
# datagrams (MADs) of the subnet administrator, by anybody, a resolution takes. The administrator is on h2, the peer is h1, on the
# same switch. The program is in the node's own network namespace, as ibacm hears the kernel in the first one alone. scripts/bench
# reads what this prints: "route WHO each|awake|all USEC", "mads WHO NUMBER"; awake is each, while no processor sleeps.
#
# routes.sh REPETITIONS EACH ALL: so many one after the other, and at once, in each repetition
#
# WHO is sa (acm_programs=off), ibacm (the same with ibacm running), oxib (acm_programs=exact).

. selftests/lib/infiniband.sh
. selftests/lib/acm.sh

repetitions=$1 each=$2 all=$3
topologies=/tmp
here=10.88.200.1
# The IP packets of the program's HCA are in its node's own namespace.
hca=hca0

hca_is_up() {
	[ "$(cat "/sys/class/infiniband/$hca/ports/1/state")" = '4: ACTIVE' ]
}

lay_ground() {
	ulimit -n 65536
	ip link add cable0 mtu 9000 type veth peer name cable1 mtu 9000 || bail_out "there is no cable"
	ip link set cable0 up
	ip link set cable1 up
	printf '%s\n' 'star hosts=2' 'cable s1 @cable1' >"$topologies/routes.fabric"
	bring_up_fabric routes 'h2 sweep_interval 0'
	rdma link add "$hca" type softib netdev cable0 || bail_out "there is no HCA in the node's own namespace"
	eventually hca_is_up || bail_out "its port does not become active"
}

begin() { # acm_programs
	load_driver oxib acm_learn=0 "acm_programs=$1" || bail_out "oxib could not be loaded"
	interfaces_up h1 || bail_out "IP over InfiniBand did not come up at h1"
	eventually ib_exists || bail_out "$hca has no interface"
	ip address replace "$here/16" brd + dev ib0 && ip link set ib0 up
	eventually carrier_is 1 || bail_out "ib0 has no carrier"
	load_managers || bail_out "the connection managers could not be loaded"
	eventually answers "$(v4_of h1)" || bail_out "h1 is not reached"
}

end() {
	stop_jobs
	check "the connection managers can be unloaded" eventually unload_managers
	check "oxib can be unloaded" unload_driver
}

resolve() { # option..., number
	python3 selftests/acm/resolve_route.py "$@" "$(v4_of h1)" >/tmp/routes || bail_out "a route was not found: $(cat /tmp/routes)"
	grep -q "dlid $(port_number h1 lid) " /tmp/routes || bail_out "it leads elsewhere: $(cat /tmp/routes)"
}

print_times() { # who, [awake]: what the times are of, if not what the program calls them
	sed -nE "s/^(each|all) us=(.*)/route $1 ${2:-\\1} \2/p" /tmp/routes
}

# An answer is a few wake-ups. A processor of a machine with nothing to do sleeps, and takes longer to wake than anybody here takes
# to answer. A program that gives way to all others keeps each awake.
sleepless=()
keep_awake() {
	local processor
	for ((processor = 0; processor < $(nproc); processor++)); do
		taskset --cpu-list "$processor" chrt --idle 0 sh -c 'while :; do :; done' &
		sleepless+=($!)
	done
}

let_sleep() {
	kill "${sleepless[@]}"
	wait "${sleepless[@]}"
	sleepless=()
} 2>/dev/null

# Sent by anybody: questions and answers.
watch_mads() {
	[ -e "$tracing/trace" ] || mount -t tracefs tracefs "$tracing"
	echo 'mgmt_class == 3' >"$sent/filter" && echo 1 >"$sent/enable" && : >"$tracing/trace"
}

count_mads() { # who
	local turn
	for ((turn = 0; turn < 3; turn++)); do
		watch_mads || bail_out "management datagrams cannot be counted"
		resolve 1
		echo 0 >"$sent/enable"
		printf 'mads %s %d\n' "$1" "$(watched_tries)"
	done
}

measure_routes() { # who
	local turn
	# The first one is asked for by the service that keeps it.
	resolve 1
	pause 2
	count_mads "$1"
	for ((turn = 0; turn < repetitions; turn++)); do
		resolve --each "$each"
		print_times "$1"
		resolve "$all"
		print_times "$1"
		keep_awake
		resolve --each "$each"
		print_times "$1" awake
		let_sleep
	done
}

# It has the GID of h1 from its file, and asks the SA for the path at first.
start_ibacm() {
	mkdir -p /tmp/ibacm
	printf '%s\n' 'log_level 1' 'log_file /out/ibacm.log' 'lock_file /tmp/ibacm/pid' 'addr_preload acm_hosts' \
		'addr_data_file /tmp/ibacm/hosts.data' 'route_prot sa' >/tmp/ibacm/opts.cfg
	printf '%s %s\n' "$(v4_of h1)" "$(port_field h1 gids/0)" >/tmp/ibacm/hosts.data
	echo "$hca $hca 1 default" >/tmp/ibacm/addresses.cfg
	in_background ibacm --systemd -O /tmp/ibacm/opts.cfg -A /tmp/ibacm/addresses.cfg
}

listens_to_kernel() {
	awk '$2 == 20 && $4 == "00000004" { found = 1 } END { exit !found }' /proc/net/netlink
}

lay_ground
begin off
measure_routes sa
start_ibacm
eventually listens_to_kernel || bail_out "ibacm does not listen: $(cat /out/ibacm.log)"
pause 2
measure_routes ibacm
end
begin exact
measure_routes oxib
end
rdma link delete "$hca"
take_down_fabric
ok "the measurements were taken"
finish
