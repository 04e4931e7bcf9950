#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Where what comes in goes: each receive queue has a completion vector of its own, packets carry the number of their receive
# queue, which the stack chooses transmit queues by, and who sends to a group does not get that back.
#
# nodes: 1
# smp: 4
# kernels: fast
# timeout: 200

. selftests/lib/infiniband.sh

topologies=/tmp
queues=4

# How many completion queues of h1 are on each vector, in a line.
vectors() {
	tr '\n' ' ' </sys/kernel/config/softib/hca/h1/vectors
}

# Vectors that have more completion queues than before.
grown() { # before, after
	local was is vector count=0
	read -ra was <<<"$1"
	read -ra is <<<"$2"
	for vector in "${!is[@]}"; do
		[ "${is[vector]}" -le "${was[vector]}" ] || count=$((count + 1))
	done
	printf '%d\n' "$count"
}

# A way out of h1 with transmit queues, each of which counts.
make_exit() {
	at h1 ip link add exit numtxqueues "$queues" type dummy && at h1 sysctl -q net.ipv6.conf.exit.disable_ipv6=1 &&
		at h1 ip address add 10.99.0.1/24 dev exit && at h1 ip link set exit up &&
		at h1 tc qdisc add dev exit root handle 1: mq && at h1 sysctl -q net.ipv4.ip_forward=1 &&
		at h2 ip route add 10.99.0.0/24 via "$(v4_of h1)"
}

# As many flows as there are ports.
send_flows() { # number
	at h2 python3 - "$1" <<'END'
import socket
import sys

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    for port in range(6000, 6000 + int(sys.argv[1])):
        sock.sendto(b"x" * 100, ("10.99.0.9", port))
END
}

left_by() { # the packets that left by each queue
	at h1 tc -s class show dev exit | awk '$1 == "Sent" { print $4 }'
}

has_left() { # at least
	holds "$(left_by | awk '{ sum += $1 } END { print sum + 0 }')" -ge "$1"
}

printf '%s\n' 'star hosts=2' 'host h1 own_multicast=1 sleeping_ah=1' >/tmp/spread.fabric
bring_up_fabric spread h1
load_driver oxib || bail_out "oxib.ko could not be loaded"
check "the interfaces come up" interfaces_up "${hosts[@]}"
check "h1 reaches h2" eventually host_reaches h1 "$(v4_of h2)"

before=$(vectors)
check "h1 has $queues receive queues" at h1 ethtool -L ib0 rx "$queues"
after=$(vectors)
note "completion queues of each vector: $before, then $after"
check_equal "the new ones have a vector each" $((queues - 1)) "$(grown "$before" "$after")"

check "h1 has a way out with $queues transmit queues" make_exit
check "h2 sends 40 flows by it" send_flows 40
check "they leave" eventually has_left 40
note "by each queue:" "$(left_by | xargs)"
check_equal "all by one queue, as they came by one" 1 "$(left_by | grep -vcx 0)"

# The HCA tells queue pairs apart, not interfaces: all goes out by the one that is in the group.
check "h1 has one transmit queue" at h1 ethtool -L ib0 tx 1
check "it has carrier" eventually has_carrier h1
before=$(counter_at h1 rx_drop_own)
check "h1 sends to a group" eventually host_answers h1 ff02::1%ib0
check_equal "and gets nothing of it" "$before" "$(counter_at h1 rx_drop_own)"
check "oxib.ko can be unloaded" unload_driver
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
