#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A subnet manager ends, and its node stays up: the kernel of that node refuses whatever the subnet administrator (SA) is asked.
# h1 is to register again at that time, so it doubts its paths and asks to be a member of its groups anew. It keeps the path that
# it uses, its groups and its carrier for as long as there is no subnet manager, and the log has no line of that.
#
# nodes: 1
# kernels: fast
# timeout: 420

. selftests/lib/infiniband.sh

# Nothing shows that the packets arrive: an answer to the stack's own question for the neighbour would, and the SA would not be
# asked.
keep_sending() { # from host, to host
	at "$1" ip neighbour change "$(v4_of "$2")" dev ib0 nud permanent || return
	in_background_at "$1" ping -q -i 0.2 "$(v4_of "$2")"
}

listening() { # host
	at "$1" python3 selftests/ipoib/group.py listen --member 239.9.9.9 5000 >/tmp/heard &
	jobs_running+=($!)
	eventually grep -q listening /tmp/heard
}

is_heard() { # text
	at h2 python3 selftests/ipoib/group.py say 239.9.9.9 5000 "$1"
	grep -qx "$1" /tmp/heard
}

has_counted() { # counter of h1, at least
	holds "$(counter_at h1 "$1")" -ge "$2"
}

# What the log of h1 has of groups that it may not join.
refusals_logged() {
	dmesg | grep -cE 'infiniband h1: ib0: .*(cannot join|does not let port)'
}

carrier_changes() {
	at h1 cat /sys/class/net/ib0/carrier_changes
}

# So many that the path to h2 has been refused three times. After each refusal goes another query, one a second at most, of which the
# answer tells whether there is an SA.
queries=10

# In so many seconds a group is asked for again at the latest after it was refused for a minute.
minute_of_refusals=85

test_end() {
	local carrier lines asked failed
	carrier=$(carrier_changes)
	lines=$(refusals_logged)
	asked=$(counter_at h1 sa_path_queries)
	failed=$(counter_at h1 sa_joins_failed)
	check "the subnet manager ends" kill_sm h4
	check "h1 is to register again" register_again h1
	check "it asks for paths again and again" eventually has_counted sa_path_queries $((asked + queries))
	check "it reaches h2 all the same" host_reaches h1 "$(v4_of h2)"
	check "it hears its group" eventually is_heard ended
	pause "$minute_of_refusals"
	check "it was refused its groups again and again" has_counted sa_joins_failed $((failed + 6))
	check "it reaches h2 after that" host_reaches h1 "$(v4_of h2)"
	check "it hears its group after that" eventually is_heard "still ended"
	check_equal "its carrier has not changed" "$carrier" "$(carrier_changes)"
	check_equal "the log has no line of that" "$lines" "$(refusals_logged)"
}

test_return() {
	local joins
	joins=$(counter_at h1 sa_joins)
	start_sm h4
	check "there is a subnet manager again" eventually says h1 sminfo SMINFO_MASTER
	check "h1 asks for its groups anew" eventually has_counted sa_joins $((joins + 2))
	flush_neighbours h1 h3
	check "h1 finds h3, which it does not know any more" eventually host_reaches h1 "$(v4_of h3)"
	check "it hears its group" eventually is_heard returned
}

bring_up_fabric star h4
load_driver oxib || bail_out "oxib.ko could not be loaded"
check "each host has an interface with carrier" interfaces_up "${hosts[@]}"
check "h1 reaches h2" eventually host_reaches h1 "$(v4_of h2)"
check "h1 reaches h3" eventually host_reaches h1 "$(v4_of h3)"
check "h1 listens to a group" listening h1
check "it hears it" eventually is_heard first
check "it sends to h2 all the time" keep_sending h1 h2
# A way to a group that nothing goes to is forgotten, and would have to be asked for.
in_background_at h2 python3 selftests/ipoib/group.py say 239.9.9.9 5000 on /tmp/never
test_end
test_return
stop_jobs
check "oxib.ko can be unloaded" unload_driver
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
