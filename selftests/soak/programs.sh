#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# All of rdma-core's tests on soft-RoCE, with which softib is compared; all programs across two routers.
#
# nodes: 1
# kernels: fast
# memory: 2048
# timeout: 600
# soak: yes

. selftests/lib/node.sh

parts '1 programs/rdma_core all' '1 fabric/programs whole_chain'
finish
