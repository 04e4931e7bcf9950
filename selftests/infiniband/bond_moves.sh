#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A bond of two ports, with both drivers: which MTUs it takes in datagram and in connected mode, and what becomes of connections by
# rdma_cm to its address when it fails over. One that there is stays with its port, and transfers nothing more; new ones go by the
# other port. With oxib, programs are told the GID of an address to which IP goes by a gateway behind the bond.
#
# bond_moves.sh [DRIVER...]
#
# nodes: 1
# kernels: stock
# instead: uml
# timeout: 500

. selftests/lib/acm.sh

drivers=("$@")
[ $# -gt 0 ] || drivers=(ib_ipoib oxib)

# --- bonds -----------------------------------------------------------------------------------------------------------

both_interfaces() { # host
	at "$1" test -e /sys/class/net/ib0 && at "$1" test -e /sys/class/net/ib1
}

# The bonds of all hosts have one number: questions of programs name that, and not the host.
bond_up() { # host
	local slave
	at "$1" ip link add bond0 index 100 type bond mode active-backup miimon 100 fail_over_mac active || return
	for slave in ib0 ib1; do
		at "$1" ip link set "$slave" down && at "$1" ip link set "$slave" master bond0 || return
	done
	at "$1" ip address add "$(v4_of "$1")/16" brd + dev bond0 && at "$1" ip link set bond0 up && eventually has_bond_carrier "$1"
}

has_bond_carrier() { # host
	at "$1" grep -q 1 /sys/class/net/bond0/carrier
} 2>/dev/null

active() { # host: the slave that is in use
	at "$1" cat /sys/class/net/bond0/bonding/active_slave
}

active_is() { # host, slave
	equal "$2" "$(active "$1")"
}

# The port of an interface has the same number plus one.
cable_of() { # interface
	printf 'port%d\n' $((${1#ib} + 1))
}

remove_bonds() {
	local host
	for host in h1 h2; do
		at "$host" ip link delete bond0 || return
	done
}

# --- what is compared ------------------------------------------------------------------------------------------------

# The outcome, and the MTU of bond and interfaces, of each try.
record_mtus() { # label
	local mtu outcome interface
	for mtu in 1500 2044 4092 65520 1500; do
		if at h1 ip link set bond0 mtu "$mtu" 2>/dev/null; then outcome=taken; else outcome=refused; fi
		printf '%s: %d %s:' "$1" "$mtu" "$outcome"
		for interface in bond0 ib0 ib1; do
			printf ' %s %s' "$interface" "$(at h1 cat "/sys/class/net/$interface/mtu")"
		done
		printf '\n'
	done >>"/tmp/record.$driver"
}

set_modes() { # mode
	local interface
	for interface in ib0 ib1; do
		at h1 sh -c "echo $1 >/sys/class/net/$interface/mode" || return
	done
}

# --- rdma_cm ---------------------------------------------------------------------------------------------------------

# A client that goes on and on.
connect_for_long() {
	in_background_at h2 rping -s -P -a "$(v4_of h2)" -S 100
	eventually listens_cm h2 7174 || return
	in_background_at h1 rping -c -a "$(v4_of h2)" -S 100 -C 1000000
	eventually transfers
}

# What has left by the cable of h2's bond, while IP is silent.
left_by() { # interface of h2
	at h2 cat "/sys/class/net/$(cable_of "$1")/statistics/tx_packets"
}

transfers() {
	local first before
	first=$(active h2)
	before=$(left_by "$first")
	pause 0.5
	holds "$(left_by "$first")" -gt $((before + 50))
}

# Of what is there by IP, a few packets.
is_silent() { # interface of h2
	local before
	before=$(left_by "$1")
	pause 1
	holds "$(left_by "$1")" -le $((before + 50))
}

connects_once() {
	at h1 timeout "$patience" rping -c -a "$(v4_of h2)" -S 100 -C 10
}

test_failover() {
	local first other
	check "$driver: h1 connects to h2's bond, and goes on" connect_for_long
	first=$(active h2) other=ib$((1 - ${first#ib}))
	check "$driver: the cable of h2's active port is pulled" ip -n h2 link set "$(cable_of "$first")" down
	check "$driver: the other is in use" eventually active_is h2 "$other"
	check "$driver: the connection does not go on by it" is_silent "$other"
	check "$driver: h1 reaches h2" eventually host_reaches h1 "$(v4_of h2)"
	check "$driver: a new connection goes by the other port" eventually connects_once
	check "$driver: the cable is put back" ip -n h2 link set "$(cable_of "$first")" up
	stop_jobs
}

# --- an address behind a gateway -------------------------------------------------------------------------------------

far=10.99.0.1

# The gateway need not be one: the program asks for no more than the GID.
has_gateway() { # host, the gateway
	at "$1" ip route add "$far" via "$(v4_of "$2")" dev bond0
}

# Long before its time is out.
is_told() {
	at h1 timeout "$patience" python3 selftests/acm/resolve_address.py "$far" | grep RDMA_CM_EVENT_ADDR_RESOLVED
}

is_not_told() {
	at h1 timeout 20 rping -d -c -a "$far" -C 1 2>&1 | grep RDMA_CM_EVENT_ADDR_ERROR
}

test_gateway() {
	check "$driver: IP to another address goes by a gateway behind h1's bond" has_gateway h1 h2
	check "$driver: a program finds nobody there without an entry" is_not_told
	check "$driver: h1's cache gets an entry" cache_at h1 replace "$far" "$(port_field h2 gids/0)"
	check "$driver: a program is told its GID" is_told
	check "$driver: h2's bond, of the same number, has a gateway to that address, and no entry" has_gateway h2 h1
	check "$driver: then nothing is told" is_not_told
	check "$driver: it has no gateway any more" at h2 ip route del "$far"
	check "$driver: a program is told again" is_told
}

unload() {
	case $driver in
	oxib) eventually unload_managers && unload_oxib ;;
	*) modprobe -r ib_ipoib && eventually unload_managers ;;
	esac
}

test_driver() {
	local host
	: >"/tmp/record.$driver"
	check "$driver: it loads" load_driver "$driver"
	[ "$driver" != oxib ] || check "oxib: its connection manager loads" insmod "$MODULES/ib_cm.ko"
	check "$driver: rdma_cm loads" modprobe -a ib_uverbs rdma_cm rdma_ucm
	for host in h1 h2; do
		check "$driver: $host has two interfaces" eventually both_interfaces "$host"
		check "$driver: $host has a bond" bond_up "$host"
	done
	check "$driver: the bonds reach each other" eventually host_reaches h1 "$(v4_of h2)"
	test_failover
	[ "$driver" != oxib ] || test_gateway
	record_mtus datagram
	remove_bonds
	check "$driver: h1's interfaces are in connected mode" set_modes connected
	check "$driver: they are in a bond again" bond_up h1
	record_mtus connected
	at h1 ip link delete bond0
	check "$driver: h1's interfaces are in datagram mode" set_modes datagram
	check "$driver: it unloads" unload
}

modprobe bonding max_bonds=0
bring_up_fabric two_ports h1
for driver in "${drivers[@]}"; do
	test_driver
done
for driver in "${drivers[@]}"; do
	note "$driver:" && note "$(<"/tmp/record.$driver")"
done
[ ${#drivers[@]} = 1 ] || check "both drivers' bonds take the same MTUs" diff /tmp/record.ib_ipoib /tmp/record.oxib
take_down_fabric
finish
