#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# How many commands an HCA gets while an interface of it is configured, most of them with the RTNL held: on hardware each takes
# time. The numbers of oxib are bounded, with some room, as the groups that an interface is in are not always as many; with the
# kernel's driver they are only told, for comparison.
#
# commands.sh [DRIVER [MILLISECONDS]]: oxib or ib_ipoib; how long each command takes, 0
#
# nodes: 1
# smp: 4
# kernels: fast
# timeout: 300

. selftests/lib/infiniband.sh

wanted=${1:-oxib}
topologies=/tmp

# The kernel keeps what it read for 10 ms.
commands() {
	pause 0.05
	at h2 cat /sys/class/infiniband/h2/ports/1/hw_counters/commands
}

milliseconds() {
	printf '%d\n' $(($(date +%s%N) / 1000000))
}

takes() { # most commands, what, command of h2...
	local before started duration number
	before=$(commands)
	started=$(milliseconds)
	at h2 "${@:3}" || {
		skip "$wanted: $2" "it does not do that"
		return
	}
	duration=$(($(milliseconds) - started))
	number=$(($(commands) - before))
	note "$wanted: $2: $number commands, $duration ms"
	[ "$wanted" != oxib ] || check "$2 takes $1 commands at most" holds "$number" -le "$1"
	! is_up h2 || eventually has_carrier h2
}

is_up() { # host
	at "$1" ip link show dev ib0 up | grep -q ib0
}

go_to() { # most commands, datagram|connected
	takes "$1" "going to $2 mode" sh -c "echo $2 >/sys/class/net/ib0/mode"
}

printf '%s\n' 'star hosts=2' "host h2 command_ms=${2:-0}" >/tmp/slow.fabric
bring_up_fabric slow h1
load_driver "$wanted" || bail_out "$wanted could not be loaded"
check "the interfaces come up" interfaces_up "${hosts[@]}"
queues=$(at h2 ls /sys/class/net/ib0/queues | grep -c tx)
note "$queues transmit queues"
for round in 1 2; do
	takes 14 "$round: going down" ip link set ib0 down
	takes 60 "$round: coming up" ip link set ib0 up
done
takes 60 "one transmit queue" ethtool -L ib0 tx 1
takes 75 "four transmit queues" ethtool -L ib0 tx 4
takes 30 "four receive queues" ethtool -L ib0 rx 4
takes 17 "one receive queue" ethtool -L ib0 rx 1
takes 100 "other rings" ethtool -G ib0 rx 512 tx 512
go_to 80 connected
go_to 80 datagram
takes 14 "a child" ip link add link ib0 name c1 type ipoib pkey 0xffff
takes 60 "a child that comes up" ip link set c1 up
takes 60 "a child that goes" ip link delete c1
check "the driver can be unloaded" unload_driver
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
