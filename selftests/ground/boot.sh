#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The ground every other test stands on: a node boots, sees its directories, and its cables carry packets.
#
# nodes: 2
# kernels: fast debug stock
# timeout: 180

set -u

test_number=0
failures=0

check() { # description, command...
	local description=$1
	shift
	test_number=$((test_number + 1))
	if "$@"; then
		echo "ok $test_number - $description"
	else
		echo "not ok $test_number - $description"
		failures=$((failures + 1))
	fi
}

# Each node leaves a file in the shared directory and waits for the other's.
meet() {
	: >"/shared/boot.$NODE"
	until [ -e "/shared/boot.$((3 - NODE))" ]; do sleep 0.1; done
}

address_cable() {
	ip address add "192.0.2.$NODE/24" dev eth0 && ip link set eth0 mtu 9000 up
}

root_is_writable() {
	: >/var/lib/boot-test
}

guest_is_read_only() {
	! : >/oxib/boot-test
} 2>/dev/null

echo "1..6"
check "the root can be written" root_is_writable
check "the checkout cannot" guest_is_read_only
check "the kernel finds its modules" modprobe --dry-run rdma_rxe
check "the cable takes an address and MTU 9000" address_cable
check "the nodes meet" meet
check "frames of 9000 bytes cross the cable" ping -c 3 -i 0.2 -W 5 -M 'do' -s 8972 "192.0.2.$((3 - NODE))"
exit $((failures > 0))
