#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Debian's kernels as packaged, of each version that was tried: what differs from their ib_ipoib is what
# Documentation/admin-guide.md lists for the version.
#
# nodes: 1
# kernels: stock
# timeout: 900
# soak: yes

. selftests/lib/node.sh

parts '1 infiniband/differences' '1 infiniband/notices'
finish
