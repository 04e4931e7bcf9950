# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What scripts of infiniband/ are written with, besides infiniband.sh: interfaces with a child each, in one mode or the other, and
# traffic by both. The subnet manager is h1's.

# shellcheck source=selftests/lib/infiniband.sh
. selftests/lib/infiniband.sh

# What scripts put interfaces into.
mode=datagram

# The child is in the partition 0x8001, of which the hosts are members; the default one has all.
write_blue() { # host...
	local host list=
	for host in "$@"; do
		list+=", $(port_guid "$host")=full"
	done
	printf '%s\n' 'Default=0x7fff, ipoib: ALL=full;' "blue=0x0001, ipoib: ${list#, };" >/tmp/sm.h1/partitions.conf
	kill -HUP "${sm_processes[h1]}"
}

child_of() { # host
	printf '10.90.0.%d\n' "$(host_number "$1")"
}

set_mode() { # host, datagram|connected
	at "$1" sh -c "echo $2 >/sys/class/net/ib0/mode"
}

child_has_carrier() { # host
	at "$1" grep -q 1 /sys/class/net/blue/carrier
} 2>/dev/null

# Both of a host, in $mode.
host_up() { # host
	interface_up "$1" && set_mode "$1" "$mode" || return
	if ! at "$1" test -e /sys/class/net/blue; then
		at "$1" ip link add link ib0 name blue type ipoib pkey 0x8001 mode "$mode" || return
	fi
	at "$1" sh -c "echo $mode >/sys/class/net/blue/mode" && at "$1" ip address replace "$(child_of "$1")/24" brd + dev blue &&
		at "$1" ip link set blue up && eventually has_carrier "$1" && eventually child_has_carrier "$1"
}

# Everything comes and goes, until stop_jobs.
storm() { # host, host
	local from to pause=0.02
	[ "$KERNEL" != debug ] || pause=0.05
	for from in "$1" "$2"; do
		to=$1
		[ "$from" != "$1" ] || to=$2
		in_background_at "$from" nice -n 10 python3 selftests/ipoib/storm.py "$(v4_of "$to")" "$(v6_of "$to")" "$pause"
		in_background_at "$from" nice -n 10 ping -q -i 0.01 -s 1500 "$(child_of "$to")"
	done
}

# h2 and h3 reach each other, by both.
works() {
	eventually host_answers h2 "$(v4_of h3)" && eventually host_answers h3 "$(v6_of h2)" &&
		eventually host_answers h2 "$(child_of h3)" -s 1500
}
