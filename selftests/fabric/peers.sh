#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Two HCAs that are joined in memory (`peer`): OpenSM brings them up, every verb and error is as over a cable, and the cable
# carries no packet; IP over InfiniBand; the end of either and its return; the cable pulled; what is refused.
#
# nodes: 1
# kernels: fast
# timeout: 600

. selftests/lib/fabric.sh

adapters=/sys/kernel/config/softib/hca

frames() { # host: what its end of the cable carried, both ways
	at "$1" cat /sys/class/net/port1/statistics/{rx,tx}_packets | awk '{ sum += $1 } END { print sum }'
}

# The signals of both ends, each of which is sent nine times, are the only frames.
carried_no_packet() { # host
	local frames
	frames=$(frames "$1")
	holds "$frames" -le 18
}

port_is_down() { # host
	[ "$(port_field "$1" state)" = '1: DOWN' ]
}

make_again() { # host
	at "$1" rdma link add "$1" type softib netdev port1
}

is_refused() { # text in the log, command...
	local said
	said=$(dmesg | wc -l)
	! "${@:2}" && dmesg | tail -n "+$((said + 1))" | grep -q "$1"
}

# By a packet that h1 answers by the same link.
answers_and_goes_down() {
	at h2 python3 selftests/fabric/port.py "$(umad_of h2)" 1 disable "$(port_number h1 lid)" && eventually port_is_down h2 &&
		at h1 python3 selftests/fabric/port.py "$(umad_of h1)" 1 enable
}

went_down_since() { # host, number of times before
	holds "$(port_field "$1" hw_counters/link_downed)" -gt "$2"
}

# By a program of the host itself: no answer leaves by the link, behind which the other end would be told.
resets_its_link() {
	local before
	before=$(port_field h2 hw_counters/link_downed)
	at h1 python3 selftests/fabric/port.py "$(umad_of h1)" 1 reset && eventually went_down_since h2 "$before"
}

test_removal() { # host that goes, host that stays
	check "$1 is removed" at "$1" rdma link delete "$1"
	check "the port of $2 is down" eventually port_is_down "$2"
	check "$1 is made again" make_again "$1"
	# A subnet manager does not outlive its port.
	stop_sm
	start_sm h2
	check "the ports are active again" eventually all_active
	verbs "after $1 was gone: " h1 h2 datagram
}

test_refusals() {
	check "a device cannot be its own peer" \
		is_refused 'peer takes the name of one other' sh -c "echo h1 >$adapters/h1/peer"
	check "there is a third device that wants a peer which is taken" mkdir -p "$adapters/h3"
	echo h2 >"$adapters/h3/peer"
	ip -n h1 link add third type dummy
	check "it is refused" is_refused 'cannot be joined' at h1 rdma link add h3 type softib netdev third
	rmdir "$adapters/h3"
	ip -n h1 link delete third
}

bring_up_fabric peers h1
check "the cable carried no packet" carried_no_packet h1
check "each discovers the other" eventually discovers_its_subnet peers h1
check "the test of verbs can be loaded" load_verbs_test
verbs "two HCAs: " h1 h2 all
verbs "one HCA: " h1 h1 datagram
check "IP over InfiniBand comes up" ipoib_up h1 h2
check "h1 reaches h2" eventually host_reaches h1 "$(v4_of h2)" -s 20000
check "h2 reaches h1 over IPv6" eventually host_reaches h2 "$(v6_of h1)"
check "the cable still carried no packet" carried_no_packet h2
rmmod ib_ipoib
check "the cable is pulled at the end of h2" pull h2
check "the port of h1 is down" eventually port_is_down h1
check "it is put back" put_back h2
check "the ports are active again" eventually all_active
check "h1 answers a command that disables its link, and the link goes down" answers_and_goes_down
check "once it is enabled the ports are active again" eventually all_active
check "h1's link is disabled and enabled at once, and h2 sees that it was down" resets_its_link
check "the ports are active again" eventually all_active
test_removal h2 h1
test_removal h1 h2
test_refusals
rmmod verbs_test
take_down_fabric
finish
