#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# SCSI over RDMA on InfiniBand, where ib_srp and ib_srpt use the connection manager without rdma_cm: the steps of cm/srp.
#
# srp.sh [N1:N2...]: the connection managers of the initiator n1 and the target n2.
#
# nodes: 2
# kernels: fast
# timeout: 400

. selftests/lib/cm.sh
. selftests/lib/fabric.sh
. selftests/lib/cable.sh
. selftests/lib/srp.sh

combinations=("$@")
if [ $# = 0 ]; then
	combinations=(oxib:oxib oxib:kernel kernel:oxib)
	[ "$KERNEL" != debug ] || combinations=(oxib:oxib)
fi

# The target rejects these requests if their senders do not: they carry no login.
hammer() {
	hammer_service "0x$srp_guid" 64 00
}

cable_up
# shellcheck disable=SC2034 # srp.sh's
srp_device=hca0 srp_needs_rtu=
# shellcheck disable=SC2034 # srp.sh's
srp_destination="dgid=fe80000000000000$(told guid 2 | tr -d :),pkey=ffff,service_id=$srp_guid"
# shellcheck disable=SC2034 # srp.sh's
srp_initiators=("$(told guid 1)")
for combination in "${combinations[@]}"; do
	test_combination
done
cable_down
finish
