#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# NVMe over RDMA between two nodes whose HCAs an Ethernet cable joins, with the kernel's connection manager on the kernel's
# IP over InfiniBand: what is written is read back, also over a cable that loses one packet of a hundred.
#
# nodes: 2
# kernels: fast
# timeout: 400

. selftests/lib/fabric.sh
. selftests/lib/nvme.sh

# The target is where nvme.sh looks for it.
address_of() { # v4, node
	printf '10.88.0.%d\n' "$2"
}

interface_up() {
	modprobe -a ib_ipoib rdma_cm && ip address add "$(address_of v4 "$NODE")/24" brd + dev ib0 && ip link set ib0 up &&
		eventually carrier_is 1
}

test_disk() { # description
	check "$1: the host finds the target" connect
	check "$1: it writes the disk" write_all
	check "$1: it reads back what it wrote" reads_back
	check "$1: it disconnects" disconnect
	check "$1: it connects again" connect
	check "$1: the disk is as it was" reads_back
	check "$1: it disconnects in the end" disconnect
}

check "n$NODE has an HCA on its cable" hca_up
barrier cabled
on_node 1 start_sm_here
check "n$NODE: its port becomes active" eventually hca_is_active
check "n$NODE: its interface comes up" interface_up
barrier up
check "n$NODE reaches the other" eventually answers "$(address_of v4 "$peer")"
on_node 2 check "the target is set up" export_namespace
barrier exported
on_node 1 modprobe nvme_rdma
on_node 1 test_disk "a good cable"
barrier lossy
check "n$NODE: the cable becomes a bad one" tc qdisc replace dev eth0 root netem loss 1% limit 10000
barrier worse
on_node 1 test_disk "1 % of loss"
barrier done
check "n$NODE: the cable has lost packets" has_lost eth0
tc qdisc delete dev eth0 root
on_node 2 check "the target can go" unexport_namespace
barrier gone
stop_jobs
rmmod nvme_rdma nvmet_rdma rdma_cm iw_cm ib_ipoib ib_cm 2>/dev/null
check "n$NODE: the HCA can go" rdma link delete hca0
check "n$NODE: softib.ko can be unloaded" unload_softib
finish
