#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A peer across the router whose module is unloaded and loaded again has another queue pair, and nobody tells: traffic comes
# back by itself, in datagrams and by connections. n1 and n3 have oxib, n2 is the router. A TCP connection lives through it.
#
# nodes: 3
# kernels: fast
# timeout: 400

. selftests/lib/crossing.sh

set_mode_here() { # datagram|connected
	echo "$1" >/sys/class/net/ib0/mode && eventually carrier_is 1
}

# --- the module goes and comes ---------------------------------------------------------------------------------------------------

# With its entries, as the system does when the module comes: a node without any takes no part in exchanges. And with its mode
# before it is up: a peer that refuses connections is not asked for one again for a minute.
load_again() { # mode
	unload_here && load_oxib_here && enter_far && eventually ib_exists && echo "$1" >/sys/class/net/ib0/mode && interface_here
}

milliseconds() {
	date +%s%3N
}

# From now on.
returns() {
	local begin
	begin=$(milliseconds)
	eventually answers "$(v4_of_node 3)" || return
	returned_after=$(($(milliseconds) - begin))
}

# --- a connection that is open all the time --------------------------------------------------------------------------------------

port=7000

listens() {
	ss -ltn | grep -q ":$port"
}

goes_on() { # how much was said before
	holds "$(wc -l </tmp/conversation)" -gt "$1"
}

test_conversation() {
	if [ "$NODE" = 3 ]; then
		in_background python3 selftests/acm/conversation.py listen $port
		check "n3 listens" eventually listens
	fi
	barrier listening
	[ "$NODE" = 1 ] || return 0
	: >/tmp/conversation
	python3 selftests/acm/conversation.py talk "$(v4_of_node 3)" $port >/tmp/conversation 2>/dev/null &
	jobs_running+=($!)
	check "n1 has a TCP connection to it" eventually goes_on 0
}

test_return() { # mode
	local said
	said=$(wc -l </tmp/conversation)
	returned_after=
	# In this shell, as it says how long that took.
	returns >/dev/null 2>&1
	check "$1: n1 reaches n3 again" [ -n "$returned_after" ]
	note "after $returned_after ms; the aim is 5000"
	check "$1: and by IPv6" eventually answers "$(v6_of_node 3)"
	check "$1: n1 reaches n3 with packets of the MTU" eventually takes_largest
	check "$1: the TCP connection goes on" eventually goes_on "$said"
}

test_reload() { # mode
	is_router || check "$1: n$NODE is in that mode" set_mode_here "$1"
	barrier mode
	is_router || reaches_far "$1"
	[ "$1" = datagram ] || is_router || check "$1: n$NODE has made a connection" holds "$(counter connections_out)" -gt 0
	barrier before
	on_node 3 check "$1: n3 loads its module again" load_again "$1"
	barrier again
	on_node 1 test_return "$1"
	barrier back
}

lay_ground
if ! is_router; then
	check "n$NODE loads oxib" load_oxib_here
	check "n$NODE: ib0 comes up" interface_here
	tell gid "$(gid_here)"
fi
barrier up
is_router || check "n$NODE has entries of n$far" enter_far
barrier entered
test_conversation
test_reload datagram
test_reload connected
stop_jobs
is_router || check "n$NODE: oxib can be unloaded" unload_here
clear_ground
finish
