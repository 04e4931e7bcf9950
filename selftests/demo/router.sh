#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The second act of `make demo`: two InfiniBand subnets with a router between them, on softib, and one IP subnet over both. Each
# host is a network namespace with an HCA of its own.
#
# nodes: 1
# timeout: 300
# demo: yes

. selftests/acm.sh
# shellcheck source=selftests/demo.sh
. selftests/demo.sh

place=/tmp/demo
checkout=$PWD

# In the place of its files.
run_there() { # command...
	cd "$place" && run "$@"
	cd "$checkout" || failed=1
}

start_managers() {
	local host
	start_subnet 1 2 h1 h2
	start_subnet 2 1 h3 h4
	for host in h1 h3; do
		printf '# ip netns exec %s opensm --config /tmp/sm.%s/opensm.conf &\n' "$host" "$host"
	done
	quietly eventually all_active
	quietly eventually all_have_prefixes "h1 h2" "h3 h4"
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

sent_to_groups() {
	at h1 cat /sys/class/infiniband/h1/ports/1/counters/multicast_xmit_packets
}

mkdir -p "$place"
ln -sfn "$checkout/scripts" "$place/scripts"
heading "Two InfiniBand subnets of two hosts, and a router: softib, a fabric in software"
run modprobe -a ib_core ib_umad ib_uverbs
run insmod "$MODULES/softib.ko"
run scripts/fabric up selftests/fabric/topologies/routed.fabric
mapfile -t hosts < <(ip netns list | awk '{ print $1 }' | sort -V)
# Only what is shown goes over the fabric.
for host in "${hosts[@]}"; do
	quietly at "$host" sysctl -qw net.ipv6.conf.default.disable_ipv6=1
done

heading "An OpenSM in each subnet, which gives it its prefix"
start_managers
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
done
run oxib -n h1 acm show
run oxib -n h1 acm paths preload
before=$(sent_to_groups)

heading "Ping, by IP address, across the router"
run ip netns exec h1 ping -c 3 "$(v4_of h3)"

heading "iperf3, across the router"
call_across iperf3_listens "iperf3 -s" iperf3 -c "$(v4_of h3)" -n 16M

heading "rping, verbs and rdma_cm by IP address, across the router"
ulimit -l unlimited
call_across rping_listens "rping -s -a $(v4_of h3) -C 10" rping -c -a "$(v4_of h3)" -C 10 -v

heading "What that took: no packet to a group, so no ARP, and paths that were known before"
run oxib -n h1 acm stats
printf 'packets of h1 to groups meanwhile: %d\n' $(($(sent_to_groups) - before))

stop_jobs
quietly rmmod rdma_ucm
quietly rmmod rdma_cm
rmmod iw_cm 2>/dev/null
quietly rmmod ib_cm
quietly rmmod oxib
stop_sm
run scripts/fabric down
end
