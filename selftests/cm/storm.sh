#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Storms: thousands of connections that one node opens at once to one listener of another. All come up, and none is rejected.
# And strangers that take all slots of a listener that they get, and finish nothing: a peer that means it is served all the same.
#
# storm.sh [CM [NUMBER]]: the connection manager of both nodes, oxib; how many connections at once, 10000. The kernel's has no
# limits: with it there is the storm alone.
#
# nodes: 2
# kernels: fast
# timeout: 600

. selftests/lib/cm.sh

cm=${1:-oxib}
number=${2:-10000}
own=$(address_of v4 "$NODE")
there=$(address_of v4 "$peer")
# They send from addresses of n1.
strangers=16
port=$first_port

# --- peers that mean it ------------------------------------------------------------------------------------------------------

# Both ends reject nothing, and nobody is told that he has waited too long.
storm() { # description, number
	local rejected duplicates
	rejected=$(cm_counter tx_msgs rej)
	duplicates=$(cm_counter rx_duplicates req)
	barrier storm
	on_node 1 check "$1: $2 connections at once come up, and go" open_at_once "$2"
	barrier stormed
	check_equal "$1: n$NODE has rejected nothing" "$rejected" "$(cm_counter tx_msgs rej)"
	on_node 1 note "$(dmesg | grep -o 'all connections of the storm .*' | tail -n 2)"
	on_node 1 note "$(cm_counter tx_retries req) REQs and $(cm_counter tx_retries dreq) DREQs were repeated"
	on_node 2 note "$(dropped) dropped, $(($(cm_counter rx_duplicates req) - duplicates)) came twice"
}

open_at_once() { # number
	consumer from="$own" to="$there" at_once="$1" && rmmod cm_consumer
}

# Only oxib counts them.
dropped() {
	if [ "$cm" = oxib ]; then
		cm_counter rx_drops half_open
	else
		echo none
	fi
}

test_few_slots() {
	check "n$NODE's connection manager goes" unload_cm
	on_node 2 load_oxib half_open=64
	check "n$NODE has one again" load_cm "$cm"
	on_node 2 check "a consumer serves with 64 slots" consumer
	barrier limited
	storm "with 64 slots" $((number / 5))
	on_node 2 check "all of them are over" rmmod cm_consumer
	check "n$NODE's connection manager goes once more" unload_cm
	check "n$NODE has one with the usual limits" load_cm "$cm"
	barrier unlimited
}

# --- strangers that do not ----------------------------------------------------------------------------------------------------

stranger() { # number
	printf '10.77.0.%d\n' $((120 + $1))
}

add_strangers() {
	local number
	for ((number = 1; number <= strangers; number++)); do
		ip address replace "$(stranger "$number")/24" dev "$ethernet"
	done
}

remove_strangers() {
	local number
	for ((number = 1; number <= strangers; number++)); do
		ip address delete "$(stranger "$number")/24" dev "$ethernet"
	done
}

# More than each gets, if all slots are shared: a later one finds fewer.
take_all() { # slots
	local number
	for ((number = 1; number <= strangers; number++)); do
		PYTHONPATH=selftests/ipoib python3 selftests/cm/malformed.py "$(stranger "$number")" "$there" \
			greedy "$port" $(($1 / (number + 1) + 8)) $((number * 10000)) >/dev/null || return
	done
}

# How long that takes is told and not judged.
connects() { # description
	check "$1" call
	note "$(</tmp/call.log)"
}

call() {
	python3 selftests/cm/hold.py call "$own" "$there" "$port" >/tmp/call.log
}

granted() {
	grep -cx CONNECT_REQUEST /tmp/hold.log
}

# The share of sixteen is 16 of 17 parts; sources share counters.
most_slots_are_held() {
	holds "$(granted)" -gt $((4096 * 9 / 10))
}

tell_slots() {
	note "$(granted) requests were granted, $(dropped) dropped"
}

test_strangers() {
	if [ "$NODE" = 2 ]; then
		python3 selftests/cm/hold.py accept "$own" "$port" >/tmp/hold.log 2>&1 &
		jobs_running+=($!)
		many_listen 1
	else
		add_strangers
	fi
	barrier strangers
	on_node 1 connects "one who means it connects"
	on_node 1 check "$strangers strangers ask for all slots" take_all 4096
	barrier asked
	on_node 2 check "they have nearly all" eventually most_slots_are_held
	barrier held
	on_node 1 connects "one who means it connects all the same"
	barrier connected
	on_node 2 tell_slots
	stop_jobs
	[ "$NODE" = 2 ] || remove_strangers
}

# --- both ---------------------------------------------------------------------------------------------------------------------

ground_up
check "n$NODE runs the connection manager of $cm" load_cm "$cm"
on_node 2 check "a consumer serves" consumer
barrier serving
storm "as it comes" "$number"
on_node 2 check "all connections are over" rmmod cm_consumer
[ "$cm" != oxib ] || test_few_slots
[ "$cm" != oxib ] || test_strangers
check "n$NODE can unload it" unload_cm
ground_down
finish
