#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Memory that cannot be had, each allocation of each call in turn.
#
# nodes: 2
# kernels: debug
# timeout: 7200
# memory: 2048
# soak: yes

. selftests/lib/node.sh

parts '1 fabric/faults 0' '1 infiniband/faults 0' '2 ipoib/faults 0'
finish
