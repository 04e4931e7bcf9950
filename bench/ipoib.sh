#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part of the benchmark of IP over InfiniBand that runs inside a node: both ends are in it, in the hosts h1 and h2 of a
# fabric of softib, with oxib or the kernel's ib_ipoib on both. scripts/bench reads what it prints:
# "result MEASUREMENT KEY=VALUE...", "load KIND KEY=VALUE...", "memory KEY=VALUE...".
#
# ipoib.sh oxib|ib_ipoib hop|peer plain|offloads KIND... [-- KIND...]...
#    hop: on a switch; peer: joined in memory; offloads: HCAs that compute checksums and cut TCP segments
#    KIND: packets ROUNDS REPETITIONS                a node with --icount: what a packet costs
#          these ROUNDS 'MEASUREMENT BYTES BURST'... some of these, with the addresses of symbols in /out, for a profiler
#          tcp datagram|connected REPETITIONS MEBIBYTES ECHOES [PROFILED]
#                                                    a node with --icount and the profiler: what TCP costs; PROFILED is
#                                                    stream or echo: that alone, with the addresses of symbols in /out
#          rate REPETITIONS MEBIBYTES MILLISECONDS   a node with two processors: packets and bytes in a second
#          memory [HOSTS]                            a node booted with slab_debug=U: what an interface and a destination take

. selftests/lib/infiniband.sh
. bench/available.sh
. bench/sequence.sh

driver=$1
fabric=$2
hardware=$3
control=/sys/kernel/debug/oxib_bench
topologies=/tmp
topology=$topologies/bench.fabric
# For the load's programs: whether the profiler is to count.
marked=
# How many flows it has.
flows=1

# --- what is under test ------------------------------------------------------------------------------------------------------

# What its subnet manager does of its own accord is not to be measured.
write_topology() { # hosts
	case $fabric in
	hop) echo "star hosts=$1" ;;
	peer) printf '%s\n' 'host h1 h2' 'cable h1 h2' 'host h1 peer=h2' ;;
	esac >"$topology"
	[ "$hardware" = plain ] || echo 'host h1 h2 checksum=1 tso=1' >>"$topology"
}

# The addresses that bench.h has.
v4_of() { # host
	printf '10.99.0.%d\n' "$(host_number "$1")"
}

bring_up() { # [hosts]
	write_topology "${1:-2}"
	bring_up_fabric bench 'h1 sweep_interval 0'
	load_driver "$driver" || bail_out "$driver could not be loaded"
	interfaces_up "${hosts[@]}" || bail_out "IP over InfiniBand did not come up"
	eventually host_answers h1 "$(v4_of h2)" || bail_out "h2 is not reached"
	printf 'mtu %d\n' "$(mtu_of h1)"
}

take_down() {
	stop_jobs
	check "$driver can be unloaded" unload_driver
	take_down_fabric
}

know_each_other() {
	ip -n h1 neigh replace "$(v4_of h2)" lladdr "$(hardware_address_at h2)" nud permanent dev ib0
	ip -n h2 neigh replace "$(v4_of h1)" lladdr "$(hardware_address_at h1)" nud permanent dev ib0
}

# --- packets -----------------------------------------------------------------------------------------------------------------

# What the same packets cost without a device: no offloads and the same queueing discipline, as on ib0.
make_floor() { # MTU
	ip -n h1 link add floor0 type dummy
	at h1 ethtool -K floor0 tx off sg off tso off gso off >/dev/null
	ip -n h1 link set floor0 mtu "$1" arp on txqueuelen 1000 up
	ip -n h1 address add 10.98.0.1/24 brd + dev floor0
	ip -n h1 neigh replace 10.98.0.2 lladdr 02:00:00:00:00:02 nud permanent dev floor0
	tc -n h1 qdisc replace dev floor0 root pfifo_fast || bail_out "floor0 takes no queueing discipline"
}

# What is sent to this peer ends in the far HCA, which has no such queue pair.
prepare_packets() {
	local address
	address=$(hardware_address_at h2)
	ip -n h1 neigh replace "$(v4_of h2)" lladdr "00:00:ab:cd${address:11}" nud permanent dev ib0
	tc -n h1 qdisc replace dev ib0 root pfifo_fast || bail_out "ib0 takes no queueing discipline"
	make_floor "$(mtu_of h1)"
	modprobe udp_tunnel
	insmod "$MODULES/bench/oxib_bench.ko" || bail_out "the benchmark's module could not be loaded"
}

# The idle policy: see bench_drain() in meter.c. debugfs is not in the hosts, so only their network is entered.
measure() { # measurement, bytes, burst
	local found
	found=$(nsenter --net=/run/netns/h1 chrt --idle 0 sh -c "echo '$1 $2 $3 $rounds' >$control && cat $control") ||
		fail_measurement "$1 $2 $3 $rounds"
	printf 'result %s %s\n' "$1" "$found"
}

fail_measurement() { # which
	note "$(at h1 ethtool -S ib0 | grep -v ': 0$'; ip -n h1 -s link show ib0; tc -s -n h1 qdisc show dev ib0; ip -n h1 neigh show dev ib0)"
	bail_out "the measurement $1 failed"
}

# How long the byte queue limit waits until it comes down: see node.sh.
limit_hold_time() { # milliseconds
	at h1 sh -c "echo $1 >/sys/class/net/ib0/queues/tx-0/byte_queue_limits/hold_time"
}

measure_all() { # MTU
	local bytes burst
	for bytes in 64 $(($1 - 28)); do
		for burst in 1 8 32; do
			measure tx-queue-ipoib "$bytes" "$burst"
			measure tx-queue-floor "$bytes" "$burst"
			measure tx-subnet-chain "$bytes" "$burst"
			measure rx-subnet-ipoib "$bytes" "$burst"
			measure rx-floor "$bytes" "$burst"
			measure rx-floor-joined "$bytes" "$burst"
			measure rx-subnet-device "$bytes" "$burst"
		done
		limit_hold_time 20
		measure tx-socket-ipoib "$bytes" 32
		limit_hold_time 1000
		measure tx-socket-floor "$bytes" 32
		measure tx-subnet-single "$bytes" 32
	done
}

packets() { # rounds, repetitions
	local repetition
	rounds=$1
	bring_up
	prepare_packets
	for ((repetition = 0; repetition < $2; repetition++)); do
		measure_all "$(mtu_of h1)"
	done
	rmmod oxib_bench
	take_down
}

these() { # rounds, 'measurement bytes burst'...
	local measurement
	rounds=$1
	bring_up
	prepare_packets
	cat /proc/kallsyms >/out/kallsyms
	for measurement in "${@:2}"; do
		# shellcheck disable=SC2086 # words
		measure $measurement
	done
	rmmod oxib_bench
	take_down
}

# --- TCP ---------------------------------------------------------------------------------------------------------------------

serves() {
	[ -n "$(at h2 ss -Hltn 'sport = :5201')" ]
}

load() { # stream|echo|flood, argument...
	local kind=$1 found
	shift
	# shellcheck disable=SC2086 # nothing, or a word
	found=$(at h1 timeout "$longest" "$MODULES/bench/load" $marked "$kind" "$(v4_of h2)" "$@") ||
		bail_out "the load $kind failed"
	printf 'load %s %s\n' "$kind" "$found flows=$flows"
}

start_server() {
	in_background_at h2 "$MODULES/bench/load" serve
	eventually serves || bail_out "the far end does not serve"
}

# What is taken for the address of a host must say so, or it gets datagrams.
offers_connections() { # host
	has_carrier "$1" && [[ $(hardware_address_at "$1") == 80:* ]]
}

connected_mode() {
	local host
	for host in h1 h2; do
		at "$host" sh -c 'echo connected >/sys/class/net/ib0/mode' || bail_out "$host does not go into connected mode"
		ip -n "$host" link set ib0 mtu 65520 || bail_out "ib0 of $host does not take its MTU"
		eventually offers_connections "$host" || bail_out "ib0 of $host does not offer connections"
	done
}

# The first of each is not to be counted: it teaches TCP and fills pools.
tcp() { # datagram|connected, repetitions, MiB, echoes, [profiled]
	local repetition kind
	bring_up
	[ "$1" != connected ] || connected_mode
	know_each_other
	eventually host_answers h1 "$(v4_of h2)" || bail_out "h2 is not reached in this mode"
	start_server
	load echo 100 64 >/dev/null
	load stream $((8 << 20)) 1 >/dev/null
	cat /proc/kallsyms >/out/kallsyms
	marked=marked
	for ((repetition = 0; repetition < $2; repetition++)); do
		for kind in stream echo; do
			case ${5:-$kind}:$kind in
			stream:stream) load stream $(($3 << 20)) 1 ;;
			echo:echo) load echo "$4" 64 ;;
			esac
		done
	done
	take_down
}

# --- rates -------------------------------------------------------------------------------------------------------------------

rate() { # repetitions, MiB, milliseconds
	local repetition
	marked=
	bring_up
	know_each_other
	start_server
	load stream $((8 << 20)) 4 >/dev/null
	for ((repetition = 0; repetition < $1; repetition++)); do
		for flows in 1 4; do
			load stream $((($2 << 20) / flows)) "$flows"
			load flood "$3" 64 "$flows"
		done
	done
	take_down
}

# --- memory ------------------------------------------------------------------------------------------------------------------

allocated() {
	python3 bench/allocations.py "$driver"
}

# Every host has more GUIDs: each is a destination.
alias_guids() { # hosts
	local host
	for host in $(seq 2 "$1"); do
		seq -s , -f "0x12340000000%02g$(printf '%02x' "$host")" 1 15 | sed "s/^/host h$host alias_guids=/"
	done
}

gids_of() { # host
	at "$1" sh -c "cat /sys/class/infiniband/$1/ports/1/gids/*" | grep -v ':0000:0000:0000:0000$'
}

# As bytes 4 to 19 of a hardware address.
as_bytes() { # GID
	sed 's/://g; s/../&:/g; s/:$//' <<<"$1"
}

destinations() { # addresses become neighbours of h1, from 10.99.1.1 on
	local host gid number=0
	for host in "${hosts[@]:1}"; do
		for gid in $(gids_of "$host"); do
			number=$((number + 1))
			printf 'neigh replace 10.99.%d.%d lladdr 00:00:ab:cd:%s nud permanent dev ib0\n' \
				$((1 + number / 200)) $((1 + number % 200)) "$(as_bytes "$gid")"
		done
	done
}

# Ethernet neighbours and routes are the stack's; what is sent finds the way.
memory() { # [hosts]
	local before last=${1:-16} number with
	[ "$fabric" = hop ] || last=2
	write_topology "$last"
	alias_guids "$last" >>"$topology"
	bring_up_fabric bench 'h1 sweep_interval 0'
	load_driver "$driver" || bail_out "$driver could not be loaded"
	eventually has_interface "h$last"
	before=$(available_at_rest)
	interfaces_up "${hosts[@]}" || bail_out "IP over InfiniBand did not come up"
	eventually host_answers h1 "$(v4_of h2)" || bail_out "h2 is not reached"
	printf 'memory interface=%d\n' $(((before - $(available_at_rest)) * 1024 / ${#hosts[@]}))
	destinations >/tmp/neighbours
	number=$(wc -l </tmp/neighbours)
	ip -n h1 -batch - </tmp/neighbours
	before=$(allocated)
	awk '{ print $3 }' /tmp/neighbours | while read -r address; do
		at h1 ping -c 1 -W 0.01 "$address" >/dev/null
	done
	pause 2
	with=$(allocated)
	printf 'memory destinations=%d bytes=%d\n' "$number" $((with - before))
	take_down
}

sequence "${@:4}"
ok "the measurements were taken"
finish
