#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A host that probes for another's address from one invented GID after the other has it ask the subnet administrator (SA)
# for few of them, and remember no more; a third host is answered all the same. So it is in connected mode, where the GIDs
# take connections and where the probes come by one. And packets that come by a receive queue which is about to go name
# none that the stack does not know.
#
# nodes: 1
# smp: 4
# kernels: fast
# timeout: 240

. selftests/lib/infiniband.sh

probes=600

# As many as one source may have h1 search for at once, and in a second after.
burst=32 rate=4

send_probes() { # host, number, [the first, flags of the addresses]
	at "$1" python3 selftests/infiniband/probes.py ib0 "$(hardware_address_at h1)" "$(v4_of h1)" "${@:2}"
}

received() { # at least
	holds "$(counter_at h1 rx_packets)" -ge "$1"
}

# Number of searches for which a source may have spent its budget by now.
granted() {
	echo $((burst + rate * ((${EPOCHREALTIME/./} - began) / 1000000 + 1)))
}

look_anew() {
	queries=$(counter_at h1 sa_path_queries)
	known=$(counter_at h1 address_count)
	packets=$(counter_at h1 rx_packets)
	began=${EPOCHREALTIME/./}
}

asked() {
	echo $(($(counter_at h1 sa_path_queries) - queries))
}

asks_for_few() { # prefix
	local asked more most
	asked=$(asked)
	more=$(($(counter_at h1 address_count) - known))
	most=$(($(granted) + 2))
	note "$1h1 asked the SA $asked times, of at most $most, and knows $more destinations more"
	check "$1it asked for some of them" holds "$asked" -gt 2
	check "$1and for few" holds "$asked" -le "$most"
	check "$1it remembers few" holds "$more" -le "$most"
}

set_mode() { # host, datagram|connected
	at "$1" sh -c "echo $2 >/sys/class/net/ib0/mode" && eventually has_carrier "$1"
}

is_connected() { # host: to h1
	host_reaches "$1" "$(v4_of h1)" && holds "$(counter_at "$1" connections_out)" -ge 1
}

has_asked() { # number
	holds "$(asked)" -ge "$1"
}

# So that a packet's receive queue is looked at (CONFIG_RPS).
steer() {
	local file
	for file in $(at h1 sh -c 'ls /sys/class/net/ib0/queues/rx-*/rps_cpus'); do
		at h1 sh -c "echo 1 >$file" || return
	done
}

shrink() { # times
	local times
	for ((times = 0; times < $1; times++)); do
		at h1 ethtool -L ib0 rx 4 && pause 0.1 && at h1 ethtool -L ib0 rx 2 || return
	done
}

# The queues change once more with each try: packets that come once they stay as they are do not count.
receives_while_shrinking() { # at least
	shrink 1 && received "$1"
}

flood_from() { # host...
	local host
	for host in "$@"; do
		at "$host" ping -q -i 0.002 "$(v4_of h1)" >/dev/null &
		jobs_running+=($!)
	done
}

warned() {
	dmesg | grep -E 'received packet on queue'
}

bring_up_fabric star h1
load_driver oxib || bail_out "oxib.ko could not be loaded"
check "the interfaces come up" interfaces_up "${hosts[@]}"

# Packets do not wait for a way, which is known from then on.
check "h2 reaches h1" eventually host_reaches h2 "$(v4_of h1)"

look_anew
check "h2 sends $probes probes" send_probes h2 "$probes"
check "h1 gets most of them" eventually received $((packets + probes / 2))
check "h3 asks h1 and is answered" eventually host_reaches h3 "$(v4_of h1)"
check "so is h2" eventually host_reaches h2 "$(v4_of h1)"
asks_for_few ''

check "h1 is in connected mode" set_mode h1 connected
check "h2 reaches h1" eventually host_reaches h2 "$(v4_of h1)"
look_anew
check "connected: h2 sends $probes probes from addresses that take connections" send_probes h2 "$probes" 1000 80
check "connected: h1 gets most of them" eventually received $((packets + probes / 2))
check "connected: so h2 is answered" eventually host_reaches h2 "$(v4_of h1)"
asks_for_few 'connected: '

for host in h2 h3; do
	check "$host is in connected mode" set_mode "$host" connected
	check "$host has a connection to h1" eventually is_connected "$host"
done
look_anew
check "by connection: h2 sends $probes probes" send_probes h2 "$probes" 2000
check "by connection: h1 gets most of them" eventually received $((packets + probes / 2))
asks_for_few 'by connection: '
look_anew
check "by connection: h3 sends $burst probes" send_probes h3 "$burst" 3000
check "by connection: h1 asks for most of them, as h3 has a budget of its own" eventually has_asked $((burst * 3 / 4))
for host in h1 h2 h3; do
	check "$host is in datagram mode" set_mode "$host" datagram
done

if [ -e /sys/class/net/lo/queues/rx-0/rps_cpus ]; then
	check "h1 has 4 receive queues" at h1 ethtool -L ib0 rx 4
	check "their packets are steered" steer
	for host in h2 h3 h4; do
		check "$host reaches h1" eventually host_reaches "$host" "$(v4_of h1)"
	done
	flood_from h2 h3 h4
	packets=$(counter_at h1 rx_packets)
	check "h1 has 2 receive queues, and 4, by turns" shrink 10
	check "packets came meanwhile" eventually receives_while_shrinking $((packets + 100))
	stop_jobs
	check "no packet came by a queue that the stack did not know" test -z "$(warned)"
else
	skip "packets by receive queues that go" "the kernel has no RPS"
fi

check "oxib.ko can be unloaded" unload_driver
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
