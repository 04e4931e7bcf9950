#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Connections between two IP subnets: n1 and n3 have RDMA devices, n2 between them is an IP router without one. So the
# path's hop limit is 64, and what the peer's address is shows in the packet alone.
#
# router.sh [N1:N3...]: the connection managers of n1, which calls, and of n3, which serves.
#
# nodes: 3
# kernels: fast
# timeout: 300

. selftests/lib/cm.sh

combinations=("$@")
[ $# -gt 0 ] || combinations=(oxib:oxib oxib:kernel kernel:oxib)
programs[v4]="rping ucmatose udaddy ib_send_lat cmtime"
programs[v6]="rping ucmatose udaddy ib_send_lat"

# --- the ground: a subnet on each side of the router ------------------------------------------------------------------------

address_of() { # v4|v6, node
	case $1 in
	v4) printf '10.77.%d.%d\n' "$2" "$2" ;;
	v6) printf 'fd00:77:%d::%d\n' "$2" "$2" ;;
	esac
}

# The router's address in the subnet of a node.
gateway_of() { # v4|v6, node
	case $1 in
	v4) printf '10.77.%d.254\n' "$2" ;;
	v6) printf 'fd00:77:%d::fe\n' "$2" ;;
	esac
}

route() {
	local cable subnet=1
	sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	for cable in eth0 eth1; do
		ip link set "$cable" mtu 9000 up &&
			ip address add "$(gateway_of v4 "$subnet")/24" dev "$cable" &&
			ip address add "$(gateway_of v6 "$subnet")/64" dev "$cable" nodad || return
		subnet=3
	done
}

stand_in_subnet() {
	ip link set eth0 mtu 9000 up &&
		ip address add "$(address_of v4 "$NODE")/24" brd + dev eth0 &&
		ip address add "$(address_of v6 "$NODE")/64" dev eth0 nodad &&
		ip route add default via "$(gateway_of v4 "$NODE")" &&
		ip -6 route add default via "$(gateway_of v6 "$NODE")" &&
		modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0 && eventually rxe_is_active
}

ground_up() {
	ulimit -l unlimited
	ulimit -n 65536
	if [ "$NODE" = 2 ]; then route; else stand_in_subnet; fi || bail_out "the ground cannot be laid"
	barrier ground
	[ "$NODE" = 2 ] || eventually answers "$(address_of v4 $((4 - NODE)))" || bail_out "the router does not route IPv4"
	[ "$NODE" = 2 ] || eventually answers "$(address_of v6 $((4 - NODE)))" || bail_out "the router does not route IPv6"
}

# --- what the router sees ------------------------------------------------------------------------------------------------

start_capture() {
	: >/tmp/tcpdump.log
	tcpdump -i eth1 -w "/out/$1.pcap" -U -c 200 udp dst port 4791 2>/tmp/tcpdump.log &
	jobs_running+=($!)
	eventually grep -q 'listening on' /tmp/tcpdump.log || bail_out "tcpdump does not capture"
}

# A hop limit of 64 that one router has lowered; from n3 it comes as it was sent.
hop_limits() { # name
	tcpdump -r "/out/$1.pcap" -nn -v 2>/dev/null | grep -oE 'ttl [0-9]+' | sort -u | tr '\n' ' '
}

# --- a combination ---------------------------------------------------------------------------------------------------------

test_combination() {
	local mine=${combination%:*}
	[ "$NODE" = 1 ] || mine=${combination#*:}
	[ "$NODE" = 2 ] || check "$combination: n$NODE runs the connection manager of $mine" load_cm "$mine"
	on_node 2 start_capture "$combination"
	barrier loaded
	run_programs v4
	run_programs v6
	on_node 2 stop_jobs
	on_node 2 check_equal "$combination: hop limits of 64, lowered by the router for one side" "ttl 63 ttl 64 " \
		"$(hop_limits "$combination")"
	[ "$NODE" = 2 ] || note_counters
	[ "$NODE" = 2 ] || check "$combination: n$NODE can unload it" unload_cm
	barrier unloaded
}

ground_up
[ "$NODE" = 2 ] || slow_names
for combination in "${combinations[@]}"; do
	test_combination
done
[ "$NODE" = 2 ] || ground_down
finish
