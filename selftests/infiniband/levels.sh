#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Service levels and rates: partitions have levels of their own, and what goes to a peer or to a group has that of its
# partition. Address handles have the rate of the path, which softib counts. What goes to a group has the flow label and the
# traffic class of its partition, too.
#
# nodes: 1
# kernels: fast
# timeout: 180

. selftests/lib/infiniband.sh

# On one fabric the same two ports are in two partitions.
default=3 blue=5
flow_label=0xa5b6c traffic_class=0x5d

write_partitions() {
	cat >/tmp/sm.h1/partitions.conf <<-END
		Default=0x7fff, ipoib, sl=$default, FlowLabel=$flow_label, TClass=$traffic_class: ALL=full;
		blue=0x0001, ipoib, sl=$blue: ALL=full;
	END
}

has_pkey() { # host, P_Key
	at "$1" sh -c "cat /sys/class/infiniband/$1/ports/1/pkeys/*" | grep -q "$2"
}

child_up() { # host
	at "$1" ip link add link ib0 name blue type ipoib pkey 0x8001 &&
		at "$1" ip address add "10.1.0.$(host_number "$1")/24" brd + dev blue && at "$1" ip link set blue up &&
		eventually at "$1" grep -q 1 /sys/class/net/blue/carrier
}

watch() { # host
	ip netns exec "$1" python3 selftests/infiniband/levels.py port1 >/tmp/levels &
	jobs_running+=($!)
	eventually grep -q listening /tmp/levels
}

levels() { # P_Key, one|group: of what was sent there
	awk -v pkey="$1" -v whom="$2" '$1 == pkey && $2 == whom { print $3 }' /tmp/levels | sort -u | paste -s -d ' '
}

levels_are() { # P_Key, one|group, level
	equal "$3" "$(levels "$1" "$2")"
}

flows_are() { # P_Key, 'flow label and traffic class': of what was sent to groups
	equal "$2" "$(awk -v pkey="$1" '$1 == pkey && $2 == "group" { print $4, $5 }' /tmp/levels | sort -u)"
}

rated_handles() { # host
	at "$1" cat "/sys/class/infiniband/$1/ports/1/hw_counters/rated_handles"
}

more_are_rated() { # host, than
	holds "$(rated_handles "$1")" -gt "$2"
}

load_softib || bail_out "softib.ko could not be loaded"
fabric_up star || bail_out "the fabric could not be built"
mkdir -p /tmp/sm.h1
write_partitions
# Without it OpenSM gives all partitions level 0.
start_sm h1 "qos TRUE"
eventually all_active || bail_out "not all ports became active"
load_driver oxib || bail_out "oxib.ko could not be loaded"
check "each host has an interface with carrier" interfaces_up "${hosts[@]}"
for host in h1 h2; do
	check "$host is in blue" eventually has_pkey "$host" 0x8001
	check "$host has an interface there" child_up "$host"
done
check "what h1 sends is watched" watch h1
before=$(rated_handles h1)
check "h1 reaches h2" host_reaches h1 "$(v4_of h2)"
check "the address handle has the path's rate" eventually more_are_rated h1 "$before"
check "h1 reaches h2 in blue" eventually host_reaches h1 10.1.0.2
check "h2 is reached with the level of the default partition" eventually levels_are 0xffff one $default
check "h2 is reached in blue with the level of blue" eventually levels_are 0x8001 one $blue
at h1 python3 selftests/ipoib/group.py say 239.9.9.9 5000 hello
at h1 python3 selftests/ipoib/group.py say --interface blue 239.9.9.9 5000 hello
check "groups are reached with the level of the default partition" eventually levels_are 0xffff group $default
check "and with its flow label and traffic class" eventually flows_are 0xffff "$flow_label $traffic_class"
check "groups are reached in blue with the level of blue" eventually levels_are 0x8001 group $blue
stop_jobs
check "oxib.ko can be unloaded" unload_driver
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
