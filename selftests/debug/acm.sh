#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The address cache with every check of the debug kernel: two subnets with a router between them, whose hosts change their queue
# pairs, entries and modes; peers of one subnet, of which one forges; and what comes by netlink.
#
# nodes: 1
# kernels: debug
# timeout: 3000
# memory: 2048

. selftests/parts.sh

parts '1 acm/routed' '1 acm/peers'
