#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The benchmark's part inside a node, which runs with --icount: one node, whose peer is only an address that nothing
# answers on. scripts/bench reads what it prints: "result MEASUREMENT KEY=VALUE...", "memory KEY=VALUE...".
#
# node.sh ROUNDS REPETITIONS                        all measurements
# node.sh ROUNDS 1 MEASUREMENT BYTES BURST          one, with the addresses of symbols in /out, for a profiler

. /oxib/selftests/lib/node.sh

rounds=$1
repetitions=$2
control=/sys/kernel/debug/oxib_bench
peer_mac=02:00:00:00:00:02
peer_qpn=00:ab:cd

# The Ethernet device below the rxe device throws away what is sent: what is measured ends there.
make_wire() {
	ip link add wire0 type dummy
	ip link set wire0 mtu 9000 arp on up
	ip address add 10.77.0.1/24 brd + dev wire0
	ip neigh replace 10.77.0.2 lladdr "$peer_mac" nud permanent dev wire0
	modprobe rdma_rxe
	rdma link add rxe0 type rxe netdev wire0 || bail_out "the rxe device could not be made"
	eventually rxe_is_active || bail_out "the rxe device did not become active"
}

# What the same packets cost without a device: no offloads and the same queueing discipline, as on ib0.
make_floor() { # MTU
	ip link add floor0 type dummy
	ethtool -K floor0 tx off sg off tso off gso off >/dev/null
	ip link set floor0 mtu "$1" arp on txqueuelen 1000 up
	ip address add 10.98.0.1/24 brd + dev floor0
	ip neigh replace 10.98.0.2 lladdr "$peer_mac" nud permanent dev floor0
	tc qdisc replace dev floor0 root pfifo_fast || bail_out "floor0 takes no queueing discipline"
}

make_interface() {
	load_oxib tx_queues=1 || bail_out "oxib.ko could not be loaded"
	eventually ib_exists || bail_out "ib0 did not appear"
	ip address add 10.99.0.1/24 brd + dev ib0
	ip link set ib0 up
	eventually carrier_is 1 || bail_out "ib0 did not come up"
	tc qdisc replace dev ib0 root pfifo_fast || bail_out "ib0 takes no queueing discipline"
	ip neigh replace 10.99.0.2 lladdr "00:$peer_qpn:$(gid_of_ipv4 10.77.0.2)" nud permanent dev ib0
	eventually destination_is_known || bail_out "ib0 does not find the way to its peer"
}

# A driver keeps few of the packets that wait for the way to a destination: a burst would lose the others.
destination_is_known() {
	ping -n -c 1 -W 0.1 10.99.0.2 >/dev/null # the peer does not answer
	[ "$(counters | awk '$1 == "tx_packets" { print $2 }')" -gt 0 ]
}

counters() {
	ethtool -S ib0 | awk '$2 ~ /^[0-9]+$/ { sub(":", "", $1); print $1, $2 }' | sort
}

# Take a measurement, with what ib0 counts meanwhile if it is one of ib0. The idle policy: see
# bench_drain() in meter.c.
measure() { # measurement, bytes, burst
	local counted='' found
	[[ $1 != *-ipoib ]] || counters >/tmp/before
	found=$(chrt --idle 0 sh -c "echo '$1 $2 $3 $rounds' >$control && cat $control") ||
		bail_out "the measurement $1 $2 $3 $rounds failed"
	[[ $1 != *-ipoib ]] || counted=$(counters | join /tmp/before - | awk '$3 != $2 { printf "%s=%d ", $1, $3 - $2 }')
	printf 'result %s %s %s\n' "$1" "$found" "$counted"
}

# From the queue, in a chain for each burst.
transmit_queue() { # bytes, burst
	measure tx-queue-ipoib "$1" "$2"
	measure tx-queue-floor "$1" "$2"
	measure tx-device-chain "$1" "$2"
	measure tx-device-chain-events "$1" "$2"
}

# How long the byte queue limit waits until it comes down: what the bursts before needed is no longer needed.
limit_hold_time() { # milliseconds
	echo "$1" >/sys/class/net/ib0/queues/tx-0/byte_queue_limits/hold_time
}

# From a socket, a post for each packet.
transmit_socket() { # bytes, burst
	limit_hold_time 20
	measure tx-socket-ipoib "$1" "$2"
	limit_hold_time 1000
	measure tx-socket-floor "$1" "$2"
	measure tx-device-single "$1" "$2"
	measure tx-device-single-events "$1" "$2"
}

receive() { # bytes, burst
	measure rx-ipoib "$1" "$2"
	measure rx-floor "$1" "$2"
	measure rx-device "$1" "$2"
}

all() { # MTU
	local bytes burst
	for bytes in 64 $(($1 - 28)); do
		for burst in 1 8 32; do
			transmit_queue "$bytes" "$burst"
			receive "$bytes" "$burst"
		done
		transmit_socket "$bytes" 32
	done
}

# IPv6 would send of its own accord.
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
make_wire
make_interface
mtu=$(cat /sys/class/net/ib0/mtu)
make_floor "$mtu"
insmod "$MODULES/bench/oxib_bench.ko" || bail_out "the benchmark's module could not be loaded"
printf 'memory %s\n' "$(counters | awk '/^memory_/ { printf "%s=%d ", $1, $2 }')"
if [ $# -gt 2 ]; then
	cat /proc/kallsyms >/out/kallsyms
	measure "$3" "$4" "$5"
else
	for ((repetition = 0; repetition < repetitions; repetition++)); do
		all "$mtu"
	done
fi
rmmod oxib_bench
take_down
finish
