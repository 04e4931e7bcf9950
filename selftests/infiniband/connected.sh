#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# connected.sh [DRIVER of n1 [DRIVER of n2 [short]]]: oxib or ib_ipoib; short: nothing of both modes, nor of idle connections, and
# fewer sizes and streams
#
# Connected mode (RFC 4755) on one fabric, by oxib in both nodes or by the kernel's driver in one: packets up to 64 KiB by
# connections, datagrams to groups and to peers in the other mode, connections that are idle, that are too many, that lose
# their peer. In each node h1 and h2 are in connected mode but where it says so.
#
# nodes: 2
# kernels: fast
# timeout: 600

. selftests/lib/infiniband.sh

drivers=("${1:-oxib}" "${2:-oxib}")
pair="${drivers[0]} and ${drivers[1]}"
short=${3:-}

# Seconds without a packet until oxib closes a connection: on a busy machine the checks of one that is in use take some, too.
idle=$((2 * patience))

parameters=() parameters_of_one=()
if [ "${drivers[NODE - 1]}" = oxib ]; then
	parameters=("connection_idle=$idle")
	parameters_of_one=(max_connections=1)
fi

set_mode() { # host, datagram|connected
	at "$1" sh -c "echo $2 >/sys/class/net/ib0/mode" && eventually has_carrier "$1"
}

mode_is() { # host, datagram|connected
	equal "$2" "$(at "$1" cat /sys/class/net/ib0/mode)"
}

# The first byte of its address says whether a host takes connections.
offers_connections() { # host
	matches '^80:' "$(hardware_address_at "$1")"
}

# A peer that is told of an address that offers none sends small packets for ten minutes. With carrier and the MTU of connected mode,
# the address has to offer them, from the first moment.
never_seen_without() { # host
	awk '/^[^ ]/ { up = /LOWER_UP/ && /mtu 65520/ } up { seen++ } up && /infiniband 00:/ { print; wrong = 1 }
		END { if (!seen) print "nothing was seen"; exit wrong || !seen }' "/tmp/link.$1"
}

offers_none() { # host
	matches '^00:' "$(hardware_address_at "$1")"
}

# How many connections a host has, by oxib's counters.
connections_are() { # host, out|in, number, [peer]
	[ $# = 3 ] || host_answers "$1" "$4" || return
	equal "$3" "$(counter_at "$1" "connections_$2")"
}

has_one_connection() { # host: in or out
	equal 1 $(($(counter_at "$1" connections_out) + $(counter_at "$1" connections_in)))
}

# What there is of the counters at a driver that has them; another is believed. One that breaks, as it may on a busy machine, is made
# again when there is something to send: the answer to a packet, if there is a peer.
check_connections() { # description, host, out, in, [peer]
	[ "$driver" = oxib ] || return 0
	check "$1: $3 out" eventually connections_are "$2" out "$3" "${@:5}"
	check "$1: $4 in" eventually connections_are "$2" in "$4" "${@:5}"
}

# Packets are not sent as datagrams: whole ones of that size could not be.
whole_packets() { # address, size...
	local size
	for size in "${@:2}"; do
		check "$pair: ping $1 with $size bytes in one packet" host_reaches h1 "$1" -M do -s "$size"
	done
}

# The first packet makes the connections, and is not lost for it, with oxib. The kernel's driver, as long as it has no
# path, says of large ones that they are too big, and routes remember that.
connected_to() { # address, [ping option...]
	if [ "$driver" != oxib ]; then
		eventually host_answers h1 "$1"
		at h1 ip route flush cache
	fi
	host_answers h1 "$1" -M do -s 20000 "${@:2}"
}

# --- what is tried, by node 1 with node 2 ---

test_sizes() { # IPv4 address, IPv6 address
	if [ "$short" = short ]; then
		whole_packets "$1" 64 2017 20000 65492
		whole_packets "$2" 64 65472
	else
		whole_packets "$1" 0 64 2000 2016 2017 3000 3600 4000 8000 20000 60000 65492
		whole_packets "$2" 0 64 2000 3000 20000 65472
	fi
	check_refused "a packet of the MTU and one byte cannot leave whole" host_answers h1 "$1" -M do -s 65493
	check "$pair: ping $1 with 65507 bytes in fragments" host_reaches h1 "$1" -s 65507
}

test_iperf() { # IPv4 address, IPv6 address
	check "$pair: TCP over IPv6, four connections" measured -c "$2" -P 4
	check "$pair: TCP both ways at once" measured_both_ways -c "$1"
	if [ "$short" != short ]; then
		check "$pair: TCP to the other" measured -c "$1"
		check "$pair: TCP from the other" measured -c "$1" -R
		check "$pair: UDP to the other" measured -c "$1" -u -b 10M -l 1000
	fi
	check "$pair: UDP from the other, large packets" measured -c "$1" -u -b 20M -l 30000 -R
}

wrong_checksums_at() { # host
	at "$1" nstat -asz UdpInCsumErrors | awk '$1 == "UdpInCsumErrors" { print $2 }'
}

counts_wrong_checksums() { # host, number
	equal "$2" "$(wrong_checksums_at "$1")"
}

# A connection protects one hop: what came by another way before it may be corrupt.
test_checksums() {
	local length before
	for length in 64 1500 20000; do
		before=$(wrong_checksums_at h2)
		check "a packet of $length bytes with a wrong checksum is sent" at h1 python3 selftests/infiniband/wrong_checksum.py "$(v4_of h2)" "$length"
		check "and not taken" eventually counts_wrong_checksums h2 $((before + 1))
	done
}

# A host in datagram mode next to one in connected mode: each sends as both can.
test_mixed() { # IPv4 address of a host in datagram mode, its IPv6 address
	check "a small packet goes to a host in datagram mode" host_reaches h1 "$1" -s 500
	check "a large one goes there in fragments, once its sender is told" eventually host_answers h1 "$1" -s 20000
	check "so do those that follow" host_reaches h1 "$1" -s 20000
	check "over IPv6, too" eventually host_answers h1 "$2" -s 20000
	check "and those that follow" host_reaches h1 "$2" -s 20000
	check "TCP finds what goes there" measured -c "$1" -n 500K
	check "and from there" measured -c "$1" -n 500K -R
}

outage_has() { # text, number: as many such lines of the ping during an outage, or more
	holds "$(grep -c "$1" /tmp/outage)" -ge "$2"
}

# A peer is gone for a while, and was sent large packets meanwhile: nobody has learned of smaller ones for that.
test_outage() { # address of h1 of node 2
	local unanswered='no answer yet' before
	if [ "$NODE" = 1 ]; then
		: >/tmp/outage
		in_background_at h1 sh -c "exec ping -n -O -i 0.2 -s 20000 $1 >/tmp/outage 2>&1"
		check "$pair: large packets go there" eventually outage_has 'bytes from' 1
	fi
	barrier sending
	on_node 2 check "$driver: h1 of n2 goes down" at h1 ip link set ib0 down
	barrier down
	if [ "$NODE" = 1 ]; then
		before=$(grep -c "$unanswered" /tmp/outage)
		check "$pair: large packets are sent while it is down" eventually outage_has "$unanswered" $((before + 5))
	else
		pause 10
		check "$driver: and comes up" at h1 ip link set ib0 up
		check "$driver: with carrier" eventually has_carrier h1
	fi
	barrier outage
	if [ "$NODE" = 1 ]; then
		check "$pair: large packets go there whole again" eventually host_answers h1 "$1" -M do -s 20000
		stop_jobs
	fi
}

too_big_for_group() { # group address
	! at h1 ping -q -c 1 -W 1 -M do -s 9000 -I ib0 "$1" >/tmp/too.big 2>&1
}

# Some are in datagram mode for a while.
test_modes() {
	on_node 2 check "h2 of n2 goes to datagram mode" set_mode h2 datagram
	on_node 2 check "its MTU is that of datagrams" holds "$(mtu_of h2)" -lt 5000
	if [ "$NODE" = 2 ] && [ "$driver" = oxib ]; then
		check "its address offers none any more" eventually offers_none h2
	fi
	barrier mixed
	if [ "$NODE" = 1 ]; then
		flush_neighbours h1
		test_mixed "$(v4_of h2 2)" "$(v6_of h2 2)"
		check "a packet to a group that is too large is refused" too_big_for_group 239.9.9.9
	fi
	barrier told
	on_node 2 check "h2 of n2 goes back to connected mode" set_mode h2 connected
	on_node 2 check "its address offers connections" eventually offers_connections h2
	barrier back
	if [ "$NODE" = 1 ]; then
		flush_neighbours h1
		at h1 ip route flush cache
		check "and is connected" eventually connected_to "$(v4_of h2 2)"
	fi
	barrier again
}

test_idle() {
	local second
	if [ "$NODE" = 1 ]; then
		note "waiting for connections to be idle"
		for ((second = 0; second < idle; second++)); do
			pause 1
		done
		check_connections "idle connections of h1 are closed" h1 0 0
		check "and made again" connected_to "$(v4_of h1 2)" -W "$patience"
	fi
	barrier idle
}

bring_up_shared_fabric "${drivers[NODE - 1]}" "${parameters[@]}"
for host in h1 h2; do
	check "$driver: $host is in datagram mode at first" mode_is "$host" datagram
	ip -n "$host" monitor link dev ib0 >"/tmp/link.$host" 2>/dev/null &
	jobs_running+=($!)
	pause 1
	check "$driver: $host can be in connected mode" set_mode "$host" connected
	check "$driver: $host says so" mode_is "$host" connected
	check "$driver: $host has the largest MTU" equal 65520 "$(mtu_of "$host")"
	check "$driver: the address of $host offers connections" eventually offers_connections "$host"
	pause 1
	check "$driver: $host had no carrier before" never_seen_without "$host"
done
stop_jobs
barrier connected

if [ "$NODE" = 2 ]; then
	in_background_at h1 iperf3 -s
	in_background_at h2 iperf3 -s
	barrier ready
else
	barrier ready
	v4=$(v4_of h1 2)
	v6=$(v6_of h1 2)
	check "the first large packet waits for its connection" connected_to "$v4" -W "$patience"
	check_connections "h1 of n1 is connected to h1 of n2" h1 1 1 "$v4"
	test_sizes "$v4" "$v6"
	test_iperf "$v4" "$v6"
	check_connections "h1 of n1 has the same connections" h1 1 1 "$v4"
	check "within the node" host_reaches h1 "$(v4_of h2)" -M do -s 30000
	test_checksums
fi
barrier measured
test_outage "$(v4_of h1 2)"
barrier over

if [ "$short" != short ]; then
	test_modes
	test_idle
fi

# --- connections that end ---

# The peer goes without a word, and comes back with another queue pair.
if [ "$NODE" = 2 ]; then
	for host in h1 h2; do
		ip -n "$host" link set ib0 down
	done
	check "$driver can be unloaded with connections" unload_driver
	check "and loaded again" load_driver "$driver" "${parameters_of_one[@]}"
	check "its interfaces come up" interfaces_up "${hosts[@]}"
	for host in h1 h2; do
		check "$host is in connected mode" set_mode "$host" connected
		check "and offers connections" eventually offers_connections "$host"
	done
fi
barrier reloaded
if [ "$NODE" = 1 ]; then
	flush_neighbours h1
	check "the new peer is reached" eventually host_answers h1 "$(v4_of h1 2)"
	# The peer has no connection left for its answers: the first is lost, and says that they are to be smaller.
	check "large packets, too" eventually host_answers h1 "$(v4_of h1 2)" -s 20000
	[ "$driver" != oxib ] || check_equal "nothing was lost for want of memory" 0 "$(counter_at h1 rx_drop_memory)"
	# A host that lost the race for the one connection, or was stale, tries again with later packets.
	in_background_at h1 ping -q -i 0.2 "$(v4_of h1 2)"
fi
barrier asking
if [ "$NODE" = 2 ] && [ "$driver" = oxib ]; then
	check "there is the one connection that there may be" eventually has_one_connection h1
	pause 3
	check "and no more" has_one_connection h1
fi
barrier done
stop_jobs
for host in h1 h2; do
	check "$driver: $host goes back to datagram mode" set_mode "$host" datagram
done
take_down_shared_fabric
finish
