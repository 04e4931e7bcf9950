#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Selftests of acm/ on the debug kernel, in one boot, that debug/acm has no time for.
#
# nodes: 1
# kernels: debug
# timeout: 2400
# memory: 2048
# soak: yes

. selftests/lib/node.sh

parts '1 acm/routed' '1 acm/peers' '1 acm/routers' '1 acm/partitions'
finish
