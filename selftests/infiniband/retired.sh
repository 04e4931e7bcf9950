#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A receive queue that is out of use goes after a minute, and with it the listener for connections at the number of its queue
# pair, as another interface may get that number.
#
# nodes: 1
# smp: 4
# kernels: fast
# timeout: 300

. selftests/lib/infiniband.sh

set_mode() { # host, datagram|connected
	at "$1" sh -c "echo $2 >/sys/class/net/ib0/mode" && eventually has_carrier "$1"
}

# The numbers of those of h1 that are for datagrams.
queue_pairs() {
	at h1 rdma -j resource show qp | jq '.. | objects | select(.type == "UD") | .lqpn' | sort
}

has_gone() { # queue pair
	local found
	found=$(queue_pairs) && holds -n "$found" && ! grep -x "$1" <<<"$found"
}

# From now on the host knows h1 by a queue pair: its address makes the service ID of requests for connections.
know_by() { # host, queue pair
	local own number
	own=$(hardware_address_at h1)
	number=$(printf ':%02x' $(($2 >> 16)) $(($2 >> 8 & 255)) $(($2 & 255)))
	at "$1" ip neighbour replace "$(v4_of h1)" lladdr "80$number${own:11}" dev ib0 nud permanent
}

# A packet that does not fit into a datagram.
is_connected() { # host, [ping option...]
	host_answers "$1" "$(v4_of h1)" -M "do" -s 20000 "${@:2}"
}

bring_up_fabric star h1
load_driver oxib || bail_out "oxib.ko could not be loaded"
check "the interfaces come up" interfaces_up "${hosts[@]}"
own=$(hardware_address_at h1)
main=$((16#${own:3:2}${own:6:2}${own:9:2}))
before=$(queue_pairs)
check "h1 has 2 receive queues" at h1 ethtool -L ib0 rx 2
number=$(comm -13 <(printf '%s\n' "$before") <(queue_pairs))
note "queue pair of the main receive queue: $main; of the other one:" "$number"
check_equal "the other one has a queue pair" 1 "$(grep -c . <<<"$number")"
for host in h1 h2 h3; do
	check "$host is in connected mode" set_mode "$host" connected
done
check "h2 knows h1 by the other one" know_by h2 "$number"
check "and is connected" eventually is_connected h2

check "h1 has one receive queue" at h1 ethtool -L ib0 rx 1
check "it has carrier again" eventually has_carrier h1
check "h3 knows h1 by the main one" know_by h3 "$main"
check "and is connected" eventually is_connected h3
note "waiting for the other one to go"
for ((second = 0; second < 60; second++)); do
	pause 1
done
check "the queue pair of the other one goes" eventually has_gone "$number"
check "h3 knows h1 by that number" know_by h3 "$number"
check_refused "nobody listens there any more" is_connected h3 -W 10
check "h3 knows h1 by the main one again" know_by h3 "$main"
check "and is connected" eventually is_connected h3

check "oxib.ko can be unloaded" unload_driver
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
