#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Debian's kernel as packaged: oxib in one node and the kernel's ib_ipoib in the other talk on one InfiniBand fabric, in
# both modes.
#
# nodes: 2
# kernels: stock
# part: stock/all
# timeout: 400

. selftests/lib/infiniband.sh

drivers=(oxib ib_ipoib)
mine=${drivers[NODE - 1]}

set_mode() { # datagram|connected
	local host
	for host in "${hosts[@]}"; do
		at "$host" sh -c "echo $1 >/sys/class/net/ib0/mode" && eventually has_carrier "$host" || return
	done
}

test_traffic() { # mode, size of a packet
	[ "$NODE" = 1 ] || return 0
	flush_neighbours h1
	check "$1: IPv4" eventually host_reaches h1 "$(v4_of h2 2)"
	check "$1: IPv6" eventually host_reaches h1 "$(v6_of h2 2)"
	check "$1: packets of $2 bytes" eventually host_reaches h1 "$(v4_of h2 2)" -s "$2"
	check "$1: TCP" measured -c "$(v4_of h1 2)"
	check "$1: TCP from the peer" measured -c "$(v4_of h1 2)" -R
}

quiet() {
	! dmesg --level err,crit,alert,emerg | grep -E 'oxib|softib'
}

check "this is Debian's kernel" matches 'Debian' "$(cat /proc/version)"
bring_up_shared_fabric "$mine"
[ "$NODE" = 1 ] || in_background_at h1 iperf3 -s
barrier serving
test_traffic datagram 1800
barrier datagrams
check "$mine goes to connected mode" set_mode connected
barrier connected
test_traffic connected 60000
barrier done
check "nothing complains" quiet
take_down_shared_fabric
finish
