#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What of infiniband/ the debug kernel takes too long for in every run; debug/infiniband has the rest. Children in connected mode
# are oxib's alone: those of the kernel's driver use memory that they have freed.
#
# nodes: 2
# kernels: debug
# timeout: 3600
# memory: 2048
# soak: yes

. selftests/lib/node.sh

parts '2 infiniband/connected' '2 infiniband/traffic oxib ib_ipoib' '2 infiniband/connected ib_ipoib oxib' \
	'2 infiniband/children oxib oxib' '2 infiniband/rdma_cm' '1 infiniband/events' '1 infiniband/destinations' '1 infiniband/offload' \
	'1 infiniband/dhcp' '1 infiniband/partitions' '1 infiniband/configuration'
finish
