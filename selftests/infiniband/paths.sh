#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the subnet administrator (SA) said of paths is kept for the port, and an event of the port empties that: ways in use are
# asked for again, and those that nobody uses are forgotten.
#
# nodes: 1
# kernels: fast
# timeout: 180

. selftests/lib/acm.sh

queries() {
	counter_at h1 sa_path_queries
}

# The paths that h1 keeps to another host's port.
paths_to() { # host
	oxib -n h1 -j acm paths | jq "map(select(.dlid == $(port_number "$1" lid))) | length"
}

keeps_no_path_to() { # host
	equal 0 "$(paths_to "$1")"
}

# The path in use was answered after the event.
is_asked_again() {
	local age
	age=$(oxib -n h1 -j acm paths | jq "map(select(.dlid == $(port_number h2 lid)).age) | min // empty")
	holds "${age:-$SECONDS}" -lt $((SECONDS - event_at))
}

# Nothing shows that the packets arrive: an answer to the stack's own question for the neighbour would, and the SA would not be
# asked.
keep_sending() { # from host, to host
	at "$1" ip neighbour change "$(v4_of "$2")" dev ib0 nud permanent || return
	in_background_at "$1" ping -q -i 0.2 "$(v4_of "$2")"
}

# A way to h2 in use, and a path to h3 that nobody uses.
make_ways() {
	local before
	check "$event: h1 reaches h2" eventually host_reaches h1 "$(v4_of h2)"
	check "$event: it sends packets there all the time" keep_sending h1 h2
	check "$event: the path to h3 is asked for ahead" oxib -n h1 acm paths preload
	check_equal "$event: it is kept" 1 "$(paths_to h3)"
	before=$(queries)
	check "$event: it is asked for ahead again" oxib -n h1 acm paths preload
	check_equal "$event: for that the SA is not asked" "$before" "$(queries)"
	# Ages are whole seconds.
	pause 2
	event_at=$SECONDS
}

test_ways() {
	check "$event: the way in use is asked for again" eventually is_asked_again
	stop_jobs
	check "$event: the path that nobody uses is forgotten" eventually keeps_no_path_to h3
	check "$event: h1 reaches h2 after that" eventually host_reaches h1 "$(v4_of h2)"
}

new_subnet_manager() {
	stop_sm && start_sm h4 && eventually says h1 sminfo SMINFO_MASTER
}

# No subnet manager takes part, and for it nothing has changed: who asks again does so for this event alone.
change_lid_and_back() {
	local device lid
	device=$(umad_of h1)
	lid=$(port_number h1 lid)
	at h1 python3 selftests/fabric/port.py "$device" 1 99 && eventually lid_is h1 99 &&
		at h1 python3 selftests/fabric/port.py "$device" 1 "$lid" && eventually lid_is h1 "$lid"
}

bring_up_fabric star h4
load_driver oxib || bail_out "oxib.ko could not be loaded"
check "each host has an interface with carrier" interfaces_up "${hosts[@]}"
check "h1 has an entry of h3" know h1 h3
event="a new subnet manager"
make_ways
check "$event comes" new_subnet_manager
test_ways
event="a cable"
make_ways
check "$event is pulled" pull h1
check "$event: h1 has no carrier" eventually has_no_carrier h1
check "$event: the path that nobody uses is forgotten at once" eventually keeps_no_path_to h3
check "$event is put back" put_back h1
check "$event: h1 has carrier" eventually has_carrier h1
test_ways
event="a LID"
make_ways
check "$event is another, and then the same" change_lid_and_back
test_ways
check "oxib.ko can be unloaded" unload_driver
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
