#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# oxib in one node, the kernel's driver in the other, on one fabric, in both modes.
#
# nodes: 2
# kernels: fast
# timeout: 600

. selftests/lib/node.sh

parts '2 infiniband/traffic oxib ib_ipoib' '2 infiniband/connected ib_ipoib oxib' '2 infiniband/children oxib ib_ipoib'
finish
