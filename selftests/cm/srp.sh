#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# SCSI over RDMA by rdma_cm: n1 logs in to a disk of n2, writes and reads it, logs out and in again. It logs in by itself after the
# target was closed or unloaded, lost its RDMA device, or did not answer, and works while many requests are rejected.
#
# srp.sh [N1:N2...]: the connection managers of the initiator n1 and the target n2.
#
# nodes: 2
# kernels: fast
# timeout: 400

. selftests/lib/cm.sh
. selftests/lib/srp.sh

combinations=("$@")
if [ $# = 0 ]; then
	combinations=(oxib:oxib oxib:kernel kernel:oxib)
	[ "$KERNEL" != debug ] || combinations=(oxib:oxib)
fi

srp_port=5555
srp_destination=dest=$(address_of v4 2):$srp_port
# ib_srpt identifies the initiator by the source address of its own rdma_cm identifier, which is the target's address.
srp_initiators=("$(address_of v4 2)")
service=$((0x01060000 + srp_port))

make_device() {
	rdma link add rxe0 type rxe netdev eth0 && eventually rxe_is_active
}

remove_device() {
	rdma link delete rxe0
}

# Drops everything that arrives.
go_deaf() {
	tc filter add dev "$ethernet" ingress protocol ip prio 1 u32 match ip protocol 17 0xff action drop
}

hear_again() {
	tc filter delete dev "$ethernet" ingress
}

# Offsets count from the IP header, which UDP, BTH, DETH and the message follow.
drop_rtu() {
	tc filter add dev "$ethernet" ingress protocol ip prio 1 u32 match ip protocol 17 0xff match u16 4791 0xffff at 22 \
		match u32 1 0xffffff at 32 match u16 0x0014 0xffff at 64 action drop
}

has_dropped() {
	tc -s filter show dev "$ethernet" ingress | grep -Eq 'dropped [1-9]'
}

hammer() {
	PYTHONPATH=selftests/ipoib:selftests/fabric python3 selftests/cm/hammer.py "$(address_of v4 1)" "$(address_of v4 2)" "$service" 64
}

ground_up
for combination in "${combinations[@]}"; do
	test_combination
done
ground_down
finish
