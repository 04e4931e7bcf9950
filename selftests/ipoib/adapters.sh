#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Adapters and Ethernet devices that do less than soft-RoCE on a good network card: ib0 works all the same.
#
# nodes: 2
# kernels: fast
# timeout: 240

. selftests/lib/node.sh

# The groups on the Ethernet device that carry those of ib0.
carriers() {
	ip maddress show dev "$ethernet" | grep -cE 'inet +239\.(6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7])\.'
}

has_no_carriers() {
	[ "$(carriers)" = 0 ]
}

# Each group of ib0 is one of the Ethernet device.
has_carriers() {
	local groups
	groups=$(counter multicast_groups)
	[ "$groups" -gt 0 ] && [ "$(carriers)" = "$groups" ]
}

# With such an MTU there is no IPv4, and what it was a member of goes with it.
test_lost_groups() {
	check "the Ethernet device has the groups of ib0" eventually has_carriers
	check "it gets an MTU that is too small for IPv4" ip link set "$ethernet" mtu 67
	check "then it has none of them" has_no_carriers
	check "it gets a large one" ip link set "$ethernet" mtu 9000
	check "and an address" ip address replace "10.77.0.$NODE/24" brd + dev "$ethernet"
	check "it has the groups of ib0 again" eventually has_carriers
	check "ib0 has carrier" eventually carrier_is 1
	check "ib0 goes down" ip link set ib0 down
	check "the Ethernet device leaves the groups" eventually has_no_carriers
	check_refused "the log has nothing of groups that cannot be detached" kernel_log_has 'cannot be detached'
}

resemble() { # parameters of poor_adapter.ko
	insmod "$MODULES/selftests/ipoib/adapter/poor_adapter.ko" netdev="$ethernet" "$@"
}

bus_info() {
	ethtool -i ib0 | awk '$1 == "bus-info:" { print $2 }'
}

# Drivers look for their Ethernet devices among the net devices that are below the adapter.
test_device_tree() {
	check "the RDMA device is one on a bus" resemble on_bus=1
	check "oxib.ko can be loaded" load_oxib
	check "ib0 appears" eventually ib_exists
	check_equal "it knows that bus" poor_adapter "$(bus_info)"
	check_refused "but is not below it itself" [ -e /sys/class/net/ib0/device ]
	check "oxib.ko can be unloaded" unload_oxib
	check "the RDMA device is on no bus again" rmmod poor_adapter
}

has_another_queue_pair() { # number of the one that it had
	[ "$(queue_pair)" != "$1" ]
}

# The driver takes no queue pair back into service, so ib0 has others each time.
test_restarts() {
	local before
	check "no queue pair starts a second time" resemble lacks=restarts
	check "oxib.ko can be loaded" load_oxib
	check "ib0 appears" eventually ib_exists
	check "ib0 comes up" ib_up
	before=$(queue_pair)
	check "ib0 goes down" ip link set ib0 down
	check "ib0 comes up again" ib_up
	check "with another queue pair" has_another_queue_pair "$before"
	check "its rings become longer" ethtool -G ib0 tx 512
	check "it stays up" eventually carrier_is 1
	check "it gets along with one transmit queue" has_one_queue
	check "it stays up" eventually carrier_is 1
	check_refused "the log has nothing of a start that failed" kernel_log_has 'ib0: cannot be brought up'
	check "oxib.ko can be unloaded" unload_oxib
	check "queue pairs start again" rmmod poor_adapter
}

# Where there is one processor, it has no more.
has_one_queue() {
	local most
	most=$(ethtool -l ib0 | awk '$1 == "TX:" && !most { most = $2 } END { print most }')
	[ "$most" = 1 ] || ethtool -L ib0 tx 1
}

# Without their types the headers are told apart by their form. What is of another form would be dropped.
test_networks() {
	check "n$NODE: completions do not report the network" resemble lacks=networks
	check "n$NODE: oxib.ko can be loaded" load_oxib
	check "n$NODE: ib0 appears" eventually ib_exists
	check "n$NODE: ib0 comes up" ib_up
	barrier up
	check "n$NODE: the peer answers" eventually answers "10.99.0.$peer"
	check "n$NODE: by IPv6, too" eventually answers "fd00:99::$peer"
	check "n$NODE: all large packets arrive" reaches "10.99.0.$peer" -s 3000
	check_equal "n$NODE: no route header was refused" 0 "$(counter rx_drop_grh)"
	barrier reached
	check "n$NODE: oxib.ko can be unloaded" unload_oxib
	check "n$NODE: completions report the network again" rmmod poor_adapter
}

ip link add eth9 type dummy
ethernet=eth9
make_rxe 9000
test_device_tree
test_restarts
rdma link delete rxe0
bring_up 9000
test_lost_groups
take_down
ip link delete eth9
ethernet=eth0
make_rxe 9000
test_networks
rdma link delete rxe0
finish
