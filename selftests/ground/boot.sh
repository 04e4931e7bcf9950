#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The ground every other test stands on: a node boots, sees its directories, and its cables carry packets.
#
# On the debug kernel it is a part of debug/ipoib, on Debian's of stock/all.
#
# nodes: 2
# kernels: fast
# timeout: 180

. selftests/lib/node.sh

root_is_writable() {
	: >/var/lib/boot-test
}

checkout_is_writable() {
	: >/oxib/boot-test
}

# As the kernel shows them: it has RCU's in any case, the others only with their detectors.
stall_limits() {
	(
		cd /sys/module || exit
		grep -H . rcupdate/parameters/rcu_cpu_stall_timeout workqueue/parameters/watchdog_thresh
		cd /proc/sys/kernel && grep -H . watchdog_thresh
	) 2>/dev/null | sed 's|/parameters/|.|; s/:/=/'
}

# All of them are those of the command line.
has_stall_limits() {
	local limits
	limits=$(stall_limits)
	matches '^rcupdate\.' "$limits" && refused grep -vxF "$(tr ' ' '\n' </proc/cmdline)" <<<"$limits"
}

check "the root can be written" root_is_writable
check_refused "the checkout cannot" checkout_is_writable
check "the kernel finds its modules" modprobe --dry-run rdma_rxe
check "the cable takes an address and MTU 9000" ethernet_up 9000
check "the kernel reports stalls as late as patience.sh says" has_stall_limits
barrier up
check "frames of 9000 bytes cross the cable" ping -c 3 -i 0.2 -W "$patience" -M do -s 8972 "10.77.0.$peer"
barrier done
finish
