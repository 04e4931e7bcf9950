#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Every verb and every error, as the specification has them: between the hosts of two HCAs that a switch joins, within one
# HCA, and what is reliable also over a cable that loses, delays and repeats packets.
#
# verbs.sh [GROUP]: only these of the tests.
#
# nodes: 1
# kernels: fast
# timeout: 600

. selftests/lib/fabric.sh

group=${1:-all}

# On the cable of h1, both ways.
cable_is() { # netem options...
	tc qdisc replace dev s1-1 root netem "$@" && at h1 tc qdisc replace dev port1 root netem "$@"
}

lost_both_ways() {
	has_lost s1-1 && has_lost port1 at h1
}

bring_up_fabric star h1
check "the test of verbs can be loaded" load_verbs_test
verbs "two HCAs: " h1 h2 "$group"
# The debug kernel leaves out what is the same again but for the cable.
if [ "$KERNEL" = debug ]; then
	verbs "one HCA: " h1 h1 datagram
else
	verbs "one HCA: " h1 h1 "$group"
fi
check "the cable of h1 becomes a bad one" cable_is limit 10000 loss 1% duplicate 1% delay 1ms 500us
verbs "a bad cable: " h1 h2 reliable
[ "$KERNEL" = debug ] || verbs "a bad cable, the other way: " h2 h1 reliable
check "it has lost packets, both ways" lost_both_ways
check "it can be unloaded" rmmod verbs_test
if [ "$KERNEL" != debug ]; then
	check "the fabric of four can be taken down" fabric_down
	unset "sm_processes[h1]"
	check "HCAs of small MTUs can be joined" fabric_up narrow
	start_sm h1
	check "their ports become active" eventually all_active
	check "the test of verbs can be loaded again" load_verbs_test
	for narrow in reliable unreliable datagram refused; do
		verbs "packets of 256 bytes: " h1 h2 "$narrow"
	done
	check "it can be unloaded again" rmmod verbs_test
fi
take_down_fabric
finish
