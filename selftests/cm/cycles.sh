#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Connections that a consumer in the kernel opens and closes in turn, straight on the connection manager.
#
# cycles.sh [CM [CYCLES]]: the connection manager of both nodes, oxib; how many connections, 10000. On the debug kernel
# it is a part of debug/cm, and longer of soak/cm.
#
# nodes: 2
# kernels: fast
# timeout: 300

. selftests/lib/cm.sh

cm=${1:-oxib}
cycles=${2:-10000}
own=$(address_of v4 "$NODE")
there=$(address_of v4 "$peer")
# In turn, before the nodes meet: they do not wait for each other for ever.
most=10000

open_and_close() { # number
	consumer from="$own" to="$there" cycles="$1" && rmmod cm_consumer
}

# --- a peer whose connection manager is elsewhere -------------------------------------------------------------------------------

elsewhere=5

# Behind the headers of IP and UDP.
count_elsewhere() {
	tc filter add dev "$ethernet" ingress protocol ip prio 1 u32 match ip protocol 17 0xff match u16 4791 0xffff at 22 \
		match u32 "$elsewhere" 0xffffff at 32 action drop
}

came_elsewhere() {
	tc -s filter show dev "$ethernet" ingress | grep -Eq 'dropped [1-9]'
}

asks_elsewhere() {
	consumer from="$own" to="$there" parallel=1 cycles=1 manager="$elsewhere"
}

redirected() {
	local asking=
	on_node 2 check "messages for queue pair $elsewhere are counted" count_elsewhere
	barrier counting
	if [ "$NODE" = 1 ]; then
		asks_elsewhere &
		asking=$!
	fi
	on_node 2 check "a consumer who was redirected asks there" eventually came_elsewhere
	on_node 2 tc filter delete dev "$ethernet" ingress
	barrier came
	on_node 1 check_refused "nobody answers him there" wait "$asking"
}

# --- tracepoints -------------------------------------------------------------------------------------------------------------------

tracing=/sys/kernel/tracing

trace_one() {
	[ -e "$tracing/trace" ] || mount -t tracefs tracefs "$tracing"
	echo 1 >"$tracing/events/ib_cma/enable" && : >"$tracing/trace"
}

# As the kernel's connection manager tells it.
has_told() { # event, state
	grep -Eq " icm_$1: local_id=[0-9]+ remote_id=[0-9]+ state=$2 lap_state=LAP_[A-Z]+\$" "$tracing/trace"
}

traced() {
	check "n$NODE has the tracepoints of the kernel's connection manager" trace_one
	barrier tracing
	on_node 1 check "a connection comes and goes" open_and_close 1
	barrier traced
	on_node 1 check "n1 tells of its REQ" has_told send_req IDLE
	on_node 1 check "its RTU" has_told send_rtu REP_RCVD
	on_node 1 check "and its DREQ" has_told send_dreq ESTABLISHED
	on_node 2 check "n2 tells of its REP" has_told send_rep REQ_RCVD
	on_node 2 check "and its DREP" has_told send_drep "(DREQ_RCVD|TIMEWAIT)"
	echo 0 >"$tracing/events/ib_cma/enable"
}

ground_up
check "n$NODE runs the connection manager of $cm" load_cm "$cm"
on_node 2 check "a consumer serves" consumer
barrier serving
for ((left = cycles; left > 0; left -= part)); do
	part=$((left < most ? left : most))
	on_node 1 check "$part connections come and go" open_and_close "$part"
	barrier called
done
traced
redirected
on_node 2 check "and end" rmmod cm_consumer
barrier ended
check "n$NODE can unload it" unload_cm
ground_down
finish
