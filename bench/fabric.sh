#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part of softib's benchmark that runs inside a node: fabrics of softib alone, with the kernel's drivers on them.
# scripts/bench reads what it prints: "result FABRIC-MEASUREMENT KEY=VALUE...", "tcp WAY bytes=NUMBER", "memory KEY=VALUE...".
#
# fabric.sh packets ROUNDS REPETITIONS                            in a node with --icount: what a datagram costs
# fabric.sh packets ROUNDS 1 hop|peer MEASUREMENT BYTES BURST     one, with the addresses of symbols in /out, for a profiler
# fabric.sh tcp veth|datagram|offloads|connected MEBIBYTES        in such a node, with the profiler: what TCP costs
# fabric.sh memory [HCAS]                                         what 64 HCAs take, and 8 switches
# fabric.sh memory_fabric [TOPOLOGY]                              what a fabric takes (large), in a boot of its own: the kernel keeps
#                                                                 of what has gone, and gives back later
#
# Several of these, with -- between, are done one after the other.

. selftests/lib/fabric.sh
. bench/available.sh
. bench/sequence.sh

control=/sys/kernel/debug/oxib_bench
configuration=/sys/kernel/config/softib

# A subnet manager makes the ports active, and goes: what it would do meanwhile is not to be measured.
bring_up() { # topology
	bring_up_fabric "$1" h1
	stop_sm
}

# --- packets -----------------------------------------------------------------------------------------------------------------

# The idle policy: see bench_drain() in meter.c.
measure() { # fabric, measurement, bytes, burst
	chrt --idle 0 sh -c "echo '$2 $3 $4 $rounds' >$control" || bail_out "the measurement $2 $3 $4 $rounds failed"
	printf 'result %s-%s %s\n' "$1" "$2" "$(cat "$control")"
}

all_of() { # fabric
	local burst
	for burst in 1 8 32; do
		measure "$1" fabric-chain 64 "$burst"
		measure "$1" fabric-chain-events 64 "$burst"
	done
	measure "$1" fabric-single 64 32
	measure "$1" fabric-chain 4096 32
}

with_fabric() { # hop|peer, command...
	local topology=switched_pair
	[ "$1" = hop ] || topology=peers
	bring_up "$topology"
	if ! modprobe udp_tunnel || ! insmod "$MODULES/bench/oxib_bench.ko"; then
		bail_out "the benchmark's module could not be loaded"
	fi
	cat /proc/kallsyms >/out/kallsyms
	"${@:2}"
	rmmod oxib_bench
	take_down_fabric
}

repeatedly() { # repetitions, fabric
	local repetition
	for ((repetition = 0; repetition < $1; repetition++)); do
		all_of "$2"
	done
}

packets() { # rounds, repetitions, [hop|peer, measurement, bytes, burst]
	rounds=$1
	if [ $# -gt 2 ]; then
		with_fabric "$3" measure "${@:3}"
	else
		with_fabric hop repeatedly "$2" hop
		with_fabric peer repeatedly "$2" peer
	fi
}

# --- TCP ---------------------------------------------------------------------------------------------------------------------

# A pair of net devices between the hosts, as they come.
bare_pair() {
	ip link add bare netns h1 type veth peer name bare netns h2
	ip -n h1 address add 10.87.0.1/24 dev bare
	ip -n h2 address add 10.87.0.2/24 dev bare
	ip -n h1 link set bare up
	ip -n h2 link set bare up
}

transfer() { # address, MiB
	local error
	error=$(iperf ip netns exec h1 iperf3 -c "$1" -n "$2M") || bail_out "the transfer failed: $error"
}

tcp() { # veth|datagram|offloads|connected, MiB
	local host address
	load_softib || bail_out "softib.ko could not be loaded"
	cp "$topologies/switched_pair.fabric" /tmp/tcp.fabric
	[ "$1" != offloads ] || echo "host h1 h2 checksum=1 tso=1" >>/tmp/tcp.fabric
	topologies=/tmp
	fabric_up tcp || bail_out "the fabric could not be built"
	# Without this IP over InfiniBand has an MTU of 2044 in datagram mode.
	mkdir -p /tmp/sm.h1
	echo "Default=0x7fff, ipoib, mtu=5 : ALL=full;" >/tmp/sm.h1/partitions.conf
	start_sm h1
	eventually all_active || bail_out "not all ports became active"
	ipoib_up h1 h2 || bail_out "IP over InfiniBand did not come up"
	address=$(v4_of h2)
	case $1 in
	veth)
		bare_pair
		address=10.87.0.2
		;;
	connected)
		for host in h1 h2; do
			at "$host" sh -c 'echo connected >/sys/class/net/ib0/mode && ip link set ib0 mtu 65520'
		done
		;;
	esac
	eventually host_answers h1 "$address" || bail_out "h2 is not reached"
	stop_sm
	in_background_at h2 iperf3 -s
	transfer "$address" 8
	cat /proc/kallsyms >/out/kallsyms
	"$MODULES/bench/mark" begin
	transfer "$address" "$2"
	"$MODULES/bench/mark" end
	printf 'tcp %s bytes=%d\n' "$1" "$(jq .end.sum_received.bytes /tmp/iperf.json)"
	take_down_fabric
}

# --- memory ------------------------------------------------------------------------------------------------------------------

cables() { # first number, last
	seq "$1" "$2" | sed 's/.*/link add c& type dummy/' | ip -batch -
}

memory() { # [HCAs]
	local before with number hcas=${1:-64}
	load_softib || bail_out "softib.ko could not be loaded"
	cables 1 224
	before=$(available_at_rest)
	for ((number = 1; number <= hcas; number++)); do
		rdma link add "a$number" type softib netdev "c$number" || bail_out "there is no HCA $number"
	done
	with=$(available_at_rest)
	printf 'memory hcas=%d kib=%d\n' "$hcas" $((before - with))
	for ((number = 0; number < 8; number++)); do
		mkdir -p "$configuration/switch/s$number"
		seq -f 'c%g' -s ' ' $((65 + 20 * number)) $((84 + 20 * number)) >"$configuration/switch/s$number/ports"
		echo 1 >"$configuration/switch/s$number/enable" || bail_out "there is no switch $number"
	done
	printf 'memory switches=8 ports=20 kib=%d\n' $((with - $(available_at_rest)))
	for ((number = 0; number < 8; number++)); do
		echo 0 >"$configuration/switch/s$number/enable"
		rmdir "$configuration/switch/s$number"
	done
	rmdir "$configuration/switch"
	for ((number = 1; number <= hcas; number++)); do
		rdma link delete "a$number"
	done
	seq 1 224 | sed 's/.*/link delete c&/' | ip -batch -
	rmmod softib
}

memory_fabric() { # [topology]
	local before
	before=$(available_at_rest)
	bring_up_fabric "${1:-large}" h1
	printf 'memory fabric=1 kib=%d\n' $((before - $(available_at_rest)))
	take_down_fabric
}

sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
sequence "$@"
ok "the measurements were taken"
finish
