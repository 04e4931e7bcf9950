#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What administrators configure on InfiniBand ports: children in partitions, by netlink and by sysfs, with full and limited
# members; what is refused; the address; the MTU; a peer of connected mode that is gone; namespaces, also of the RDMA device; what
# ethtool and debugfs show, also of children with other names; children and the module going.
#
# nodes: 1
# kernels: fast
# timeout: 400

. selftests/lib/infiniband.sh

# One that is refused has to be refused in these words.
refused_in_words() { # extended regular expression, host, command...
	local words=$1 host=$2 said
	shift 2
	if said=$(at "$host" "$@" 2>&1); then
		printf 'it was not refused, and said: %s\n' "$said"
		return 1
	fi
	matches "$words" "$said"
}

attribute() { # host, interface, attribute
	at "$1" cat "/sys/class/net/$2/$3"
}

write_attribute() { # host, interface, attribute, text
	at "$1" sh -c "echo '$4' >/sys/class/net/$2/$3"
}

exists_at() { # host, interface
	at "$1" test -e "/sys/class/net/$2"
}

is_gone_at() { # host, interface
	! exists_at "$@"
}

carrier_at() { # host, interface
	at "$1" grep -q 1 "/sys/class/net/$2/carrier"
} 2>/dev/null

# The interface is there, and is up.
no_carrier_at() { # host, interface
	equal 0 "$(attribute "$1" "$2" carrier)"
}

# Blue has h1 and h2, and h3 as a limited member; red has h3 and h4.
write_partitions() {
	cat >/tmp/sm.h1/partitions.conf <<-END
		Default=0x7fff, ipoib: ALL=full;
		blue=0x0001, ipoib: $(port_guid h1)=full, $(port_guid h2)=full, $(port_guid h3)=limited${1:-};
		red=0x0002, ipoib: $(port_guid h3)=full, $(port_guid h4)=full;
	END
	kill -HUP "${sm_processes[h1]}"
}

has_pkey() { # host, P_Key
	at "$1" sh -c "cat /sys/class/infiniband/$1/ports/1/pkeys/*" | grep -q "$2"
}

child_up() { # host, interface, partition
	at "$1" ip address replace "10.$3.0.$(host_number "$1")/24" brd + dev "$2" && at "$1" ip link set "$2" up
}

test_children() {
	check "h1: a child by netlink" at h1 ip link add link ib0 name blue type ipoib pkey 0x8001
	check "h1: ip -d link says what it is" says h1 'ip -d link show blue' 'ipoib pkey +0x8001 mode +datagram umcast +0000'
	check_equal "h1: its parent" ib0 "$(at h1 ip -j link show blue | jq -r '.[0].link')"
	check_equal "h1: its partition is in its broadcast address" 80:01 \
		"$(at h1 ip -j link show blue | jq -r '.[0].broadcast' | cut -c 25-29)"
	check "h2: a child by sysfs" write_attribute h2 ib0 create_child 0x8001
	check "h2: it is called after its P_Key" exists_at h2 ib0.8001
	check_equal "h2: sysfs: its P_Key" 0x8001 "$(attribute h2 ib0.8001 pkey)"
	check_equal "h2: sysfs: its parent" ib0 "$(attribute h2 ib0.8001 parent)"
	check_refused "h2: another one for it is refused" write_attribute h2 ib0 create_child 0x8001
	check_refused "h2: also with the key of a limited member" write_attribute h2 ib0 create_child 0x0001
	check_refused "h2: and one for ib0's own partition" write_attribute h2 ib0 create_child 0xffff
	check "h3: a limited member's child" at h3 ip link add link ib0 name blue type ipoib pkey 0x0001
	check "h3: it is shown as a full one's" says h3 'ip -d link show blue' 'pkey +0x8001'
	for host in h3 h4; do
		check "$host: a child of red" at "$host" ip link add link ib0 name red type ipoib pkey 0x8002
		check "$host: it comes up" child_up "$host" red 2
	done
	check "h1: blue comes up" child_up h1 blue 1
	check "h2: blue comes up" child_up h2 ib0.8001 1
	check "h3: blue comes up" child_up h3 blue 1
	check "h1: blue has carrier" eventually carrier_at h1 blue
	check "h2: blue has carrier" eventually carrier_at h2 ib0.8001
	check "h3: blue has carrier" eventually carrier_at h3 blue
	check "h4: red has carrier" eventually carrier_at h4 red
	check "blue: full members reach each other" eventually host_reaches h1 10.1.0.2
	check "blue: a limited member reaches a full one" eventually host_reaches h3 10.1.0.1
	check "blue: a full member reaches a limited one" host_reaches h2 10.1.0.3
	check "red: its members reach each other" eventually host_reaches h3 10.2.0.4
	check "all reach each other by ib0 as before" host_reaches h1 "$(v4_of h4)"
}

test_refusals() {
	check "a grandchild is refused" refused_in_words 'blue is a child itself: make it a child of ib0' \
		h1 ip link add link blue name bad type ipoib pkey 0x8002
	check "P_Key 0x8000 is refused" refused_in_words '0x8000 names no partition' h1 ip link add link ib0 name bad type ipoib pkey 0x8000
	check "P_Key 0 is refused" refused_in_words '0x0000 names no partition' h1 ip link add link ib0 name bad type ipoib pkey 0
	check "a second one in the partition is made, with a warning" says h1 \
		'ip link add link ib0 name again type ipoib pkey 0x8001' 'Warning: ib0 has another child in partition 0x8001'
	check "and goes" at h1 ip link delete again
	check_refused "sysfs: a child that netlink made is not deleted" write_attribute h1 ib0 delete_child 0x8001
	check_refused "sysfs: nor one that is not there" write_attribute h2 ib0 delete_child 0x8003
	check "the one that sysfs made is" write_attribute h2 ib0 delete_child 0x8001
	check "it is gone" is_gone_at h2 ib0.8001
	check "it can be made again" write_attribute h2 ib0 create_child 0x8001
	check "ip link delete takes it away, too" at h2 ip link delete ib0.8001
	check "it is gone" is_gone_at h2 ib0.8001
}

set_mode() { # host, interface, datagram|connected
	write_attribute "$1" "$2" mode "$3"
}

offers_connections() { # host
	matches '^80:' "$(hardware_address_at "$1")"
}

feature_is() { # host, name as of ethtool -k, on|off
	matches "^$2: $3" "$(at "$1" ethtool -k ib0 | grep "^$2:")"
}

# Connections take long packets whole; what an administrator has said of the features outlives them.
test_features_of_modes() {
	local cut=tcp-segmentation-offload mode
	check "h2: TCP segments are cut" feature_is h2 "$cut" on
	check "h2: ib0 goes to connected mode" set_mode h2 ib0 connected
	check "h2: none are cut" feature_is h2 "$cut" off
	check "h2: nor are any to be" at h2 ethtool -K ib0 tso off
	for mode in datagram connected datagram; do
		check "h2: ib0 goes to $mode mode" set_mode h2 ib0 "$mode"
		check "h2: none are cut" feature_is h2 "$cut" off
	done
	check "h2: they are to be" at h2 ethtool -K ib0 tso on
	check "h2: they are" feature_is h2 "$cut" on
	check "h2: it has carrier" eventually has_carrier h2
}

was_asked_to_connect() { # requests before
	holds "$(port_field h1 cm_rx_msgs/req)" -gt "$1"
}

# A member of blue takes h1's ib0 for one of blue, and asks it for a connection.
test_partitions_of_connections() {
	local address requests
	check "h1: ib0 goes to connected mode" set_mode h1 ib0 connected
	check "h1: ib0 offers connections" eventually offers_connections h1
	address=$(hardware_address_at h1)
	check "h2: a child of blue in connected mode" at h2 ip link add link ib0 name astray type ipoib pkey 0x8001 mode connected
	at h2 ip address add 10.3.0.2/24 dev astray
	at h2 ip link set astray up
	check "h2: it has carrier" eventually carrier_at h2 astray
	at h2 ip neighbour replace 10.3.0.1 lladdr "$address" dev astray nud permanent
	requests=$(port_field h1 cm_rx_msgs/req)
	check_refused "h2: it does not reach ib0" at h2 ping -q -c 3 -W 1 10.3.0.1
	check "h1: it asked for a connection" eventually was_asked_to_connect "$requests"
	check_equal "h2: it has none" 0 "$(at h2 ethtool -S astray | awk '$1 == "connections_out:" { print $2 }')"
	check_equal "h1: ib0 has taken none" 0 "$(counter_at h1 connections_in)"
	check "h2: the child goes" at h2 ip link delete astray
	check "h1: ib0 goes back to datagram mode" set_mode h1 ib0 datagram
	check "h1: it has carrier" eventually has_carrier h1
}

# Root without the right to configure the network.
test_rights() {
	local attribute
	for attribute in "umcast 1" "mode connected" "create_child 0x8003" "delete_child 0x8003"; do
		check "h2: without CAP_NET_ADMIN nothing is written to ${attribute% *}" refused_in_words 'not permitted' h2 \
			setpriv --bounding-set -net_admin --inh-caps -net_admin \
			bash -c "echo ${attribute#* } >/sys/class/net/ib0/${attribute% *}"
	done
}

# Children come and go while the module does.
test_churn() {
	# shellcheck disable=SC2016 # for the other shell
	at h2 sh -c 'while [ -e /sys/class/net/ib0 ]; do
		for attribute in create_child delete_child; do echo 0x8001 >/sys/class/net/ib0/$attribute; done
	done' >/dev/null 2>&1 &
	check "children come" eventually exists_at h2 ib0.8001
	check "and go" eventually is_gone_at h2 ib0.8001
	check "the module can be unloaded while children come and go" timeout $((4 * patience)) rmmod oxib
	wait $!
}

# A partition that the port is not in yet.
test_absent() {
	check "h4: a child of a partition that it is not in" at h4 ip link add link ib0 name blue type ipoib pkey 0x8001
	child_up h4 blue 1
	check "h4: it has no carrier" no_carrier_at h4 blue
	check "h4: the log says why" kernel_log_has 'infiniband h4: blue: port 1 does not have the P_Key 0x8001'
	write_partitions ", $(port_guid h4)=full"
	check "h4: the subnet manager takes it in" eventually has_pkey h4 0x8001
	check "h4: it has carrier" eventually carrier_at h4 blue
	check "h4: the log says that it has one again" kernel_log_has 'infiniband h4: blue: port 1 has the P_Key 0x8001 again'
	check "h4: it reaches others" eventually host_reaches h4 10.1.0.1
	write_partitions
	check "h4: the subnet manager takes it out" eventually refused has_pkey h4 0x8001
	check "h4: it has no carrier any more" eventually no_carrier_at h4 blue
	check_equal "h4: the log says so once more" 2 "$(dmesg | grep -c 'infiniband h4: blue: port 1 does not have the P_Key 0x8001')"
	check "h4: ib0 does not mind" host_reaches h4 "$(v4_of h1)"
	check "h4: it goes" at h4 ip link delete blue
}

knows_its_own() { # host
	local before
	before=$(counter_at "$1" rx_drop_own)
	# Nobody has that address: it is asked for by broadcast.
	at "$1" ping -c 1 -W 1 "10.88.$NODE.250"
	[ "$(counter_at "$1" rx_drop_own)" -gt "$before" ]
}

child_guid() { # name
	at h2 cut -c 37- "/sys/class/net/$1/address"
}

with_guid() { # hardware address, last byte
	printf '%s:%s\n' "${1%:*}" "$2"
}

test_address() {
	local old new
	old=$(hardware_address_at h2)
	new=$(with_guid "$old" 5a)
	check "h2: another GUID is taken" at h2 ip link set ib0 address "$new"
	check_equal "h2: the address has it" "$new" "$(hardware_address_at h2)"
	check "h2: the log says that the port does not have it" kernel_log_has 'the port has no GID with that GUID'
	check "h2: it knows its own packets that come back" eventually knows_its_own h2
	check_refused "h2: another queue pair is refused" at h2 ip link set ib0 address "00:00:00:01${old:11}"
	check_refused "h2: another prefix is refused" at h2 ip link set ib0 address "${old:0:12}fe:81${old:17}"
	check_refused "h2: no GUID is refused" at h2 ip link set ib0 address "${old:0:36}00:00:00:00:00:00:00:00"
	check_equal "h2: the address is as it was" "$new" "$(hardware_address_at h2)"
	check "h2: a child has it, too" at h2 ip link add link ib0 name green type ipoib pkey 0xffff
	check_equal "h2: in its address" "${new:36}" "$(child_guid green)"
	check "h2: a child with an address of its own" at h2 ip link add link ib0 name red address "$(with_guid "$old" 5b)" \
		type ipoib pkey 0xffff
	check_equal "h2: has its GUID" "$(with_guid "${old:36}" 5b)" "$(child_guid red)"
	at h2 ip link delete red
	check "h2: its own is taken again" at h2 ip link set ib0 address "$old"
	check_equal "h2: by the child, too" "${old:36}" "$(child_guid green)"
	at h2 ip link delete green
	check "h2: it is reached" eventually host_reaches h1 "$(v4_of h2)"
}

least_of() { # host: bytes that may be on their way at least
	at "$1" cat /sys/class/net/ib0/queues/tx-0/byte_queue_limits/limit_min
}

set_least() { # host, bytes
	at "$1" sh -c "echo $2 >/sys/class/net/ib0/queues/tx-0/byte_queue_limits/limit_min"
}

# With it goes the byte queue limit: sixteen packets.
test_mtu_of_modes() {
	local most
	most=$(mtu_of h1)
	check "h1 goes to connected mode" at h1 sh -c 'echo connected >/sys/class/net/ib0/mode'
	check "a smaller MTU is set there" at h1 ip link set ib0 mtu 1500
	check "h1 goes back to datagrams" at h1 sh -c 'echo datagram >/sys/class/net/ib0/mode'
	check_equal "the MTU is the smaller one" 1500 "$(mtu_of h1)"
	check_equal "and its queues begin with it" $((16 * 1504)) "$(least_of h1)"
	check "the largest is taken again" at h1 ip link set ib0 mtu "$most"
	check "h1 has carrier" eventually has_carrier h1
	check "h1 is reached" eventually host_reaches h3 "$(v4_of h1)"
}

bytes_on_their_way() { # host: as its byte queue limits count
	at "$1" sh -c 'cat /sys/class/net/ib0/queues/tx-*/byte_queue_limits/inflight' | awk '{ sum += $1 } END { print sum }'
}

# What goes by a connection to a peer that is gone is acknowledged by nobody: other destinations of the queue do not wait for that.
test_lost_peer() {
	local host
	for host in h1 h4; do
		check "$host goes to connected mode" set_mode "$host" ib0 connected
		check "$host has carrier" eventually has_carrier "$host"
	done
	check "h1 has a connection to h4" eventually host_answers h1 "$(v4_of h4)" -M "do" -s 20000
	check "the cable of h4 is pulled" pull h4
	check_refused "h4 does not answer" at h1 ping -q -c 5 -i 0.2 -W 1 -s 20000 "$(v4_of h4)"
	check_equal "what was sent to it counts against no byte queue limit" 0 "$(bytes_on_their_way h1)"
	check "h3 answers h1 meanwhile" host_answers h1 "$(v4_of h3)" -W "$patience"
	check "the cable is put back" put_back h4
	check "h4 has carrier" eventually has_carrier h4
	for host in h1 h4; do
		check "$host goes back to datagrams" set_mode "$host" ib0 datagram
		check "$host has carrier" eventually has_carrier "$host"
	done
	check "h4 answers h1 again" eventually host_answers h1 "$(v4_of h4)"
}

test_mtu() {
	local most
	most=$(mtu_of h1)
	check_equal "the MTU is that of the broadcast group" 1 "$((most == 2044 || most == 4092))"
	dmesg --clear
	check_refused "one that no port could carry is refused" at h1 ip link set ib0 mtu 4093
	check_refused "again" at h1 ip link set ib0 mtu 4094
	check_equal "the log says once who sets it on InfiniBand" 1 "$(dmesg | grep -c "largest is 4092 now: the subnet manager")"
	check "a smaller one is taken" at h1 ip link set ib0 mtu 1500
	check "packets go" host_reaches h1 "$(v4_of h3)" -s 1472 -M "do"
	check "the largest is taken again" at h1 ip link set ib0 mtu "$most"
	check "packets go" host_reaches h1 "$(v4_of h3)" -s $((most - 28)) -M "do"
}

test_ethtool() {
	local rate least
	rate=$(port_field h1 rate | awk '{ print $1 * 1000 }')
	check "the speed is the port's" says h1 'ethtool ib0' "Speed: ${rate}Mb/s" 'Duplex: Full' 'Link detected: yes'
	least=$(least_of h1)
	check "an administrator lets more bytes be on their way" set_least h1 123456
	check "rings change" at h1 ethtool -G ib0 tx 512 rx 512
	check "h1 has carrier again" eventually has_carrier h1
	check_equal "as many bytes may be on their way as the administrator said" 123456 "$(least_of h1)"
	check "the driver's own number is set again" set_least h1 "$least"
	check "h1 is reached" eventually host_reaches h3 "$(v4_of h1)"
	check "h1 reaches others" eventually host_reaches h1 "$(v4_of h4)"
}

test_sysfs() {
	check_equal "mode" datagram "$(attribute h1 ib0 mode)"
	check_equal "pkey" 0xffff "$(attribute h1 ib0 pkey)"
	check_equal "umcast" 0 "$(attribute h1 ib0 umcast)"
	check_equal "dev_id" 0x0 "$(attribute h1 ib0 dev_id)"
	check "umcast is taken" write_attribute h1 ib0 umcast 1
	check_equal "and shown" 1 "$(attribute h1 ib0 umcast)"
	check "and taken back" write_attribute h1 ib0 umcast 0
}

test_namespaces() {
	ip netns add elsewhere
	check "a child moves to another namespace" ip -n h1 link set blue netns elsewhere
	check "it is there" exists_at elsewhere blue
	ip -n elsewhere address add 10.1.0.1/24 dev blue
	ip -n elsewhere link set blue up
	check "it has carrier there" eventually carrier_at elsewhere blue
	check "it is reached there" eventually host_reaches h3 10.1.0.1
	check "a child is made there" ip -n h1 link add link ib0 name blue2 netns elsewhere type ipoib pkey 0x8001
	check "it is there" exists_at elsewhere blue2
	check "it goes" ip -n elsewhere link delete blue2
	check "h4's RDMA device moves there" at h4 rdma dev set h4 netns elsewhere
	check "ib0 is there with it" eventually exists_at elsewhere ib0
	check "its child is gone" is_gone_at h4 red
	check "the device comes back" ip netns exec elsewhere rdma dev set h4 netns h4
	check "ib0 comes up again" interfaces_up h4
	check "h4 is reached" eventually host_reaches h1 "$(v4_of h4)"
	ip netns delete elsewhere
	check "its namespace gone, the child is in the first one" eventually test -e /sys/class/net/blue
	check "from there it goes back" ip link set blue netns h1
	child_up h1 blue 1
	check "it is reached again" eventually host_reaches h3 10.1.0.1
}

# In debugfs: the groups that the interface is in, and where it has found others.
test_debugfs() {
	local group=ff12:401b:ffff:0:0:0:ffff:ffff
	mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
	check "there are files for each interface" test -e /sys/kernel/debug/ipoib/ib0@h1_mcg
	check "of a child" test -e /sys/kernel/debug/ipoib/blue@h1_mcg
	check "the broadcast group is there, joined" matches "GID: $group" "$(cat /sys/kernel/debug/ipoib/ib0@h1_mcg)"
	check "a path is there, found" matches 'DLID: +0x' "$(cat /sys/kernel/debug/ipoib/*_path)"
}

has_files() { # interface...
	local interface
	for interface in "$@"; do
		test -e "/sys/kernel/debug/ipoib/$interface@h1_mcg" || return
	done
}

read_groups() { # interface...
	local interface
	while :; do
		for interface in "$@"; do
			mapfile -t <"/sys/kernel/debug/ipoib/$interface@h1_mcg"
		done
		# The tasks that go on after each round need a processor, too.
		pause 0.01
	done
}

both_are_down() { # two names
	[ -z "$(ip -n h1 -brief link show dev "$1" up)$(ip -n h1 -brief link show dev "$2" up)" ]
}

# Children go up and down together with ib0. All of them then look at their groups, and each at its name.
rename_children() { # two names, two others
	ip -n h1 link set "$1" name "$3" && ip -n h1 link set "$2" name "$4" || return
	ip -n h1 link set ib0 down && eventually both_are_down "$3" "$4" && ip -n h1 link set ib0 up && eventually has_files "$3" "$4"
}

rename_to_and_fro() { # two names, two others
	for _ in {1..4}; do
		rename_children "$1" "$2" "$3" "$4" && rename_children "$3" "$4" "$1" "$2" || return
	done
}

has_groups_in() { # name, P_Key
	grep -qi "GID: ff12:401b:$2:" "/sys/kernel/debug/ipoib/$1@h1_mcg"
}

# The files of each still have the name that the other is to have.
swap_names() { # two names, the P_Keys of those who have them then
	ip -n h1 link set "$1" name between && ip -n h1 link set "$2" name "$1" && ip -n h1 link set between name "$2" || return
	ip -n h1 link set ib0 down && eventually both_are_down "$1" "$2" && ip -n h1 link set ib0 up || return
	eventually has_groups_in "$1" "$3" && eventually has_groups_in "$2" "$4"
}

# Who takes away the files of an old name waits for their readers, those wait for the RTNL, and that may be held for the other
# child, which is to have files in the same directory.
test_renaming() {
	local name
	check "h1: another child" at h1 ip link add link ib0 name red type ipoib pkey 0xffff
	check "h1: it comes up" child_up h1 red 2
	check "h1: there are files for both" eventually has_files blue red
	for _ in {1..3}; do
		in_background read_groups blue red azure crimson
	done
	check "h1: both get other names, and files, while those are read" rename_to_and_fro blue red azure crimson
	stop_jobs
	for name in azure crimson; do
		check "h1: there are no files for $name" eventually refused has_files "$name"
	done
	check "h1: they swap their names, and each has its own files" swap_names blue red ffff 8001
	check "h1: they swap them again" swap_names blue red 8001 ffff
	check "h1: the other child goes" at h1 ip link delete red
	check "h1: ib0 has carrier again" interfaces_up h1
	check "h1: blue has carrier" eventually carrier_at h1 blue
	check "h1: it is reached" eventually host_reaches h3 10.1.0.1
}

bring_up_fabric star h1
write_partitions
for host in h1 h2; do
	check "$host is in blue" eventually has_pkey "$host" 0x8001
done
check "h3 is a limited member of blue" eventually has_pkey h3 0x0001
check "h4 is in red" eventually has_pkey h4 0x8002
load_driver oxib || bail_out "oxib could not be loaded"
check "oxib makes an interface in each host, with carrier" interfaces_up "${hosts[@]}"
test_sysfs
test_children
test_refusals
test_rights
test_features_of_modes
test_partitions_of_connections
test_absent
test_address
test_mtu
test_mtu_of_modes
test_lost_peer
test_ethtool
test_debugfs
test_renaming
test_namespaces
dmesg --clear
check "h1: who deletes ib0 is told that it stays" at h1 ip link delete ib0
check "h1: it stays" has_interface h1
check_equal "the log says so" 1 "$(dmesg | grep -c 'stays as long as the port')"
dmesg --clear
check "the module can be unloaded with its children" unload_driver
check_equal "the log says nothing of interfaces that stay" 0 "$(dmesg | grep -c 'stays as long as the port')"
for host in "${hosts[@]}"; do
	check "$host: nothing is left" is_gone_at "$host" blue
done
check "it can be loaded again" load_driver oxib
check "the interfaces come up" interfaces_up "${hosts[@]}"
check "h1 reaches h4" eventually host_reaches h1 "$(v4_of h4)"
check "h1: a child is made again" at h1 ip link add link ib0 name blue type ipoib pkey 0x8001
test_churn
take_down_fabric
finish
