#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A kernel without IPv6, as ipv6.disable=1 makes one: it has no neighbours, addresses and routes of IPv6, not even empty tables.
# Peers and local programs ask by IPv6 all the same, for addresses that the cache has; another subnet manager takes over, and the
# receive queues change, for which all neighbours are gone through. IPv4 works as ever.
#
# nodes: 1
# kernels: fast
# append: ipv6.disable=1
# timeout: 400

. selftests/lib/acm.sh

topologies=/tmp

all_well() { # after what
	check "$1: h1 and h2 reach each other by IPv4" eventually reach_each_other
}

reach_each_other() {
	host_answers h1 "$(v4_of h2)" && host_answers h2 "$(v4_of h1)"
}

# --- questions of a peer -----------------------------------------------------------------------------------------------------

# h2 asks h1 for the queue pair of one of its addresses.
ask() { # v4_of|v6_of
	at h2 python3 selftests/acm/forged.py port1 "$(port_number h1 lid)" "$(port_number h2 lid)" \
		"$("$1" h1)" "$("$1" h2)" "$(port_field h2 gids/0)" "$(qpn_of h2)"
}

has_served() { # more than
	holds "$(statistic_at h1 sidr-served)" -gt "$1"
}

has_replied() { # more than
	holds "$(port_field h1 cm_tx_msgs/sidr_rep)" -gt "$1"
}

test_peer() {
	local served replies
	served=$(statistic_at h1 sidr-served)
	check "a peer asks by IPv4" ask v4_of
	check "h1 tells it the queue pair" eventually has_served "$served"
	served=$(statistic_at h1 sidr-served)
	replies=$(port_field h1 cm_tx_msgs/sidr_rep)
	check "a peer asks by IPv6" ask v6_of
	check "h1 replies" eventually has_replied "$replies"
	all_well "a peer has asked by IPv6"
	check_equal "h1 has told nothing: it has no such address" "$served" "$(statistic_at h1 sidr-served)"
}

# --- questions of this node's own --------------------------------------------------------------------------------------------

step() { # cache|sidr|path
	oxib -n h1 -j acm resolve "$(v6_of h2)" dev ib0 | jq -r ".steps[] | select(.step == \"$1\") | .result"
}

has_answered() { # more than
	holds "$(statistic_at h1 nd-answered)" -gt "$1"
}

# A program that makes packets itself asks as the stack would.
test_own() {
	local answered
	check_equal "h1 finds the entry of h2's IPv6 address" ok "$(step cache)"
	check_equal "it has no address of IPv6 to ask h2 from" error "$(step sidr)"
	check "the entry gets a queue pair" cache_at h1 replace "$(v6_of h2)" "$(port_field h2 gids/0)" qpn "$(qpn_of h2)"
	answered=$(statistic_at h1 nd-answered)
	check "a program of h1 asks for the neighbour by IPv6" \
		at h1 python3 selftests/infiniband/solicit.py ib0 "$(v6_of h1)" "$(v6_of h2)"
	check "the cache answers it" eventually has_answered "$answered"
	all_well "this node has asked by IPv6"
}

# --- walks over all neighbours -----------------------------------------------------------------------------------------------

has_queries() { # more than
	holds "$(counter_at h1 sa_path_queries)" -gt "$1"
}

# A path in use is asked for again if no neighbour shows that it leads there still: as in infiniband/paths, no answer comes.
test_handover() {
	local queries
	check "h1 is to ask h2 nothing" at h1 ip neighbour change "$(v4_of h2)" dev ib0 nud permanent
	in_background_at h1 ping -q -i 0.2 "$(v4_of h2)"
	queries=$(counter_at h1 sa_path_queries)
	start_sm h2 "sm_priority 14"
	check "another subnet manager takes over" eventually master_is h1 h2
	check "h1 asks for its path again" eventually has_queries "$queries"
	stop_jobs
	all_well "another subnet manager has taken over"
	check "clients of h1's port are to register again" \
		at h2 python3 selftests/infiniband/reregister.py "$(umad_of h2)" "$(port_number h1 lid)"
	all_well "clients have registered again"
}

# By the stack's own question, which a change of the receive queues has it ask: nothing else is sent to h2.
is_verified() {
	matches REACHABLE "$(ip -n h1 neighbour show to "$(v4_of h2)" dev ib0)"
}

test_queues() {
	check "h1 has not heard of h2 for a while" at h1 ip neighbour change "$(v4_of h2)" dev ib0 nud stale
	check "h1 has two receive queues" at h1 ethtool -L ib0 rx 2
	check "h1 asks its neighbours, to tell them theirs" eventually is_verified
	all_well "there are two receive queues"
	check "h1 has one again" at h1 ethtool -L ib0 rx 1
	all_well "there is one receive queue"
}

# --- changes -----------------------------------------------------------------------------------------------------------------

test_changes() {
	check "an entry of an IPv6 address goes" cache_at h1 del "$(v6_of h2)"
	check "it is made again" know h1 h2
	check "it is shown" matches "^$(v6_of h2) " "$(cache_at h1 show)"
	all_well "entries have changed"
	check "all entries go" cache_at h1 flush
	flush_neighbours h1 h2
	all_well "there are no entries"
	check "ib0 of h1 goes down" at h1 ip link set ib0 down
	check "ib0 of h1 comes up" interfaces_up h1
	all_well "ib0 was down"
}

check_equal "IPv6 is disabled" 1 "$(</sys/module/ipv6/parameters/disable)"
check_refused "the kernel has no addresses of IPv6" has_ipv6
printf '%s\n' 'star hosts=2' >/tmp/two.fabric
bring_up_fabric two h1
load_driver oxib || bail_out "oxib could not be loaded"
check "the interfaces come up" interfaces_up "${hosts[@]}"
all_well "at first"
check "h1 and h2 have entries of each other" eval 'know h1 h2 && know h2 h1'
flush_neighbours h1 h2
all_well "with entries"
test_peer
test_own
test_handover
test_queues
test_changes
take_down_routed_fabric
finish
