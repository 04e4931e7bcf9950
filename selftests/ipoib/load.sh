#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Loading oxib.ko: its parameters, the devices it takes and those it leaves, and the kernel's own IPoIB beside it.
# One node; its Ethernet devices are pairs of veth.
#
# nodes: 1
# kernels: fast
# timeout: 120

. selftests/lib/node.sh

# A soft-RoCE device roceN on a veth pair of its own.
make_roce() { # number
	ip link add "veth$1" type veth peer name "far$1" &&
		ip link set "veth$1" mtu 9000 up && ip link set "far$1" mtu 9000 up &&
		ip address add "10.77.$1.1/24" dev "veth$1" &&
		rdma link add "roce$1" type rxe netdev "veth$1"
}

unmake_roce() { # number
	rdma link delete "roce$1" && ip link delete "veth$1"
}

loaded() {
	[ -d /sys/module/oxib ]
}

interfaces() {
	ip -o link show | grep -cE ' ib[0-9]+:'
}

# The load is refused, and the kernel log names the parameter, the value and what is allowed.
check_bad() { # parameter, value, regular expression for the range
	dmesg --clear
	check_refused "$1=$2 is refused" load_oxib "$1=$2"
	check "the log names parameter, value and range for $1=$2" kernel_log_has "oxib: .*$1=$2.*$3"
	check_refused "oxib.ko is not loaded after $1=$2" loaded
}

test_bad_parameters() {
	local name
	for name in send_queue_size recv_queue_size; do
		check_bad "$name" 0 '128.*8192'
		check_bad "$name" 64 '128.*8192'
		check_bad "$name" 200 'power of two'
		check_bad "$name" 16384 '128.*8192'
		check_bad "$name" 4294967295 '128.*8192'
	done
	check_bad tx_queues 65 '64'
	check_bad max_connections 0 '1 to 32768'
	check_bad connection_idle 86401 '1 to 86400'
	check_refused "send_queue_size=many is refused" load_oxib send_queue_size=many
	check_refused "tx_queues=-1 is refused" load_oxib tx_queues=-1
	dmesg --clear
	check_refused "an empty name in devices= is refused" load_oxib devices=roce1,,roce2
	check "the log says what is wrong with it" kernel_log_has 'oxib: .*devices.*empty name'
}

rings_are() { # send, receive
	[ "$(current_rings)" = "$1 $2" ] || {
		ethtool -g ib0
		return 1
	}
}

current_rings() {
	ethtool -g ib0 | awk '/Current/ { now = 1 } now && $1 == "TX:" { send = $2 } now && $1 == "RX:" { receive = $2 }
		END { print send, receive }'
}

tx_queues() {
	find /sys/class/net/ib0/queues -name 'tx-*' | wc -l
}

# Load with parameters, make some checks, unload.
with_oxib() { # parameters (one word), function...
	local parameters=$1
	shift
	# shellcheck disable=SC2086 # several parameters in one word
	if load_oxib $parameters; then
		ok "it loads with $parameters"
		"$@"
		check "it unloads after $parameters" unload_oxib
	else
		not_ok "it loads with $parameters"
	fi
}

takes_rings() { # send, receive
	check "ib0 has these rings" rings_are "$1" "$2"
	check "ib0 comes up with them" ip link set ib0 up
}

takes_one_queue() {
	check_equal "ib0 has one transmit queue" 1 "$(tx_queues)"
}

test_good_parameters() {
	with_oxib "send_queue_size=128 recv_queue_size=128" takes_rings 128 128
	with_oxib "send_queue_size=8192 recv_queue_size=8192" takes_rings 8192 8192
	with_oxib "tx_queues=1" takes_one_queue
}

has_none() {
	check_equal "without a device there is no interface" 0 "$(interfaces)"
}

# The RDMA device with the GID that the interface's address carries.
device_of_ib0() {
	local gid
	gid=$(hardware_address | cut -c 13- | sed -E 's/(..):(..)/\1\2/g')
	grep -lx "$gid" /sys/class/infiniband/*/ports/1/gids/* 2>/dev/null | cut -d / -f 5 | sort -u
}

has_both() {
	check_equal "both devices have an interface" 2 "$(interfaces)"
}

has_only_second() {
	check_equal "one device has an interface" 1 "$(interfaces)"
	check_equal "it is the one that was named" roce2 "$(device_of_ib0)"
	check "oxib's ib_cm.ko can be loaded" insmod "$MODULES/ib_cm.ko"
	check "the connection manager has the one that was named" has_connection_manager roce2
	check "and leaves the other alone" has_no_connection_manager roce1
	check "ib_cm.ko can be unloaded" rmmod ib_cm
	dmesg --clear
	check "a third device appears" make_roce 3
	check_equal "it was not named, so it gets no interface" 1 "$(interfaces)"
	unmake_roce 3
}

# A port has counters of the connection manager that has its management class.
has_connection_manager() { # device
	[ -d "/sys/class/infiniband/$1/ports/1/cm_tx_msgs" ]
}

has_no_connection_manager() { # device
	[ ! -e "/sys/class/infiniband/$1/ports/1/cm_tx_msgs" ]
}

has_none_and_says_so() {
	check_equal "no device has an interface" 0 "$(interfaces)"
	check "the log warns that there is no such device" kernel_log_has 'oxib: .*(roce9.*(no|not|unknown)|(no|not|unknown).*roce9)'
}

# udev gives devices their persistent names a moment after they appear.
follows_names() {
	check_equal "no device has the name" 0 "$(interfaces)"
	check "oxib's ib_cm.ko can be loaded" insmod "$MODULES/ib_cm.ko"
	check "a device gets the name" rdma dev set roce2 name late0
	check "and an interface" eventually interfaces_are 1
	check_equal "that is its own" late0 "$(device_of_ib0)"
	check "the connection manager has it" has_connection_manager late0
	check "and leaves the other alone" has_no_connection_manager roce1
	check "it gets another name" rdma dev set late0 name roce2
	check_equal "its interface stays" 1 "$(interfaces)"
	check "it gets the name once more" rdma dev set roce2 name late0
	check_equal "and no second interface" 1 "$(interfaces)"
	check "ib_cm.ko can be unloaded" rmmod ib_cm
	rdma dev set late0 name roce2
}

# An adapter that receives no groups is no use, and the log says why.
has_only_groups() {
	check_equal "one device has an interface" 1 "$(interfaces)"
	check_equal "it is the one with groups" roce1 "$(device_of_ib0)"
	check "the log says what the other lacks" kernel_log_has 'roce2: port 1: no IPoIB interface: .*attach_mcast'
}

follows_devices() {
	check_equal "both devices have an interface" 2 "$(interfaces)"
	check "a third device appears" make_roce 3
	check_equal "it gets an interface by itself" 3 "$(interfaces)"
	check "it goes" unmake_roce 3
	check_equal "so does its interface" 2 "$(interfaces)"
	ip link set ib0 up
	ip link set ib1 up
	check "the Ethernet device of one goes while its interface is up" ip link delete veth2
	check "so does the interface" eventually interfaces_are 1
	make_roce 2
	check "both are back" eventually interfaces_are 2
}

interfaces_are() { # number
	[ "$(interfaces)" = "$1" ]
}

test_devices() {
	with_oxib "devices=roce1,roce2" has_both
	with_oxib "devices=roce2" has_only_second
	dmesg --clear
	with_oxib "devices=roce9" has_none_and_says_so
	with_oxib "devices=late0" follows_names
	dmesg --clear
	check "one device has no groups" insmod "$MODULES/selftests/ipoib/adapter/poor_adapter.ko" netdev=veth2 lacks=groups
	with_oxib "devices=roce1,roce2" has_only_groups
	check "it has again" rmmod poor_adapter
	with_oxib "tx_queues=0" follows_devices
}

# --- beside the kernel's IPoIB, which takes InfiniBand ports alone ---

# ib_ipoib takes the memory of any interface of type InfiniBand for its own.
makes_no_interface() {
	check_equal "no device has an interface" 0 "$(interfaces)"
	check "the log says what to do" kernel_log_has 'oxib: no interfaces: ib_ipoib is loaded.*modprobe -r ib_ipoib'
	check_refused "ib_ipoib makes no child of what is not there" ip link add link ib0 name child type ipoib pkey 0x8001
}

leaves_interfaces_to_others() {
	check_equal "no device has an interface with ipoib=0" 0 "$(interfaces)"
	check "ib_ipoib can be loaded beside it" modprobe ib_ipoib
	check "ib_ipoib can be unloaded" modprobe -r ib_ipoib
}

test_coexistence() {
	check "the kernel's ib_ipoib can be loaded" modprobe ib_ipoib
	dmesg --clear
	with_oxib "send_queue_size=256" makes_no_interface
	check "ib_ipoib can be unloaded after that" modprobe -r ib_ipoib
	with_oxib "ipoib=0" leaves_interfaces_to_others
	load_oxib || not_ok "oxib.ko can be loaded again"
	check_refused "ib_ipoib is not loaded while oxib has the link type ipoib" modprobe ib_ipoib
	check_equal "and takes nothing from it" 2 "$(interfaces)"
}

# --- what the module says of itself ---

test_description() {
	local field
	for field in version description author license; do
		check "modinfo has its $field" holds -n "$(modinfo -F "$field" "$MODULES/oxib.ko")"
	done
	check_equal "its license is GPL" GPL "$(modinfo -F license "$MODULES/oxib.ko")"
	for field in send_queue_size recv_queue_size tx_queues max_connections connection_idle ipoib devices; do
		check "modinfo explains $field" matches "^$field:.+" "$(modinfo -F parm "$MODULES/oxib.ko")"
	done
}

modprobe rdma_rxe
test_description
with_oxib "tx_queues=0" has_none
for number in 1 2; do
	make_roce "$number" || bail_out "soft-RoCE device $number could not be made"
done
test_bad_parameters
test_good_parameters
test_devices
test_coexistence
check "oxib.ko can be unloaded" unload_oxib
for number in 1 2; do
	ip link delete "veth$number"
done
finish
