#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Selftests of acm/ on the debug kernel, in one boot: it boots slowly. The others are soak/acm_debug's.
#
# nodes: 1
# kernels: debug
# timeout: 900
# memory: 2048

. selftests/lib/node.sh

# Of acm/memory a process runs all, in a job of its own.
more=()
[ "$MACHINE" = uml ] || more=('1 acm/memory 4')
parts '1 acm/routed short' "${more[@]}"
finish
