#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# traffic.sh [DRIVER of n1 [DRIVER of n2]]: oxib or ib_ipoib
#
# IP over InfiniBand on one fabric, by oxib in both nodes or by the kernel's driver in one: IPv4 and IPv6 in packets of all
# sizes, TCP, UDP, groups, from and to the other node and within one.
#
# nodes: 2
# kernels: fast
# timeout: 300

. selftests/lib/infiniband.sh

drivers=("${1:-oxib}" "${2:-oxib}")
pair="${drivers[0]} and ${drivers[1]}"

tcp=()
[ "$KERNEL" != debug ] || tcp=(-l 4K -w 8K)

test_sizes() { # address, length of the headers
	local size mtu
	mtu=$(mtu_of h1)
	for size in 0 1 8 44 64 512 1000 $((mtu - $2)); do
		check "$pair: ping $1 with $size bytes in one packet" host_reaches h1 "$1" -M do -s "$size"
	done
	for size in $((mtu - $2 + 1)) 9000 20000 60000; do
		check "$pair: ping $1 with $size bytes in fragments" host_reaches h1 "$1" -s "$size"
	done
	check "a packet of the MTU and one byte cannot leave whole" cannot_leave_whole $((mtu - $2 + 1)) host_answers h1 "$1"
}

test_iperf() { # IPv4 address, IPv6 address
	check "$pair: TCP to the other" measured -c "$1" "${tcp[@]}"
	check "$pair: TCP from the other" measured -c "$1" "${tcp[@]}" -R
	check "$pair: TCP over IPv6, four connections" measured -c "$2" "${tcp[@]}" -P 4
	check "$pair: TCP both ways at once" measured_both_ways -c "$1" "${tcp[@]}"
	check "$pair: UDP to the other" measured -c "$1" -u -b 10M -l 1000
	check "$pair: UDP from the other, packets of the MTU" measured -c "$1" -u -b 10M -l $(($(mtu_of h1) - 28)) -R
	check "$pair: UDP over IPv6, four streams" measured -c "$2" -u -b 4M -l 64 -P 4
}

# --- groups ---

# h1 and h2 of each node are members; what any says all others hear, and not itself.
listen() { # group
	local host
	for host in h1 h2; do
		: >"/tmp/heard.$host"
		at "$host" python3 selftests/ipoib/group.py listen --member "$1" 5000 >"/tmp/heard.$host" &
		jobs_running+=($!)
		eventually grep -q listening "/tmp/heard.$host"
	done
}

hears() { # host, text
	eventually grep -qx "$2" "/tmp/heard.$1" || {
		cat "/tmp/heard.$1"
		return 1
	}
}

test_group() { # group
	local node said=()
	listen "$1"
	barrier listening
	said=()
	for node in 1 2; do
		said+=("$meeting_place/told.heard.$1.$node")
	done
	in_background_at h1 timeout $((4 * patience)) python3 selftests/ipoib/group.py say "$1" 5000 "node $NODE" "${said[@]}"
	check "$pair: what h1 of n$peer says to $1 is heard by h1 of n$NODE" hears h1 "node $peer"
	check "$pair: and by h2" hears h2 "node $peer"
	check "$pair: what h1 of n$NODE says is heard by h2" hears h2 "node $NODE"
	tell "heard.$1" yes
	told "heard.$1" "$peer" >/dev/null
	check_refused "$pair: and not by itself" grep -q "node $NODE" /tmp/heard.h1
	stop_jobs
	barrier "heard $1"
}

bring_up_shared_fabric "${drivers[NODE - 1]}"
check "IPv4 within the node" host_reaches h1 "$(v4_of h2)"
check "IPv6 within the node" host_reaches h1 "$(v6_of h2)"
test_group 239.9.9.9
test_group ff15::99
if [ "$NODE" = 2 ]; then
	in_background_at h1 iperf3 -s
	barrier ready
else
	barrier ready
	v4=$(v4_of h1 2)
	v6=$(v6_of h1 2)
	check "the first IPv4 packet finds its way" host_reaches h1 "$v4"
	check "the first IPv6 packet finds its way" host_reaches h1 "$v6"
	test_sizes "$v4" 28
	test_sizes "$v6" 48
	test_iperf "$v4" "$v6"
fi
barrier done
take_down_shared_fabric
finish
