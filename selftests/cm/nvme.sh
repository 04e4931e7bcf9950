#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# NVMe over RDMA: n2 exports a namespace in memory, n1 writes to it and reads it back, disconnects and connects again, and
# finds it again by itself after its port had been closed, and after the whole target had been unloaded.
#
# nvme.sh [N1:N2...]: the connection managers of the host n1 and the target n2.
#
# nodes: 2
# kernels: fast
# timeout: 300

. selftests/lib/cm.sh
. selftests/lib/nvme.sh

combinations=("$@")
[ $# -gt 0 ] || combinations=(oxib:oxib oxib:kernel kernel:oxib)

# --- what is tested ------------------------------------------------------------------------------------------------------

test_use() {
	check "$combination: the host finds the target" connect
	check "$combination: it writes the disk" write_all
	check "$combination: it reads back what it wrote" reads_back
	check "$combination: it disconnects" disconnect
	check "$combination: it connects again" connect
	check "$combination: the disk is as it was" reads_back
}

# Both nodes: n2 lets its target vanish and come back, n1 watches.
vanishes() { # description, command to vanish, command to come back
	on_node 2 check "$combination: $1" "$2"
	on_node 1 check "$combination: the host notices: $1" eventually controller_is connecting
	barrier noticed
	on_node 2 check "$combination: it comes back" "$3"
	on_node 1 check "$combination: the host is connected again after that" eventually controller_is live
	on_node 1 check "$combination: and the disk is as it was" reads_back
	barrier back
}

test_combination() {
	local mine=${combination%:*}
	[ "$NODE" = 1 ] || mine=${combination#*:}
	check "$combination: n$NODE runs the connection manager of $mine" load_cm "$mine"
	on_node 1 modprobe nvme_rdma
	on_node 2 check "$combination: the target is set up" export_namespace
	barrier exported
	on_node 1 test_use
	barrier used
	vanishes "the target's port is closed" close_port open_port
	vanishes "the target is unloaded" unload_target export_namespace
	on_node 1 check "$combination: the host disconnects in the end" disconnect
	barrier disconnected
	on_node 2 check "$combination: the target can go" unexport_namespace
	check "$combination: n$NODE can unload it" unload_cm
	barrier unloaded
}

ground_up
for combination in "${combinations[@]}"; do
	test_combination
done
ground_down
finish
