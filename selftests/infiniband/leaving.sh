#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# An HCA is removed, and its connection manager has gone before its interface in connected mode: another client keeps the HCA in
# between. Packets that need a connection are lost then, and their senders are told of no smaller MTU: routes would remember it when a
# bond goes on by another HCA.
#
# nodes: 1
# kernels: fast
# timeout: 240

. selftests/lib/infiniband.sh

# Clients lose an HCA in the reverse order of their coming, and the connection manager comes with connected mode.
keep_removed_hcas() {
	insmod "$MODULES/selftests/ipoib/adapter/keeping_client.ko"
}

keep_no_hcas() {
	echo N >/sys/module/keeping_client/parameters/keeps
}

set_mode() { # host, datagram|connected
	at "$1" sh -c "echo $2 >/sys/class/net/ib0/mode" && eventually has_carrier "$1"
}

# In one packet, which is too large for a datagram.
is_connected() { # host, address
	at "$1" ip route flush cache && host_answers "$1" "$2" -M "do" -s 20000
}

dreqs_to() { # host
	port_field "$1" cm_rx_msgs/dreq
}

was_sent_more_dreqs() { # host, than before
	holds "$(dreqs_to "$1")" -gt "$2"
}

# None of those packets is refused. The host asks for a connection again after a second.
are_lost() { # host, address
	matches ', 0 received, 100% packet loss' "$(at "$1" ping -q -c 10 -i 0.5 -W 2 -M "do" -s 20000 "$2" 2>&1)"
}

comes_back() { # host
	pull "$1" && put_back "$1" && at "$1" rdma link add "$1" type softib netdev port1 && eventually is_active "$1" &&
		interface_up "$1" && eventually has_carrier "$1"
}

bring_up_fabric switched_pair h1
load_driver oxib || bail_out "oxib could not be loaded"
check "another client of HCAs is loaded" keep_removed_hcas
check "the interfaces come up" interfaces_up "${hosts[@]}"
for host in "${hosts[@]}"; do
	check "$host is in connected mode" set_mode "$host" connected
done
check "h2 is connected to h1" eventually is_connected h2 "$(v4_of h1)"
before=$(dreqs_to h1)
in_background_at h2 rdma link delete h2
check "the HCA of h2 is removed: h1 is told that connections are over" eventually was_sent_more_dreqs h1 "$before"
check "the interface of h2 sends datagrams all the same" eventually host_answers h2 "$(v4_of h1)"
check "larger packets are lost, and their sender is not told" are_lost h2 "$(v4_of h1)"
check "the interface is still there" has_interface h2
check "the HCA goes now" keep_no_hcas
check "and its interface" eventually refused has_interface h2
stop_jobs
check "another HCA comes up" comes_back h2
check "h2 is in connected mode" set_mode h2 connected
check "h2 is connected to h1 again" eventually is_connected h2 "$(v4_of h1)"
check "oxib can be unloaded" unload_driver
check "the other client can be unloaded" rmmod keeping_client
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
