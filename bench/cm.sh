#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part of the connection manager's benchmark that runs inside a node: both ends of the connections are in it, in two
# network namespaces with a soft-RoCE device each, joined by a pair of veth. scripts/bench reads what it prints:
# "cm MEASUREMENT KEY=VALUE...".
#
# cm.sh CM KIND CONNECTIONS REPETITIONS [LOSS]
#    LOSS: the percentage of messages that are lost (default 1). A lost one costs seconds, and cmtime spins meanwhile.
#    KIND (or several, with commas between)
#         counts    the node runs with --icount and the profiler: instructions, times, messages
#         loss      the node runs with --icount: times and messages while some are lost, by another seed in each repetition
#         disconnect
#                   as counts, but only the end of the connections without queue pairs is counted, up to that of cmtime
#         rate      connections in a second, on as many processors as the node has
#         memory    the node was booted with slab_debug=U: what allocated how much
#         scheduling
#                   wake-ups, context switches, migrations and waits for locks (trace_events.sh); the last of several kinds,
#                   as the instances of tracefs stay

. /oxib/selftests/lib/cm.sh
# shellcheck source=bench/trace_events.sh
. /oxib/bench/trace_events.sh

cm=$1
kind=$2
connections=$3
repetitions=$4
percentage=${5:-1}
# What is loaded into the near end's cmtime.
preloaded=
near=10.78.0.1
far=10.78.0.2

in_far() { # command...
	ip netns exec far "$@"
}

make_ends() {
	ip netns add far
	ip link add near0 mtu 9000 type veth peer name far0 mtu 9000 netns far
	ip address add "$near/24" dev near0
	in_far ip address add "$far/24" dev far0
	ip link set near0 up
	in_far ip link set lo up
	in_far ip link set far0 up
	modprobe rdma_rxe
	rdma link add rxe0 type rxe netdev near0 || bail_out "the near rxe device could not be made"
	in_far rdma link add rxe1 type rxe netdev far0 || bail_out "the far rxe device could not be made"
	eventually answers "$far" || bail_out "the far end is not reached"
}

lose() { # percent, seed
	tc qdisc replace dev near0 root netem loss "$1%" seed "$2" limit 20000 &&
		in_far tc qdisc replace dev far0 root netem loss "$1%" seed "$(($2 + 100))" limit 20000
}

lose_nothing() {
	tc qdisc del dev near0 root && in_far tc qdisc del dev far0 root
}

# --- cmtime -----------------------------------------------------------------------------------------------------------------

serves() {
	[ -n "$(in_far ss -Hltn 'sport = :7471')" ]
}

# cmtime opens all of its connections twice: with queue pairs, and without. The near end's report is in /tmp/near.log.
cmtime_both() {
	local server
	in_far timeout 3000 cmtime -b "$far" -c "$connections" >/tmp/far.log 2>&1 &
	server=$!
	eventually serves || bail_out "cmtime does not serve"
	sent=$(messages)
	timeout 3000 env ${preloaded:+LD_PRELOAD="$preloaded"} cmtime -s "$far" -c "$connections" >/tmp/near.log 2>&1 || bail_out "cmtime failed: $(tail -n 2 /tmp/near.log)"
	wait "$server" || bail_out "cmtime's server failed: $(tail -n 2 /tmp/far.log)"
	sent=$(($(messages) - sent))
}

# Of the half without queue pairs, a step's time in microseconds.
step() { # name, number of words in it
	awk -v name="$1" -v column=$(($2 + 2)) '/^cm_conn/ { half = 1 } half && index($0, name) == 1 { print $column }' /tmp/near.log
}

# --- counters -----------------------------------------------------------------------------------------------------------------

messages() {
	cat /sys/class/infiniband/rxe?/ports/1/cm_tx_msgs/* | awk '{ sum += $1 } END { print sum }'
}

# --- measurements ---------------------------------------------------------------------------------------------------------------

# The profiler counts the instructions between the marks.
counts() {
	local repetition
	cmtime_both
	for ((repetition = 1; repetition <= repetitions; repetition++)); do
		/build/bench/mark begin
		cmtime_both
		/build/bench/mark end
		printf 'cm counts connect=%d disconnect=%d messages=%d\n' \
			"$(step 'cm connect' 2)" "$(step disconnect 1)" "$sent"
	done
	cat /proc/kallsyms >/out/kallsyms
}

# disconnect.so marks the begin.
disconnect() {
	local repetition
	cmtime_both
	preloaded=/build/bench/disconnect.so
	for ((repetition = 1; repetition <= repetitions; repetition++)); do
		cmtime_both
		/build/bench/mark end
	done
	preloaded=
	cat /proc/kallsyms >/out/kallsyms
}

loss() {
	local seed
	cmtime_both
	for ((seed = 1; seed <= repetitions; seed++)); do
		lose "$percentage" "$seed" || bail_out "the cable cannot lose"
		cmtime_both
		lose_nothing
		printf 'cm loss connect=%d messages=%d\n' "$(step 'cm connect' 2)" "$sent"
	done
}

rate() {
	local repetition
	cmtime_both
	for ((repetition = 1; repetition <= repetitions; repetition++)); do
		cmtime_both
		printf 'cm rate connect=%d\n' "$(step 'cm connect' 2)"
	done
}

# The difference between what is allocated with the connections and without.
memory() {
	local holder server
	python3 bench/allocations.py >/tmp/before
	in_far python3 selftests/cm/many.py serve "$far" 4 $((connections / 4)) &
	server=$!
	many_listen 4 || bail_out "the server does not listen"
	python3 selftests/cm/many.py hold "$near" "$far" 4 $((connections / 4)) <&"$silence" >/tmp/hold.log &
	holder=$!
	eventually grep -q 'at once' /tmp/hold.log || bail_out "the connections did not come up"
	python3 bench/allocations.py >/tmp/after
	printf 'cm memory bytes=%d\n' $(($(</tmp/after) - $(</tmp/before)))
	kill "$holder" "$server"
	wait "$holder" "$server"
}

# cmtime opens its connections twice.
scheduling() {
	local repetition
	cmtime_both
	make_event_counts
	for ((repetition = 1; repetition <= repetitions; repetition++)); do
		start_event_counts
		cmtime_both
		stop_event_counts
		print_event_counts
	done
}

export PYTHONDONTWRITEBYTECODE=1
ulimit -l unlimited
ulimit -n 65536
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
make_ends
load_cm "$cm" || bail_out "the connection manager of $cm could not be loaded"
for each in ${kind//,/ }; do
	"$each"
done
ok "the measurements were taken"
finish
