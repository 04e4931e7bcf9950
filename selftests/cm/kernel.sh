#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The kernel's own tests of soft-RoCE (tools/testing/selftests/rdma), out of the source in the cache as they are, on oxib's
# connection manager.
#
# kernel.sh [CM]: the connection manager, oxib.
#
# nodes: 1
# kernels: fast
# timeout: 200

. selftests/lib/cm.sh

cm=${1:-oxib}
tests=tools/testing/selftests/rdma

# shellcheck source=scripts/node_runner/directory.sh
. scripts/node_runner/directory.sh

# The runner gives every node the kernel's source, for scripts that mount it.
mount_source() {
	mkdir -p /tmp/source && mount_directory source /tmp/source ro
}

# Each makes its devices again, and unloads rdma_rxe at its end. One that skips says so by its status, which is no pass.
passes() { # script
	modprobe -r rdma_rxe
	timeout $((2 * patience)) "/tmp/source/$tests/$1"
}

# They give rping's server a second until it listens, which is not enough for the first one: it reads its libraries from the
# node's file system. It gets a second, and then what it needs. A fraction of a second is a poll's: there is no server.
sleep() { # seconds
	local tries
	command sleep "$1"
	[[ $1 != *.* ]] || return 0
	for ((tries = 10 * patience; tries > 0; tries--)); do
		! rdma resource show cm_id | grep -q 'state LISTEN' || return 0
		command sleep 0.1
	done
}
export -f sleep
export patience

check "the kernel's source is there" mount_source
modprobe rdma_rxe
check "the node runs the connection manager of $cm" load_cm "$cm"
number=0
while read -r script; do
	number=$((number + 1))
	check "$script" passes "$script"
	check "the connection manager is still there" runs_cm "$cm"
done < <(cd "/tmp/source/$tests" && printf '%s\n' *.sh)
check "there were all five, at least" holds "$number" -ge 5
check "it can be unloaded" unload_cm
finish
