#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Many connections at once, many one after the other, and some over a cable that loses packets: all come up, and go.
# The connections have no queue pairs (many.py): what is under load is the connection manager.
#
# load.sh [CM [EACH [CYCLES [PROCESSES]]]]: the connection manager of both nodes, oxib; how many connections each process has at
# once, 256; how many there are in turn, 2000; and how many processes, 64 or on the debug kernel a part of that. On the debug
# kernel it is a part of debug/cm, and longer of soak/cm.
#
# nodes: 2
# kernels: fast
# timeout: 600
# memory: 2048

. selftests/lib/cm.sh

cm=${1:-oxib}
each=${2:-256}
cycles=${3:-2000}
processes=${4:-$(some 64)}
# In each of four processes.
lossy=$(some 25)
own=$(address_of v4 "$NODE")
there=$(address_of v4 "$peer")
# In turn, before the nodes meet: they do not wait for each other for ever.
most=10000

# n2 serves so many in each of some processes, n1 calls.
with_server() { # description, call|cycle, processes, number
	local server=
	if [ "$NODE" = 2 ]; then
		: >/tmp/server.log
		many serve "$own" "$3" "$4" >/tmp/server.log 2>&1 &
		server=$!
		many_listen "$3" || note "not all processes listen: $(tail -n 3 /tmp/server.log)"
	fi
	barrier serving
	on_node 1 check "$1" many "$2" "$own" "$there" "$3" "$4"
	barrier called
	on_node 2 check "$1: the servers end well" ends_well "$server" /tmp/server.log
	barrier served
}

# Both ways: what n1 sends and what n2 sends.
lose() { # percent
	tc qdisc replace dev eth0 root netem loss "$1%" limit 20000
}

lost() {
	tc -s qdisc show dev eth0 | sed -nE 's/^.*\(dropped ([0-9]+),.*/\1/p'
}

lose_nothing() {
	tc qdisc del dev eth0 root
}

# Of so few packets, one in a hundred may be none.
check_lost() { # percent, packets
	note "where $1 % is lost, $2 packets were"
	[ "$1" -lt 10 ] || check "packets were lost" holds "$2" -gt 0
}

with_loss() { # percent
	check "the cable loses $1 % at n$NODE" lose "$1"
	barrier losing
	with_server "$((4 * lossy)) connections where $1 % is lost" call 4 "$lossy"
	tell "lost.$1" "$(lost)"
	check "the cable loses nothing at n$NODE" lose_nothing
	barrier whole
	on_node 1 check_lost "$1" $(($(told "lost.$1" 1) + $(told "lost.$1" 2)))
}

ground_up
check "n$NODE runs the connection manager of $cm" load_cm "$cm"
barrier loaded
with_server "$((processes * each)) connections at once, from $processes processes" call "$processes" "$each"
for ((left = cycles; left > 0; left -= part)); do
	part=$((left < most ? left : most))
	with_server "$part connections, one after the other in each of 8 processes" cycle 8 $((part / 8))
done
with_loss 1
with_loss 10
check "n$NODE can unload it" unload_cm
ground_down
finish
