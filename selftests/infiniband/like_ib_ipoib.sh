#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What programs and administrators are used to from the kernel's ib_ipoib, tried with both drivers: DHCP clients that leave the P_Key
# out of the broadcast address, an MTU for which the group is too small yet, the device's place on its bus, and a line in the log
# about a partition that the subnet manager refuses.
#
# like_ib_ipoib.sh [DRIVER...]
#
# nodes: 1
# kernels: fast
# timeout: 300

. selftests/lib/infiniband.sh

drivers=("$@")
[ $# -gt 0 ] || drivers=(ib_ipoib oxib)

# --- partitions ------------------------------------------------------------------------------------------------------

# The partition red is no IPoIB link: nobody may make its broadcast group.
write_partitions() { # [flag of the default partition]
	printf '%s\n' "Default=0x7fff, ipoib${1:-}: ALL=full;" 'blue=0x0001, ipoib: ALL=full;' 'red=0x0005: ALL=full;' \
		>/tmp/sm.h1/partitions.conf
}

# The groups of a new subnet manager are as it was told to make them.
renew_sm() { # flag of the default partition
	stop_sm h1 && write_partitions "$1" && start_sm h1
}

has_pkeys() { # host
	[ "$(at "$1" sh -c "cat /sys/class/infiniband/$1/ports/1/pkeys/*" | grep -cE '0x(ffff|8001|8005)')" = 3 ]
}

add_child() { # host, P_Key
	at "$1" ip link add link ib0 name "ib0.$2" type ipoib pkey "0x$2" && at "$1" ip link set "ib0.$2" up
}

child_has_carrier() { # host, P_Key
	at "$1" grep -q 1 "/sys/class/net/ib0.$2/carrier"
} 2>/dev/null

# --- broadcasts of packet sockets ------------------------------------------------------------------------------------

# An address that nobody has.
nobody=10.88.77.77

listen_at() { # host, interface
	# Truncated here, so that the previous program's output is not read.
	: >/tmp/tcpdump.log
	: >/tmp/heard
	at "$1" tcpdump -l -nn -i "$2" arp >/tmp/heard 2>/tmp/tcpdump.log &
	jobs_running+=($!)
	eventually grep -q 'listening on' /tmp/tcpdump.log
}

asks_and_is_heard() { # interface, P_Key as programs have it
	at h1 python3 selftests/infiniband/raw_arp.py "$1" "$2" "$nobody" && pause 0.2 && grep -q "who-has $nobody" /tmp/heard
}

check_heard() { # interface, P_Key as programs have it
	check "$driver: h2 listens on $1" listen_at h2 "$1"
	check "$driver: it hears a broadcast of h1 on $1 with the P_Key $2" eventually asks_and_is_heard "$1" "$2"
	stop_jobs
}

test_broadcasts() {
	local host
	check_heard ib0 0000
	check_heard ib0 ffff
	for host in h1 h2; do
		check "$driver: $host has a child in blue" add_child "$host" 8001
		check "$driver: it has carrier" eventually child_has_carrier "$host" 8001
	done
	check_heard ib0.8001 0000
	check_heard ib0.8001 ffff
}

# --- the MTU ---------------------------------------------------------------------------------------------------------

mtu_is() { # host, number
	equal "$2" "$(mtu_of "$1")"
}

# What the group said counts until it says something else.
test_mtu_without_link() {
	check "$driver: the cable of h2 is pulled" pull h2
	check "$driver: h2 has no carrier" eventually has_no_carrier h2
	pause 2
	check_equal "$driver: h2 keeps the MTU of the group" 2044 "$(mtu_of h2)"
	check "$driver: it is put back" put_back h2
	check "$driver: h2 has carrier" eventually has_carrier h2
	check_equal "$driver: and the MTU of the group" 2044 "$(mtu_of h2)"
}

test_mtu() {
	check_equal "$driver: the group allows an MTU of 2044" 2044 "$(mtu_of h1)"
	check "$driver: h1 may have a larger one" at h1 ip link set ib0 mtu 4092
	check_equal "$driver: as far as the group allows it" 2044 "$(mtu_of h1)"
	check_refused "$driver: but none that no port could carry" at h1 ip link set ib0 mtu 4093
	check "$driver: h3 may have a smaller one" at h3 ip link set ib0 mtu 1500
	check "$driver: packets go" host_reaches h1 "$(v4_of h3)" -s 1472 -M "do"
	test_mtu_without_link
	check "the group is made anew, with an MTU of 4096" renew_sm ', mtu=5'
	check "$driver: h1 has what it wished for" eventually mtu_is h1 4092
	check "$driver: h2, which wished for nothing, has as much" eventually mtu_is h2 4092
	check "$driver: h3 keeps the smaller one" mtu_is h3 1500
	check "$driver: packets go" eventually host_answers h1 "$(v4_of h2)" -s 4064 -M "do"
}

# --- what is said ----------------------------------------------------------------------------------------------------

refusal_of() { # driver
	case $1 in
	oxib) echo 'ib0.8005: port 1 cannot join the broadcast group of P_Key 0x8005' ;;
	*) echo 'ib0.8005: multicast join failed' ;;
	esac
}

test_refusal() {
	dmesg --clear
	check "$driver: h1 has a child in red" add_child h1 8005
	check "$driver: the log says that it is refused" eventually kernel_log_has "$(refusal_of "$driver")"
	[ "$driver" != oxib ] || {
		pause 5
		check_equal "oxib: once, however often it is tried" 1 "$(dmesg | grep -c "$(refusal_of oxib)")"
	}
}

bus_of() { # host
	at "$1" ethtool -i ib0 | awk '$1 == "bus-info:" { print $2 }'
}

# --- both drivers ----------------------------------------------------------------------------------------------------

test_driver() {
	check "$driver: it loads" load_driver "$driver"
	check "$driver: the interfaces come up" interfaces_up h1 h2 h3
	check_equal "$driver: ethtool -i has the device's place on its bus" softib "$(bus_of h1)"
	test_broadcasts
	test_refusal
	test_mtu
	check "the group is made anew, as it was" renew_sm ''
	check "$driver: it unloads" unload_driver
}

bring_up_fabric star h1
write_partitions
reread h1
for host in h1 h2 h3; do
	check "$host is in all partitions" eventually has_pkeys "$host"
done
for driver in "${drivers[@]}"; do
	test_driver
done
take_down_fabric
finish
