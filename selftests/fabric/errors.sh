#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Verbs with wrong arguments give the same errors on softib as on soft-RoCE, but for those that errors.differences lists, each
# with its reason.
#
# nodes: 1
# kernels: fast
# timeout: 120

. selftests/lib/fabric.sh

differences=selftests/fabric/errors.differences

# On a cable of its own.
make_rxe() {
	modprobe rdma_rxe && ip link add ethernet1 type veth peer name ethernet2 && ip link set ethernet1 up &&
		ip link set ethernet2 up && ip address add 10.77.0.1/24 dev ethernet1 &&
		rdma link add rxe0 type rxe netdev ethernet1 && eventually rxe_is_active
}

gid_of_v4() {
	grep -l '0000:ffff:0a4d' /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null | head -n 1 | xargs basename
}

errors_of() { # device, GID index
	timeout "$longest" "$MODULES/libsoftib/errors" "$1" "$2" >"/tmp/errors.$1" 2>&1
	grep -qx end "/tmp/errors.$1" || {
		tail -n 3 "/tmp/errors.$1"
		return 1
	}
}

# "case: softib's, soft-RoCE's", of those that differ.
found_differences() {
	awk -F ': ' 'NR == FNR { error[$1] = $2; next } $2 != error[$1] { print $1 ": " error[$1] ", " $2 }' /tmp/errors.near /tmp/errors.rxe0
}

listed_differences() {
	sed -nE 's/^([^#:]+: [0-9-]+, [0-9-]+) .*/\1/p' "$differences"
}

same_differences() {
	diff <(listed_differences | sort) <(found_differences | sort)
}

ulimit -l unlimited
modprobe ib_uverbs
bring_up_fabric devices h1
check "soft-RoCE is in the same namespace" make_rxe
check "softib gives an error, or none, in each case" errors_of near 0
check "soft-RoCE, too" errors_of rxe0 "$(gid_of_v4)"
check "the cases are many" holds "$(wc -l </tmp/errors.near)" -gt 100
check "they differ as listed" same_differences
check "soft-RoCE goes" rdma link delete rxe0
take_down_fabric
finish
