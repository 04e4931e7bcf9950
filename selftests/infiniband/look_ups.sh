#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# An interface with several receive queues looks for IPv4 neighbours by ordinary requests, as one with a single queue does: who
# verifies an address meanwhile sees no conflict (RFC 5227), a peer with two ports in one subnet answers by the right one
# (arp_filter), and who answers for others does (proxy ARP). Others that know the interface keep their queue of it, or have it again
# soon, also if there are many. With ib_ipoib the same but for the number of queues.
#
# look_ups.sh [DRIVER...]
#
# nodes: 1
# smp: 4
# kernels: fast
# timeout: 300

. selftests/lib/infiniband.sh

drivers=("$@")
[ $# -gt 0 ] || drivers=(ib_ipoib oxib)
topologies=/tmp
queues=4
rounds=6

# Addresses that nobody has; the second one is answered for by h2.
nobody=10.88.77.77
guest=10.88.78.78

second=10.88.9.2 # of h2's second port

# --- interfaces ------------------------------------------------------------------------------------------------------

has_both() { # host
	at "$1" test -e /sys/class/net/ib1
}

# Source rules and arp_filter, the cure of answers by the wrong port.
two_ports_in_one_subnet() {
	local interface address
	eventually has_both h2 || return
	at h2 sysctl -qw net.ipv4.conf.all.arp_filter=1 net.ipv4.conf.ib0.arp_filter=1 net.ipv4.conf.ib1.arp_filter=1 || return
	at h2 ip address replace "$second/16" brd + dev ib1 && at h2 ip link set ib1 up || return
	for interface in ib0 ib1; do
		address=$(address_of "$interface")
		at h2 ip route replace 10.88.0.0/16 dev "$interface" src "$address" table 10"${interface#ib}" &&
			at h2 ip rule add from "$address" table 10"${interface#ib}" || return
	done
	eventually at h2 grep -q 1 /sys/class/net/ib1/carrier
}

address_of() { # interface of h2
	if [ "$1" = ib0 ]; then v4_of h2; else echo "$second"; fi
}

gid_of() { # interface of h2: its last eight bytes
	at h2 cut -c 37- "/sys/class/net/$1/address"
}

# Of h2's proxy: where h2 would send packets for the guest.
answer_for_guest() {
	at h2 ip link add far type dummy && at h2 ip link set far up && at h2 ip route add "$guest/32" dev far &&
		at h2 sysctl -qw net.ipv4.ip_forward=1 net.ipv4.neigh.ib0.proxy_delay=0 && at h2 ip neighbour add proxy "$guest" dev ib0
}

# --- look-ups --------------------------------------------------------------------------------------------------------

gid_known() { # address: by h1
	ip -n h1 neighbour show to "$1" dev ib0 | sed -nE 's/.* lladdr ([0-9a-f:]+) .*/\1/p' | cut -c 37-
}

finds() { # address, last eight bytes of the hardware address
	at h1 ping -q -c 1 -W 1 "$1" >/dev/null
	equal "$2" "$(gid_known "$1")"
}

right_each_time() {
	local round interface
	for ((round = 0; round < rounds; round++)); do
		flush_neighbours h1
		for interface in ib0 ib1; do
			finds "$(address_of "$interface")" "$(gid_of "$interface")" || return
		done
	done
}

verify() { # address, seconds: h3 does
	at h3 python3 selftests/infiniband/verifies.py ib0 "$1" "$2" >/tmp/verified 2>&1 &
	verifier=$!
	eventually grep -q ready /tmp/verified
}

asked() { # address: h2 has heard h1 ask for it
	grep -q "who-has $1 " /tmp/heard
}

asks_for() { # address
	at h1 ping -q -c 1 -W 1 "$1" >/dev/null
	asked "$1"
}

test_conflict() {
	# Truncated here, so that the previous program's output is not read.
	: >/tmp/tcpdump.log
	: >/tmp/heard
	at h2 tcpdump -l -nn -i ib0 arp >/tmp/heard 2>/tmp/tcpdump.log &
	jobs_running+=($!)
	check "$driver: h2 listens" eventually grep -q 'listening on' /tmp/tcpdump.log
	check "$driver: h3 verifies an address that nobody has" verify "$nobody" 5
	check "$driver: h1 asks for it meanwhile" eventually asks_for "$nobody"
	wait "$verifier"
	check_equal "$driver: h3 sees no conflict" ready "$(sort -u /tmp/verified | xargs)"
	check "$driver: h1 asks for an address that is there" finds "$(v4_of h2)" "$(gid_of ib0)"
	check_equal "$driver: h1 asked by its own address" "$(v4_of h1)" "$(sed -nE "s/.*who-has ($nobody|$(v4_of h2)) .*tell ([0-9.]+),.*/\2/p" /tmp/heard | grep -v '^0.0.0.0$' | sort -u)"
	stop_jobs
}

# --- what others know of h1 ------------------------------------------------------------------------------------------

known_of_h1() { # host
	ip -n "$1" neighbour show to "$(v4_of h1)" dev ib0 | sed -nE 's/.* lladdr ([0-9a-f:]+) .*/\1/p'
}

# What h1 tells it, by its GID: an advertisement of its own.
knows() { # host, address
	equal "$2" "$(known_of_h1 "$1")"
}

# Hosts have different numbers of h1.
numbers() {
	local host
	for host in "${others[@]}"; do
		known_of_h1 "$host"
	done | sort -u
}

others=(h2 h3 h4 h5)

# It does not go on to verify an entry: its request would tell the other host the number of h1, too.
h1_has_verified() { # host
	ip -n h1 neighbour show to "$(v4_of "$1")" dev ib0 | grep -q REACHABLE
}

settle() {
	local host
	for host in "${others[@]}"; do
		host_reaches "$host" "$(v4_of h1)" || return
	done
	for host in "${others[@]}"; do
		eventually h1_has_verified "$host" || return
	done
	pause 2
}

# It makes no difference which of them are there.
look_for_somebody() {
	at h1 ping -q -c 1 -W 1 "$nobody" >/dev/null
	at h1 ping -q -c 1 -W 1 "$nobody" >/dev/null
	return 0
}

# More neighbours than are told in one step. Nobody answers for them.
meet_crowd() {
	local n hardware
	hardware=$(ip -n h1 neighbour show to "$(v4_of h2)" dev ib0 | sed -nE 's/.* lladdr ([0-9a-f:]+) .*/\1/p')
	for ((n = 1; n <= 100; n++)); do
		printf 'neighbour replace 10.88.66.%d lladdr %s dev ib0 nud stale\n' "$n" "$hardware"
	done | at h1 ip -batch -
}

crowd_is_asked() {
	equal '' "$(ip -n h1 neighbour show to 10.88.66.0/24 dev ib0 nud stale)"
}

test_crowd() {
	check "$driver: h1 knows many others" meet_crowd
	check "$driver: h1 looks for somebody" look_for_somebody
	check "$driver: each of them is asked whether it is there" eventually crowd_is_asked
}

test_numbers() {
	local host before=()
	check "$driver: the others know h1" settle
	for host in "${others[@]}"; do
		before+=("$(known_of_h1 "$host")")
	done
	note "known:" "$(printf '%s\n' "${before[@]}" | cut -c 4-11 | xargs)"
	[ "$driver" != oxib ] || check "oxib: several queue pairs are known" holds "$(numbers | wc -l)" -ge 2
	check "$driver: h1 looks for somebody" look_for_somebody
	for host in "${others[@]}"; do
		check "$driver: $host has the same number of h1" eventually knows "$host" "${before[${host#h} - 2]}"
	done
}

# --- both drivers ----------------------------------------------------------------------------------------------------

test_driver() {
	check "$driver: it loads" load_driver "$driver"
	check "$driver: the interfaces come up" interfaces_up h1 "${others[@]}"
	[ "$driver" != oxib ] || check "oxib: h1 has several receive queues" at h1 ethtool -L ib0 rx "$queues"
	check "$driver: h1 reaches h2" eventually host_reaches h1 "$(v4_of h2)"
	test_conflict
	test_numbers
	[ "$driver" != oxib ] || test_crowd
	check "$driver: h2 has two ports in one subnet" two_ports_in_one_subnet
	check "$driver: h1 finds the right one each time" right_each_time
	check "$driver: h2 answers for a guest" answer_for_guest
	flush_neighbours h1
	check "$driver: h1 finds it" eventually finds "$guest" "$(gid_of ib0)"
	at h2 ip rule del table 100
	at h2 ip rule del table 101
	at h2 ip link delete far
	check "$driver: it unloads" unload_driver
}

printf '%s\n' 'switch s1' 'host h1 h2 h3 h4 h5' 'cable h1 s1' 'cable h2:1 s1' 'cable h2:2 s1' 'cable h3 s1' 'cable h4 s1' \
	'cable h5 s1' >/tmp/look_ups.fabric
bring_up_fabric look_ups h1
for driver in "${drivers[@]}"; do
	test_driver
done
take_down_fabric
finish
