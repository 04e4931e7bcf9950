#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Packet sockets that give too little of a link-layer header: both drivers see what the stack lets through, and read no more than
# there is (KASAN looks, on the debug kernel). A bound socket that gives no address at all is oxib's alone: ib_ipoib copies it
# from address 0, and the kernel stops.
#
# packet_sockets.sh [DRIVER...]
#
# nodes: 1
# kernels: fast debug
# timeout: 200

. selftests/lib/infiniband.sh

drivers=("$@")
[ $# -gt 0 ] || drivers=(ib_ipoib oxib)
topologies=/tmp

sends() { # case: into /tmp/sent
	at h1 python3 selftests/infiniband/short_address.py ib0 "$1" >/tmp/sent
}

outcomes() { # extended regular expression for lines: what became of them, each once
	grep -E "^$1" /tmp/sent | sed 's/.*: //' | sort -u | xargs
}

lost() { # the packets that h1's interface has dropped
	at h1 cat /sys/class/net/ib0/statistics/tx_dropped
}

test_driver() {
	local before
	check "$driver: it loads" load_driver "$driver"
	check "$driver: the interfaces come up" interfaces_up h1 h2
	check "$driver: datagrams with parts of an address are sent" sends address
	check_equal "$driver: with fewer than 20 bytes each is refused" EINVAL "$(outcomes '1?[0-9] bytes')"
	check_equal "$driver: with 20 it goes" sent "$(outcomes '20 bytes')"
	check "$driver: parts of frames are sent" sends frame
	if [ "$driver" = oxib ]; then
		before=$(lost)
		check "oxib: a socket gives no address" sends none
		check_equal "oxib: the stack refuses it" EINVAL "$(outcomes 'no address')"
		check_equal "oxib: and nothing is dropped that was sent" "$before" "$(lost)"
	fi
	check "$driver: h1 reaches h2 after that" eventually host_reaches h1 "$(v4_of h2)"
	check "$driver: it unloads" unload_driver
}

printf '%s\n' 'star hosts=2' >/tmp/two.fabric
bring_up_fabric two h1
for driver in "${drivers[@]}"; do
	test_driver
done
take_down_fabric
finish
