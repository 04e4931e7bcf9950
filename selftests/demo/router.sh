#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The second act of `make demo`: two InfiniBand subnets with a router between them, on softib, and one IP subnet over both. Each
# host is a network namespace with an HCA of its own.
#
# router.sh [up]: with `up` only the fabric, its interfaces and the address cache, for a prompt (`make shell`)
#
# nodes: 1
# timeout: 300
# demo: yes

. selftests/lib/acm.sh
# shellcheck source=selftests/lib/demo.sh
. selftests/lib/demo.sh

extent=${1:-whole}
place=/tmp/demo
checkout=$PWD

# In the place of its files.
run_there() { # command...
	cd "$place" && run "$@"
	cd "$checkout" || failed=1
}

write_addresses() {
	local host
	for host in "${hosts[@]}"; do
		printf '%s %s\n' "$host" "$(v4_of "$host")"
	done >"$place/addresses.txt"
}

# A server in h3, until stop_jobs, and its client in h1.
call_across() { # port, 'server', command...
	local port=$1
	printf '# ip netns exec h3 %s &\n' "$2"
	# shellcheck disable=SC2086 # words
	in_background_at h3 $2
	quietly eventually "$port"
	run ip netns exec h1 "${@:3}"
	stop_jobs
}

iperf3_listens() {
	at h3 ss -Hltn 'sport = :5201' | grep -q .
}

rping_listens() {
	at h3 rdma resource show cm_id | grep -q 'state LISTEN'
}

# Packets to groups, of the port; ARP requests and path queries, of the cache.
counters_of() { # host
	at "$1" cat "/sys/class/infiniband/$1/ports/1/counters/multicast_xmit_packets"
	oxib -n "$1" acm stats | awk '{ value[$1] = $2 } END { print value["arp-answered"]; print value["path-queries"] }'
}

declare -A before=()

note_before() {
	local host
	for host in "${hosts[@]}"; do
		before[$host]=$(counters_of "$host")
	done
}

# The growth of each counter since note_before.
show_growth() {
	local host
	printf '%-5s %18s %27s %15s\n' host "packets to groups" "ARP answered in the node" "paths asked for"
	for host in "${hosts[@]}"; do
		paste <(printf '%s\n' "${before[$host]}") <(counters_of "$host") |
			awk -v host="$host" '{ grown[NR] = $2 - $1 } END { printf "%-5s %18d %27d %15d\n", host, grown[1], grown[2], grown[3] }'
	done
}

mkdir -p "$place"
ln -sfn "$checkout/scripts" "$place/scripts"
heading "Two InfiniBand subnets of two hosts, and a router: softib, a fabric in software"
run modprobe -a ib_core ib_umad ib_uverbs
run insmod "$MODULES/softib.ko"
run scripts/fabric up selftests/fabric/topologies/routed.fabric
[ "$failed" = 0 ] || end
mapfile -t hosts < <(ip netns list | awk '{ print $1 }' | sort -V)
# Only what is shown goes over the fabric.
for host in "${hosts[@]}"; do
	quietly at "$host" sysctl -qw net.ipv6.conf.default.disable_ipv6=1
done

heading "An OpenSM in each subnet, which gives it its prefix"
run scripts/fabric manage
run cat /run/softib.managers/h1/opensm.conf /run/softib.managers/h1/prefix-routes.conf
run ip netns exec h1 cat /sys/class/infiniband/h1/ports/1/gids/0
run ip netns exec h3 cat /sys/class/infiniband/h3/ports/1/gids/0
run ip netns exec h1 ibrouters

heading "oxib's interfaces, all in one IP subnet, and its connection manager"
run insmod "$MODULES/oxib.ko"
run insmod "$MODULES/ib_cm.ko"
run modprobe -a rdma_cm rdma_ucm
for host in "${hosts[@]}"; do
	quietly eventually has_interface "$host"
	run ip -n "$host" address add "$(v4_of "$host")/16" dev ib0
	run ip -n "$host" link set ib0 up
done
for host in "${hosts[@]}"; do
	quietly eventually has_carrier "$host"
done
run ip -n h1 -brief address show ib0

heading "The address cache: the fabric is asked in each subnet, and all hosts load the same file"
write_addresses
run_there cat addresses.txt
run_there ip netns exec h1 scripts/collect-fabric collect --table addresses.txt subnet1
run_there ip netns exec h3 scripts/collect-fabric collect --table addresses.txt subnet2
run_there scripts/collect-fabric merge --output all subnet1 subnet2
for host in "${hosts[@]}"; do
	run oxib -n "$host" acm load "$place/all.data"
	run oxib -n "$host" acm paths preload
done
run oxib -n h1 acm show
[ "$extent" = whole ] || end
note_before

heading "Ping, by IP address, across the router"
run ip netns exec h1 ping -c 3 "$(v4_of h3)"

heading "iperf3, across the router"
call_across iperf3_listens "iperf3 -s" iperf3 -c "$(v4_of h3)" -n 16M

heading "rping, verbs and rdma_cm by IP address, across the router"
call_across rping_listens "rping -s -a $(v4_of h3) -C 10" rping -c -a "$(v4_of h3)" -C 10 -v

heading "What that took: no packet to a group, so no ARP on the wire; for rping's service a path, where it was called"
show_growth
end
