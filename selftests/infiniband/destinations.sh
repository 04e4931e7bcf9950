#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A thousand destinations on one interface: however many packets go to them, the subnet administrator is asked for each once.
# They are behind a router, so that one administrator knows a way to each.
#
# nodes: 1
# kernels: fast
# timeout: 240

. selftests/lib/infiniband.sh

destinations=1000

# 10.99.X.Y is at the GID fec0:0:0:2::X:Y, queue pair 4.
neighbours() {
	local number
	for ((number = 0; number < destinations; number++)); do
		printf 'neighbour replace 10.99.%d.%d dev ib0 nud permanent ' $((number / 250)) $((number % 250 + 1))
		printf 'lladdr 00:00:00:04:fe:c0:00:00:00:00:00:02:00:00:00:00:00:00:%02x:%02x\n' \
			$((number / 250)) $((number % 250 + 1))
	done
}

send_to_all() { # packets to each
	at h1 python3 - "$1" "$destinations" <<'END'
import socket
import sys

rounds, destinations = (int(word) for word in sys.argv[1:])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    for _ in range(rounds):
        for number in range(destinations):
            sock.sendto(b"x" * 64, (f"10.99.{number // 250}.{number % 250 + 1}", 5000))
END
}

known() {
	holds "$(counter_at h1 address_count)" -ge "$destinations"
}

resolved() { # at least
	holds "$(counter_at h1 address_resolved)" -ge "$1"
}

has_sent() { # at least
	holds "$(counter_at h1 tx_packets)" -ge "$1"
}

load_softib || bail_out "softib.ko could not be loaded"
fabric_up routed || bail_out "the fabric could not be built"
mkdir -p /tmp/sm.h1
echo '0xfec0000000000002 *' >/tmp/sm.h1/prefix-routes.conf
start_sm h1 'subnet_prefix 0xfec0000000000001'
eventually is_active h1 || bail_out "the port of h1 did not become active"
load_driver oxib || bail_out "oxib.ko could not be loaded"
check "h1 has an interface with carrier" interfaces_up h1
check "its address has the subnet's prefix" matches ':fe:c0:00:00:00:00:00:01:' "$(hardware_address_at h1)"
at h1 ip address add 10.99.255.1/16 dev ib0
# The stack asks for routers for some seconds. What it sends while there is no subnet manager finds no group, and is lost.
check "it asks for no routers any more" at h1 sysctl -qw net.ipv6.conf.ib0.router_solicitations=0
neighbours >/tmp/neighbours
check "there are $destinations neighbours" ip -n h1 -batch /tmp/neighbours

before=$(counter_at h1 sa_path_queries)
was=$(counter_at h1 address_resolved)
began=$EPOCHREALTIME
check "packets go to all of them, three to each" send_to_all 3
check "all of them are found" eventually resolved $((was + destinations))
note "it took $(((${EPOCHREALTIME/./} - ${began/./}) / 1000)) ms; at once $(counter_at h1 tx_drop_waiting) packets too many waited"
check_equal "the SA was asked for each of them once" "$destinations" $(($(counter_at h1 sa_path_queries) - before))
check "they are all known" known
sent=$(counter_at h1 tx_packets)
check "packets go to all of them again" send_to_all 2
check "all of these were sent" eventually has_sent $((sent + 2 * destinations))
check_equal "the SA was not asked again" "$destinations" $(($(counter_at h1 sa_path_queries) - before))

# All ways may be wrong then: each is looked for again, once, and packets go on meanwhile.
lost=$(counter_at h1 tx_drop_unreachable)
check "the subnet manager is stopped" stop_sm h1
start_sm h1 'subnet_prefix 0xfec0000000000001'
check "another one comes" eventually says h1 sminfo SMINFO_MASTER
before=$(counter_at h1 sa_path_queries)
sent=$(counter_at h1 tx_packets)
check "packets go to all of them" send_to_all 3
check "all of these were sent" eventually has_sent $((sent + 3 * destinations))
check_equal "none was lost for want of a way" "$lost" "$(counter_at h1 tx_drop_unreachable)"
note "the SA has been asked $(($(counter_at h1 sa_path_queries) - before)) times since"
check "oxib.ko can be unloaded" unload_driver
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
