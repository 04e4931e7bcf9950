#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Adapters of all kinds, and SCSI over RDMA on both kinds of link, on the debug kernel.
#
# nodes: 2
# kernels: debug
# timeout: 3600
# memory: 2048
# soak: yes

. selftests/lib/node.sh

parts '2 infiniband/adapters' '2 infiniband/srp' '2 cm/srp'
finish
