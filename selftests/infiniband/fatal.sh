#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A device that fails, and works again after a while: what is below an interface that is up, below one that comes up meanwhile,
# and below one that is taken down. Each trouble is in the log once, and its end; traffic comes back by itself.
#
# Where a queue pair cannot be reset, its buffers stay with the device for good (infiniband/resets).
#
# fatal.sh [DRIVER]: of all hosts, oxib or ib_ipoib, of which not all passes: it does not come up again.
#
# nodes: 1
# kernels: fast
# timeout: 240

. selftests/lib/infiniband.sh

wanted=${1:-oxib}
failed=/sys/kernel/config/softib/hca/h2/failed

fail() { # 1|0
	printf '%d\n' "$1" >"$failed"
}

# What the driver said about h2 since the last look. What ib_core says of commands that fail is its own.
look() {
	dmesg | grep -E '\] infiniband h2: ib0: ' | tail -n "+$((seen + 1))"
}

look_anew() {
	seen=0
	seen=$(look | wc -l)
}

# Long enough for a good number of tries.
fails_for_a_while() {
	look_anew
	check "$1: h2's device fails" fail 1
	"${@:2}"
	pause 12
	note "$1: $(look | wc -l) lines: $(look)"
	check "$1: it works again" fail 0
}

comes_back() { # what
	check "$1: h2 has carrier" eventually has_carrier h2
	check "$1: h1 is reached" eventually host_answers h2 "$(v4_of h1)"
	check "$1: h1 reaches it" eventually host_answers h1 "$(v4_of h2)"
}

says_little() { # what
	[ "$driver" = oxib ] || return 0
	# Five troubles (port, start, a group, two queue pairs), and the end of two.
	check "$1: the log says so" holds "$(look | wc -l)" -ge 1
	check "$1: in few lines" holds "$(look | wc -l)" -le 7
	check_equal "$1: and each but that of a queue pair once" '' "$(look | sed 's/.*ib0: //; s/detached from .*/detached/; s/: .*//' |
		grep -v 'a queue pair cannot be reset' | sort | uniq -d)"
}

come_up_in_vain() {
	at h2 ip link set ib0 down
	[ "$driver" = ib_ipoib ] || check_refused "h2 does not come up" at h2 ip link set ib0 up
}

go_down() {
	check "h2 is taken down" at h2 ip link set ib0 down
}

load_softib || bail_out "softib.ko could not be loaded"
fabric_up star || bail_out "the fabric could not be built"
start_sm h1
load_driver "$wanted" || bail_out "$wanted could not be loaded"
check "each host has an interface with carrier" interfaces_up "${hosts[@]}"
check "h1 reaches h2" eventually host_answers h1 "$(v4_of h2)"
mkdir -p "${failed%/*}"

fails_for_a_while "while it is up"
comes_back "while it is up"
says_little "while it is up"

fails_for_a_while "while its rings are changed" check_refused "h2 gets no new rings" at h2 ethtool -G ib0 rx 1024
comes_back "while its rings are changed"
says_little "while its rings are changed"

fails_for_a_while "while it comes up" come_up_in_vain
check "h2 comes up" at h2 ip link set ib0 up
at h2 ip address replace "$(v4_of h2)/24" brd + dev ib0
comes_back "while it comes up"
says_little "while it comes up"

fails_for_a_while "while it goes down" go_down
check "h2 comes up again" at h2 ip link set ib0 up
comes_back "while it goes down"
says_little "while it goes down"

rmdir "${failed%/*}"
check "the driver can be unloaded" unload_driver
# One that was attached to groups twice could not be.
[ "$wanted" = ib_ipoib ] || check_refused "each queue pair was destroyed" kernel_log_has 'a queue pair cannot be destroyed'
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
