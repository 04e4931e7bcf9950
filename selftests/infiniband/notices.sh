#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What is said of eleven events, with the kernel's ib_ipoib and with oxib: lines of the kernel's log, and uevents. What differs is
# what Documentation/admin-guide.md lists, no more and no less. The queries at the subnet administrator are printed: on a busy
# machine each of the two drivers asks more than once.
#
# notices.sh [ROUNDS]: with several rounds, nothing is compared. They have those events alone of which the queries may be as many
# each time
#
# nodes: 1
# kernels: fast
# timeout: 600

. selftests/lib/infiniband.sh

rounds=${1:-1}
drivers=(ib_ipoib oxib)
lid=20
topologies=/tmp

# --- what is written down --------------------------------------------------------------------------------------------

listen() {
	: >/tmp/uevents
	at h1 python3 selftests/infiniband/notices.py listen >/tmp/uevents &
	jobs_running+=($!)
	eventually grep -q ready /tmp/uevents
}

# Those of h1, with either driver.
watch_sa() {
	local device
	device=$(at h1 rdma -j dev show h1 | jq '.[0].ifindex') || return
	[ -e "$tracing/trace" ] || mount -t tracefs tracefs "$tracing"
	echo "mgmt_class == 3 && dev_index == $device && method < 128" >"$sent/filter" && echo 1 >"$sent/enable"
}

marks() {
	dmesg | wc -l
	wc -l </tmp/uevents
	grep -c ib_mad_ib_send_mad "$tracing/trace"
}

# Nothing has been said for longer than either driver waits before it repeats a join that failed.
settle() {
	local last='' now still=0 deadline=$((SECONDS + patience))
	until [ "$still" = 5 ] || ((SECONDS > deadline)); do
		pause 0.3
		now=$(marks)
		if [ "$now" = "$last" ]; then
			still=$((still + 1))
		else
			last=$now still=0
		fi
	done
}

event() { # name, command...: what is said from before the command until all is quiet
	local place=/tmp/raw.$driver.$round/$1 mark
	mkdir -p "$place"
	dmesg --clear
	mark=$(wc -l </tmp/uevents)
	: >"$tracing/trace"
	check "$driver: $1" "${@:2}"
	settle
	dmesg -t >"$place/log"
	tail -n +$((mark + 1)) /tmp/uevents >"$place/uevents"
	grep ib_mad_ib_send_mad "$tracing/trace" >"$place/queries"
	return 0
}

# One that is sent again, as no answer came in time, is one.
joins() { # event
	grep -E 'method 0x2 .*attr_id 0x38 ' "/tmp/raw.$driver.$round/$1/queries" | grep -oE ' tid 0x[0-9a-f]+' | sort -u | wc -l
}

all_hosts() { # command...
	local host
	for host in "${hosts[@]}"; do
		at "$host" "$@" || return
	done
}

# --- partitions and the subnet manager -------------------------------------------------------------------------------

write_partitions() { # flag of the default partition, members of blue
	printf '%s\n' "Default=0x7fff, ipoib$1: ALL=full;" "blue=0x0001, ipoib: $2;" 'red=0x0005: ALL=full;' \
		>/tmp/sm.h2/partitions.conf
}

has_pkey() { # P_Key
	at h1 sh -c "cat /sys/class/infiniband/h1/ports/1/pkeys/*" | grep -q "$1"
}

has_no_pkey() { # P_Key
	! has_pkey "$1"
}

manager_left() {
	stop_sm h2
	settle
	start_sm h2
	eventually master_is h1 h2
}

renew_sm() { # flag of the default partition
	stop_sm h2 && write_partitions "$1" ALL=full && start_sm h2
}

other_lid() { # LID
	stop_sm h2
	give_lid h2 h1 "$1"
	start_sm h2 'honor_guid2lid_file TRUE'
	eventually lid_is h1 "$1" && eventually has_carrier h1
}

# --- events ----------------------------------------------------------------------------------------------------------

carrier_of() { # interface of h1
	at h1 grep -q 1 "/sys/class/net/$1/carrier"
} 2>/dev/null

loaded() {
	load_driver "$driver" && eventually has_interface h1
}

goes_down() {
	at h1 ip link set ib0 down
}

change_modes() {
	local mode
	for mode in connected datagram; do
		at h1 sh -c "echo $mode >/sys/class/net/ib0/mode" && eventually has_carrier h1 || return
	done
}

add_child() { # name, P_Key
	at h1 ip link add link ib0 name "$1" type ipoib pkey "$2" && at h1 ip link set "$1" up
}

child_comes_and_goes() {
	add_child child 0x8001 && eventually carrier_of child && settle && at h1 ip link delete child
}

child_is_refused() {
	add_child refused 0x8005 && eventually kernel_log_has 'refused: (multicast join failed|port 1 cannot join)' &&
		at h1 ip link delete refused
}

mtu_is() { # number
	equal "$1" "$(mtu_of h1)"
}

# An MTU that the group does not allow yet.
group_grows() {
	at h1 ip link set ib0 mtu 4092 && renew_sm ', mtu=5'
	eventually mtu_is 4092
}

pkey_goes() {
	write_partitions '' "$(port_guid h2)=full"
	reread h2
	eventually has_no_pkey 0x8001 && eventually refused carrier_of child
}

unloaded() {
	rmmod "$driver"
}

test_subnet() {
	event refused child_is_refused
	event mtu group_grows
	check "$driver: the group is made anew, as it was" renew_sm ''
	check "$driver: so is the MTU" eventually mtu_is 2044
	check "$driver: a child in blue" add_child child 0x8001
	check "$driver: it has carrier" eventually carrier_of child
	settle
	event pkey pkey_goes
	write_partitions '' ALL=full
	reread h2
	check "$driver: the P_Key is back" eventually has_pkey 0x8001
	check "$driver: the child has carrier" eventually carrier_of child
	check "$driver: it goes" at h1 ip link delete child
	settle
	event sm manager_left
	lid=$((lid + 1))
	event lid other_lid "$lid"
	check "$driver: h1 reaches h2" eventually host_reaches h1 "$(v4_of h2)"
	settle
}

test_driver() {
	event loaded loaded
	event up interfaces_up h1
	check "$driver: h2 comes up" interfaces_up h2
	check "$driver: h1 reaches it" eventually host_reaches h1 "$(v4_of h2)"
	settle
	event mode change_modes
	# A membership to send is renewed with the address handle that it belongs to; those of groups that are heard stay.
	check "$driver: the SA is asked no more than by an interface that comes up" holds "$(joins mode)" -le "$(joins up)"
	event child child_comes_and_goes
	[ "$rounds" != 1 ] || test_subnet
	event down goes_down
	check "$driver: h1 comes up again" interfaces_up h1
	settle
	event unloaded unloaded
	# With the kernel's driver came its connection manager.
	modprobe -r ib_ipoib ib_cm
}

printf '%s\n' 'star hosts=2' >/tmp/two.fabric
bring_up_fabric two h2
write_partitions '' ALL=full
reread h2
# What a failure writes into the log is no event's.
explain_failure() {
	return 0
}

# The stack asks for routers several times, seconds apart, and joins their group when it does.
check "nobody asks for routers" all_hosts sysctl -qw net.ipv6.conf.default.router_solicitations=0
check "h1 is in blue" eventually has_pkey 0x8001
check "h1 is in red" eventually has_pkey 0x8005
check "uevents are heard" listen
check "queries are watched" watch_sa
for ((round = 1; round <= rounds; round++)); do
	for driver in "${drivers[@]}"; do
		test_driver
	done
done
cp -r /tmp/raw.* /out/
for driver in "${drivers[@]}"; do
	note "$driver: $(python3 selftests/infiniband/notices.py queries /tmp/raw."$driver".*)"
done
if [ "$rounds" = 1 ]; then
	for driver in "${drivers[@]}"; do
		check "$driver: what was said is read" python3 selftests/infiniband/notices.py record "/tmp/raw.$driver.1" "/out/record.$driver"
	done
	check "what differs is what the administrator's guide lists" \
		python3 selftests/infiniband/differences.py compare /out/record.ib_ipoib /out/record.oxib Documentation/admin-guide.md event
fi
take_down_fabric
finish
