#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# rdma_cm by the addresses of oxib's interfaces: NVMe over RDMA between two nodes whose HCAs an Ethernet cable joins. The target
# listens to the address of ib0, then to that of a child in the same partition: only the address tells which of the two a
# request is for. A request for an address of neither is not accepted.
#
# nodes: 2
# kernels: fast
# timeout: 400

. selftests/lib/fabric.sh
. selftests/lib/nvme.sh

# The target is where nvme.sh looks for it.
subnet=88

address_of() { # v4, node
	printf '10.%d.0.%d\n' "$subnet" "$2"
}

up() { # interface
	ip address replace "$(address_of v4 "$NODE")/24" brd + dev "$1" && ip link set "$1" up && eventually carrier_is 1 "$1"
}

test_disk() { # description
	check "$1: the host finds the target" connect
	check "$1: it writes the disk" write_all
	check "$1: it reads back what it wrote" reads_back
	check "$1: it disconnects" disconnect
}

check "n$NODE has an HCA on its cable" hca_up
barrier cabled
on_node 1 start_sm_here
check "n$NODE: its port becomes active" eventually hca_is_active
modprobe rdma_cm
check "n$NODE: oxib loads" load_oxib
check "n$NODE: ib0 appears" eventually ib_exists
check "n$NODE: it comes up" up ib0
check "n$NODE: a child in the same partition" ip link add link ib0 name c1 type ipoib
subnet=89
check "n$NODE: it comes up" up c1
barrier up
for subnet in 88 89; do
	check "n$NODE reaches the other by 10.$subnet.0.$peer" eventually answers "$(address_of v4 "$peer")"
	on_node 2 check "the target listens to 10.$subnet.0.2" export_namespace
	barrier exported
	if [ "$NODE" = 1 ]; then
		modprobe nvme_rdma
		test_disk "by 10.$subnet.0.2"
		subnet=$((177 - subnet))
		check_refused "by the other's address it is not there" connect
		subnet=$((177 - subnet))
	fi
	barrier used
	on_node 2 check "the target can go" unexport_namespace
	barrier gone
done
rmmod nvme_rdma nvmet_rdma rdma_cm iw_cm ib_cm 2>/dev/null
check "n$NODE: oxib can be unloaded" unload_oxib
barrier unloaded
stop_jobs
check "n$NODE: the HCA can go" rdma link delete hca0
check "n$NODE: softib.ko can be unloaded" unload_softib
finish
