#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What programs see of an interface and of a child, with the kernel's ib_ipoib and with oxib: sysfs, ip, ethtool, and what
# creation and changes are answered. What differs is what Documentation/admin-guide.md lists, no more and no less.
#
# nodes: 1
# kernels: fast
# timeout: 300

. selftests/lib/infiniband.sh

topologies=/tmp

child_carrier() {
	at h1 grep -q 1 /sys/class/net/child/carrier
} 2>/dev/null

child_up() {
	at h1 ip link add link ib0 name child type ipoib pkey 0x8001 && at h1 ip link set child up && eventually child_carrier
}

has_pkeys() { # host
	at "$1" sh -c "cat /sys/class/infiniband/$1/ports/1/pkeys/*" | grep -q 0x8001
}

record() {
	at h1 python3 selftests/infiniband/differences.py record ib0 child >"/tmp/record.$driver" && holds "$(wc -l <"/tmp/record.$driver")" -gt 200
}

printf '%s\n' 'star hosts=2' >/tmp/two.fabric
bring_up_fabric two h2
printf '%s\n' 'Default=0x7fff, ipoib: ALL=full;' 'blue=0x0001, ipoib: ALL=full;' >/tmp/sm.h2/partitions.conf
reread h2
check "h1 is in both partitions" eventually has_pkeys h1
for driver in ib_ipoib oxib; do
	check "$driver: it loads" load_driver "$driver"
	check "$driver: the interfaces come up" interfaces_up h1 h2
	check "$driver: a child comes up" child_up
	check "$driver: what is seen of both is written down" record
	check "$driver: it unloads" unload_driver
done
check "what differs is what the administrator's guide lists" \
	python3 selftests/infiniband/differences.py compare /tmp/record.ib_ipoib /tmp/record.oxib Documentation/admin-guide.md
cp /tmp/record.* /out/
take_down_fabric
finish
