#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The same scenario (scenario.py) once on the kernel's connection manager and once on oxib's, on the watched node n1; n2
# has the kernel's both times. What crossed the cable is compared message for message and field for field (compare.py,
# which also says what differs on purpose), and so is what the programs were told.
#
# differential.sh [REFERENCE CANDIDATE]: the two connection managers, kernel and oxib.
#
# nodes: 2
# kernels: fast debug
# timeout: 500

. selftests/lib/cm.sh
. selftests/lib/captures.sh

reference=${1:-kernel}
candidate=${2:-oxib}
role=watched
[ "$NODE" = 1 ] || role=other

start_capture() { # file
	: >/tmp/tcpdump.log
	tcpdump -i eth0 -w "$1" -U -s 0 udp port 4791 2>/tmp/tcpdump.log &
	tcpdump=$!
	eventually grep -q 'listening on' /tmp/tcpdump.log || bail_out "tcpdump does not capture"
}

# What is on its way to the file is there when the process has ended.
stop_capture() {
	sleep 1
	kill "$tcpdump" && wait "$tcpdump"
}

play() { # name of the pass
	timeout "$longest" python3 selftests/cm/scenario.py run "$role" \
		"$(address_of v4 "$NODE")" "$(address_of v4 "$peer")" >"/out/$1.events"
}

pass() { # name, connection manager of n1
	local mine=$2
	[ "$NODE" = 1 ] || mine=kernel
	check "$1: n$NODE runs the connection manager of $mine" load_cm "$mine"
	on_node 1 start_capture "/out/$1.pcap"
	barrier loaded
	check "$1: the scenario is played" play "$1"
	[ "$tap_failures" = 0 ] || {
		note_state
		finish # the other node notices
	}
	barrier played
	on_node 1 stop_capture
	check "$1: n$NODE can unload the connection manager" unload_cm
	barrier unloaded
}

ground_up
pass reference "$reference"
pass candidate "$candidate"
on_node 1 compare_captures /out/reference.pcap /out/candidate.pcap
check "n$NODE: the programs were told the same" diff /out/reference.events /out/candidate.events
ground_down
finish
