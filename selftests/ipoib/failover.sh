#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A RoCE port comes to another Ethernet device and back, as that of a bond does when a link fails: the groups of ib0 are where the
# port is, and nowhere else. One of the devices is in a network namespace of its own.
#
# nodes: 1
# kernels: fast
# timeout: 240

. selftests/lib/node.sh

# Runs a command in the namespace of an Ethernet device.
beside() { # Ethernet device, command...
	case $1 in
	eth7) ip netns exec blue "${@:2}" ;;
	*) "${@:2}" ;;
	esac
}

# The groups on an Ethernet device that carry those of ib0.
carriers_of() { # Ethernet device
	beside "$1" ip maddress show dev "$1" | grep -cE 'inet +239\.(6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7])\.'
}

has_no_carriers() { # Ethernet device
	[ "$(carriers_of "$1")" = 0 ]
}

# Each group of ib0 is one of the Ethernet device.
has_carriers() { # Ethernet device
	local groups
	groups=$(counter multicast_groups)
	[ "$groups" -gt 0 ] && [ "$(carriers_of "$1")" = "$groups" ]
}

# The port reports that it has another GID.
move_to() { # Ethernet device, another address for it
	beside "$1" sh -c "echo $1 >/sys/module/poor_adapter/parameters/moved_to" &&
		beside "$1" ip address add "$2" dev "$1"
}

ip netns add blue
beside eth7 ip link add eth7 type dummy
beside eth7 ip link set eth7 mtu 9000 up
beside eth7 ip address add 10.78.2.1/24 dev eth7
ip link add eth8 type dummy
ip link set eth8 mtu 9000 up
ip address add 10.78.0.1/24 dev eth8
ip link add eth9 type dummy
ethernet=eth9
make_rxe 9000
check "the port can move" insmod "$MODULES/selftests/ipoib/adapter/poor_adapter.ko" netdev=eth9
check "oxib.ko can be loaded" load_oxib
check "ib0 appears" eventually ib_exists
check "ib0 comes up" ib_up
check "eth9 has the groups of ib0" eventually has_carriers eth9
check "the port moves to eth8" move_to eth8 10.78.1.1/24
check "eth8 has the groups of ib0" eventually has_carriers eth8
check "eth9 has left them" eventually has_no_carriers eth9
check "the port moves back" move_to eth9 10.77.99.1/24
check "eth9 has the groups of ib0 again" eventually has_carriers eth9
check "eth8 has left them" eventually has_no_carriers eth8
check "the port moves to eth7, in another namespace" move_to eth7 10.78.3.1/24
check "eth7 has the groups of ib0" eventually has_carriers eth7
check "eth9 has left them" eventually has_no_carriers eth9
check "the port moves back from there" move_to eth9 10.77.98.1/24
check "eth9 has the groups of ib0 once more" eventually has_carriers eth9
check "eth7 has left them" eventually has_no_carriers eth7
check "ib0 goes down" ip link set ib0 down
check "eth9 leaves them, too" eventually has_no_carriers eth9
check_refused "the log has nothing of groups that cannot be detached" kernel_log_has 'cannot be detached'
check "oxib.ko can be unloaded" unload_oxib
check "the port stays where it is" rmmod poor_adapter
rdma link delete rxe0
beside eth7 ip link delete eth7
ip netns delete blue
ip link delete eth8
ip link delete eth9
finish
