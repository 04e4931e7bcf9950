#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# ib0 as a net device: what ip and ethtool say of it, and what happens when it, its MTU, its addresses, its routes or
# the Ethernet device below it change.
#
# nodes: 2
# kernels: fast
# timeout: 240

. selftests/lib/node.sh

peer4=10.99.0.$peer

# --- what it is ---

# The name of an RDMA device's parent, or its own if it has none.
bus_name() { # RDMA device
	local device=/sys/class/infiniband/$1
	[ ! -e "$device/device" ] || device=$(readlink -f "$device/device")
	basename "$device"
}

test_identity() {
	local address
	check_equal "its type is InfiniBand" infiniband "$(link_field .link_type)"
	check_equal "sysfs says the same" 32 "$(cat /sys/class/net/ib0/type)"
	address=$(hardware_address)
	check "its address has 20 bytes" matches '^([0-9a-f]{2}:){19}[0-9a-f]{2}$' "$address"
	check_equal "ip shows that address" "$address" "$(link_field .address)"
	check_equal "no flag of connected mode is in it" 00 "${address:0:2}"
	check "a queue pair's number is" holds "$(queue_pair)" -gt 1
	check "there is such a queue pair" matches "lqpn $(queue_pair) type UD state RTS" "$(rdma resource show qp)"
	check_equal "the GID in it is that of the port's IPv4 address" "$(gid_of_ipv4 "10.77.0.$NODE")" "${address:12}"
	check_equal "its broadcast address is the link's broadcast group" \
		00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff "$(link_field .broadcast)"
	check_equal "its MTU is the port's less 4" 4092 "$(link_field .mtu)"
	check "it can broadcast and multicast" holds "$(link_field '.flags | contains(["BROADCAST", "MULTICAST"])')" = true
	check_equal "ethtool -i has the device's place on its bus" "$(bus_name rxe0)" "$(ethtool -i ib0 | awk '$1 == "bus-info:" { print $2 }')"
	check_equal "its port is the first" 0 "$(cat /sys/class/net/ib0/dev_port)"
}

# --- ethtool ---

test_ethtool() {
	check "ethtool -i names the driver" matches '^driver: oxib$' "$(ethtool -i ib0)"
	check "ethtool -i gives a version" matches '^version: [0-9]+\.' "$(ethtool -i ib0)"
	check "ethtool -g shows the rings" matches '^TX:[[:space:]]+256$' "$(ethtool -g ib0 | sed -n '/Current/,$p')"
	check "ethtool -l shows transmit queues" matches '^TX:[[:space:]]+[1-9]' "$(ethtool -l ib0 | sed -n '/Current/,$p')"
	check "ethtool -S counts" matches '^ *[a-z_0-9]+: [0-9]+$' "$(ethtool -S ib0)"
	check "ethtool sees the link" matches 'Link detected: yes' "$(ethtool ib0)"
}

# --- statistics ---

# Packets are counted when they have been dealt with, which may be a moment after the peer's answer was seen.
statistic_reaches() { # name, value
	[ "$(statistic "$1")" -ge "$2" ]
}

test_statistics() {
	local rx_packets tx_packets rx_bytes tx_bytes
	# Of packets to a peer that is still being looked for on the Ethernet only three wait; the fourth is dropped.
	check "the peer is found" eventually answers "$peer4"
	rx_packets=$(statistic rx_packets) rx_bytes=$(statistic rx_bytes)
	tx_packets=$(statistic tx_packets) tx_bytes=$(statistic tx_bytes)
	check "twenty pings of 1000 bytes" reaches "$peer4" -c 20 -s 1000
	check "at least twenty packets are counted as received" eventually statistic_reaches rx_packets $((rx_packets + 20))
	check "at least twenty packets are counted as sent" eventually statistic_reaches tx_packets $((tx_packets + 20))
	check "their bytes are counted as received" eventually statistic_reaches rx_bytes $((rx_bytes + 20 * 1028))
	check "their bytes are counted as sent" eventually statistic_reaches tx_bytes $((tx_bytes + 20 * 1028))
	check "but not many more" holds "$(statistic tx_bytes)" -le $((tx_bytes + 20 * 1028 + 20 * 24 + 2000))
	check_equal "ip has 64-bit counters" true "$(ip -j -s link show ib0 | jq '.[0].stats64 | has("rx")')"
}

# --- MTU ---

test_mtu() {
	check_refused "an MTU above the port's is refused" ip link set ib0 mtu 4093
	check_refused "an MTU below IPv4's least is refused" ip link set ib0 mtu 67
	check_equal "the MTU is as before" 4092 "$(link_field .mtu)"
	check "a smaller MTU is taken" ip link set ib0 mtu 1500
	check "packets of it go" reaches "$peer4" -M do -s 1472
	check_refused "larger ones do not" answers "$peer4" -M do -s 1473
	check "larger ones in fragments do" reaches "$peer4" -s 4000
	check "the largest MTU is taken again" ip link set ib0 mtu 4092
	check "packets of that go again" reaches "$peer4" -M do -s 4064
}

# The Ethernet MTU decides the port's, and that the largest of ib0.
test_ethernet_mtu() {
	ip link set eth0 mtu 1500
	check "with Ethernet's MTU at 1500 ib0's becomes 1020" eventually mtu_is 1020
	check "packets of it go" reaches "$peer4" -M do -s 992
	ip link set eth0 mtu 9000
	check "with Ethernet's MTU at 9000 ib0 can have 4092 again" eventually ip link set ib0 mtu 4092
	check "packets of that go" reaches "$peer4" -M do -s 4064
}

mtu_is() { # MTU
	[ "$(link_field .mtu)" = "$1" ]
}

# --- GIDs of the port below ---

# A neighbour at 10.77.0.200, to which nothing else sends: once its path is forgotten, none is looked for.
neighbour=10.99.0.200

# The state of the path to it: yes if it was found, nothing if there is none.
found() {
	awk -v RS= '/^GID: 0:0:0:0:0:ffff:a4d:c8\n/ { print $4 }' /sys/kernel/debug/ipoib/ib0_path
}

has_path() {
	equal yes "$(found)"
}

has_no_path() {
	[ -e /sys/kernel/debug/ipoib/ib0_path ] && equal '' "$(found)"
}

finds_path() {
	answers "$neighbour" -W 1
	has_path
}

has_gid() { # GID
	grep -qx "$1" /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null
}

address_is_as_before() {
	equal "$(told address "$NODE")" "$(hardware_address)"
}

test_gids() {
	mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
	ip neighbour replace 10.77.0.200 dev eth0 nud permanent lladdr 02:00:00:00:00:c8
	ip neighbour replace "$neighbour" dev ib0 nud permanent lladdr "00:00:00:04:$(gid_of_ipv4 10.77.0.200)"
	check "the path to a neighbour is found" eventually finds_path
	# The new GID has ib0 read its port; the smaller MTU, of which nothing else tells, shows when it has.
	ip link set eth0 mtu 2500
	check "the Ethernet device gets another address" ip address add "10.78.0.$NODE/24" dev eth0
	check "the port has a GID of it" eventually has_gid "0000:0000:0000:0000:0000:ffff:0a4e:000$NODE"
	check "ib0 has looked at the port" eventually mtu_is 2044
	check "the path is known as before" has_path
	ip link set eth0 mtu 9000
	check "the address goes" ip address del "10.78.0.$NODE/24" dev eth0
	check "ib0 can have 4092 again" eventually ip link set ib0 mtu 4092
	check "the path is still known" has_path
	ip address del "10.77.0.$NODE/24" dev eth0
	ip address add "10.77.0.$NODE/24" brd + dev eth0
	check "the GID that packets come from goes and comes: the path is forgotten" eventually has_no_path
	check "ib0 has the address from before" eventually address_is_as_before
	check "it has carrier" eventually carrier_is 1
	check "the peer is reached" eventually answers "$peer4"
	ip neighbour del "$neighbour" dev ib0
}

# The default GID has a place of its own in the port's table, which a reference to the one before keeps.
test_default_gid() {
	local old
	old=$(hardware_address eth0)
	# Not every Ethernet device takes another address while it is up.
	ip link set eth0 down
	# Then it has read the port, too, which takes references for a moment.
	check "ib0 has seen that the Ethernet device is down" eventually carrier_is 0
	check "the Ethernet device takes another address" ip link set eth0 address "02:00:00:00:01:0$NODE"
	check "the port has the default GID of it" eventually has_gid "fe80:0000:0000:0000:0000:00ff:fe00:010$NODE"
	check "the Ethernet device takes the address from before" ip link set eth0 address "$old"
	ip link set eth0 up
	check "ib0 has carrier again" eventually carrier_is 1
	check "it has the address from before" eventually address_is_as_before
	check "the peer is reached" eventually answers "$peer4"
}

# --- carrier ---

test_carrier() {
	check "ib0 has carrier" carrier_is 1
	ip link set eth0 down
	check "it loses it when the Ethernet device goes down" eventually carrier_is 0
	check_equal "ip says so" DOWN "$(link_field .operstate)"
	check_refused "the peer is not reached then" answers "$peer4"
	ip link set eth0 up
	check "it has carrier again when the Ethernet device is up" eventually carrier_is 1
	check "the peer is reached again" eventually answers "$peer4"
	check_equal "its address is as before" "$(told address "$NODE")" "$(hardware_address)"
}

# --- addresses and routes ---

test_addresses() {
	check "a second IPv4 address is taken" ip address add "10.98.0.$NODE/24" dev ib0
	check "a second IPv6 address is taken" ip address add "fd00:98::$NODE/64" dev ib0 nodad
	barrier second-address
	check "the peer answers on its second IPv4 address" reaches "10.98.0.$peer"
	check "the peer answers on its second IPv6 address" reaches "fd00:98::$peer"
	check "the peer's link-local address answers" reaches "$(told link_local "$peer")%ib0"
	barrier second-address-used
	check "the second IPv4 address goes" ip address del "10.98.0.$NODE/24" dev ib0
	check "the second IPv6 address goes" ip address del "fd00:98::$NODE/64" dev ib0
	check_refused "the peer's is not reached any more" answers "10.98.0.$peer"
	check "its first one is" reaches "$peer4"
}

link_local() {
	ip -j -6 address show dev ib0 scope link | jq -re '[.[].addr_info[].local | values][0]'
}

# The peer has 192.0.2.N on its loopback device, reached by way of ib0.
test_routes() {
	check "a route by way of the peer is taken" ip route add "192.0.2.$peer/32" via "$peer4" src "192.0.2.$NODE"
	barrier routes
	check "what is behind the peer is reached" reaches "192.0.2.$peer"
	barrier routes-used
	check "the route can be changed" ip route replace "192.0.2.$peer/32" dev ib0 src "192.0.2.$NODE"
	barrier routes-changed
	check "it is reached on the link, too" reaches "192.0.2.$peer"
	check "the route goes" ip route del "192.0.2.$peer/32"
}

# --- down and up ---

cycle() { # times
	local round
	for ((round = 0; round < $1; round++)); do
		packets_pass || return
		ip link set ib0 down || return
		carrier_is 1 && return 1
		ip link set ib0 up || return
		eventually carrier_is 1 || return
	done
}

test_cycles() {
	check "ib0 goes down and up again and again, packets coming and going" cycle "$(some 20)"
	# The link's addresses stay, but those of IPv6 go with the link.
	ib_address
	check "the peer is reached after that" eventually answers "$peer4"
	check "by IPv6, too" eventually answers "fd00:99::$peer"
	check_equal "its address is as before" "$(told address "$NODE")" "$(hardware_address)"
}

# Packets that keep coming while the other end changes.
rain() {
	while :; do
		ping -q -f -c 2000 -W 1 "$peer4"
	done
}

bring_up 9000
tell address "$(hardware_address)"
eventually link_local || bail_out "ib0 has no link-local IPv6 address"
tell link_local "$(link_local)"
ip address add "192.0.2.$NODE/32" dev lo
barrier ready

if [ "$NODE" = 1 ]; then
	test_identity
	test_ethtool
	test_statistics
	test_mtu
	test_ethernet_mtu
	test_gids
	test_default_gid
	test_carrier
fi
barrier changed
test_addresses
barrier addresses
test_routes
barrier routes-done
if [ "$NODE" = 1 ]; then
	barrier rain
	in_background rain
	test_cycles
else
	in_background rain
	barrier rain
fi
barrier done
take_down
finish
