#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Partitions from partitions.conf hold: the ports have the P_Keys, members reach each other, limited members only full ones,
# others nobody; and what tries all the same is dropped and counted.
#
# nodes: 1
# kernels: fast
# timeout: 400

. selftests/lib/fabric.sh

# Blue has h1 and h2, and h3 and h4 as limited members; red has h3 and h4.
write_partitions() {
	cat >/tmp/sm.h1/partitions.conf <<-END
		Default=0x7fff, ipoib: ALL=full;
		blue=0x0001, ipoib: $(port_guid h1)=full, $(port_guid h2)=full, $(port_guid h3)=limited, $(port_guid h4)=limited;
		red=0x0002, ipoib: $(port_guid h3)=full, $(port_guid h4)=full;
	END
}

pkeys_of() { # host
	at "$1" sh -c "cat /sys/class/infiniband/$1/ports/1/pkeys/*" | grep -v 0x0000 | sort | tr '\n' ' '
}

pkeys_are() { # host, P_Keys
	equal "$2" "$(pkeys_of "$1")"
}

child_up() { # host, P_Key
	at "$1" ip link add link ib0 name "ib0.$2" type ipoib pkey "0x$2" &&
		at "$1" ip address add "10.$((0x$2 & 0xff)).0.$(host_number "$1")/24" brd + dev "ib0.$2" &&
		at "$1" ip link set "ib0.$2" up
}

has_carrier() { # host, interface
	at "$1" grep -q 1 "/sys/class/net/$2/carrier"
}

# By blue's interfaces; a limited member's P_Key lacks the highest bit, its interface is called like a full one's.
blue_reaches() { # host, host
	host_reaches "$1" "10.1.0.$(host_number "$2")"
}

blue_answers() { # host, host
	host_answers "$1" "10.1.0.$(host_number "$2")"
}

test_interfaces() {
	local host
	check "the interfaces of the default partition come up" ipoib_up "${hosts[@]}"
	# Before those that get their carrier.
	check "h1: a child of red can be made" child_up h1 8002
	for host in h1 h2 h3 h4; do
		check "$host: a child of blue" child_up "$host" 8001
		check "$host: its carrier" eventually has_carrier "$host" ib0.8001
	done
	for host in h3 h4; do
		check "$host: a child of red" child_up "$host" 8002
		check "$host: its carrier" eventually has_carrier "$host" ib0.8002
	done
	check "blue: full members reach each other" blue_reaches h1 h2
	check "blue: a limited member reaches a full one" blue_reaches h3 h1
	check "blue: a full member reaches a limited one" blue_reaches h2 h4
	check_refused "blue: limited members do not reach each other" blue_answers h3 h4
	check "red: its members reach each other" host_reaches h3 10.2.0.4
	check_equal "red: h1 is no member, its interface has no carrier" 0 "$(at h1 cat /sys/class/net/ib0.8002/carrier)"
	check "everybody reaches everybody by the default partition" host_reaches h1 "$(v4_of h4)"
}

# What switches and HCAs counted as of a wrong partition, all together, as the performance manager would see it.
violations() {
	local lid
	for lid in $(at h1 saquery -N | sed -nE 's/^.*\blid\.+ *(0x[0-9a-fA-F]+|[0-9]+)$/\1/p'); do
		at h1 perfquery --all_ports "$lid"
		at h1 smpquery portinfo "$lid" 1
	done 2>/dev/null |
		sed -nE 's/^((Xmt|Rcv)ConstraintErrors|PortXmitConstraintErrors|PortRcvConstraintErrors|PkeyViolations):\.+([0-9]+)$/\3/p' |
		awk '{ sum += $1 } END { print sum + 0 }'
}

switch_dropped() { # cause
	awk -v cause="$1" '$1 == cause { print $2 }' /sys/kernel/config/softib/switch/s1/drops
}

hca_counter() { # host, counter
	at "$1" cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"
}

# Datagrams as a host without manners would send them.
sends() { # host, host, P_Key
	at "$1" python3 selftests/fabric/datagrams.py port1 "$(port_number "$2" lid)" "$(port_number "$1" lid)" "$3" 20
}

rises_by() { # number, before, command...: what the command says does, at least
	eventually said_is_from $(($2 + $1)) "${@:3}"
}

said_is_from() { # number, command...
	holds "$("${@:2}")" -ge "$1"
}

# The switch lets nothing in or out that is of a partition the host there is not in, and of limited members an HCA
# takes only what full ones send.
test_enforcement() {
	local before taken all
	all=$(violations)
	before=$(switch_dropped partition_in)
	check "h1 sends into red" sends h1 h3 0x8002
	check "the switch does not let it in" rises_by 20 "$before" switch_dropped partition_in
	before=$(switch_dropped partition_out)
	check "h3 sends to h1 in red" sends h3 h1 0x8002
	check "the switch does not let it out" rises_by 20 "$before" switch_dropped partition_out
	before=$(hca_counter h4 wrong_pkey)
	check "h3 sends to h4 as a limited member of blue" sends h3 h4 0x0001
	check "h4, a limited member, does not take it" rises_by 20 "$before" hca_counter h4 wrong_pkey
	before=$(hca_counter h2 wrong_pkey)
	taken=$(hca_counter h2 received_packets)
	check "h3 sends to h2 as a limited member of blue" sends h3 h2 0x0001
	check "h1 sends to h2 as a full member" sends h1 h2 0x8001
	check "h2, a full member, takes both" rises_by 40 "$taken" hca_counter h2 received_packets
	check_equal "h2 has dropped none of them" "$before" "$(hca_counter h2 wrong_pkey)"
	check "the performance manager sees what was dropped" holds "$(violations)" -ge $((all + 60))
}

# Queue pairs with P_Keys of different partitions, of hosts that are in both.
test_queue_pairs() {
	# What h3's says to groups of blue is counted at h4 as of a wrong partition: both are limited members.
	check "the interfaces go" modprobe -r ib_ipoib
	check "the test of verbs can be loaded" load_verbs_test
	verbs "partitions: " h1 h2 datagram
	verbs "partitions: " h3 h4 failing
	check_refused "the tests of wrong P_Keys were run" grep 'no P_Key of another partition' /tmp/verbs
	check "it can be unloaded" rmmod verbs_test
}

bring_up_fabric star h1
check_equal "before, each port has the default partition alone" "0xffff " "$(pkeys_of h2)"
write_partitions
check "OpenSM reads its partitions again" kill -HUP "${sm_processes[h1]}"
check "h1 is in blue" eventually pkeys_are h1 "0x8001 0xffff "
check "h2 is in blue" eventually pkeys_are h2 "0x8001 0xffff "
check "h3 is in red, and a limited member of blue" eventually pkeys_are h3 "0x0001 0x8002 0xffff "
check "h4 is in red, and a limited member of blue" eventually pkeys_are h4 "0x0001 0x8002 0xffff "
test_interfaces
test_enforcement
test_queue_pairs
take_down_fabric
finish
