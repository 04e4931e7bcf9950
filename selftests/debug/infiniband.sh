#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Selftests of infiniband/ on the debug kernel, in one boot: it boots slowly. The others are soak/infiniband_debug's.
#
# nodes: 2
# kernels: debug
# timeout: 900
# memory: 2048

. selftests/lib/node.sh

# Of infiniband/faults a process runs all, in a job of its own.
more=()
[ "$MACHINE" = uml ] || more=('1 infiniband/faults 2 connected')
parts '2 infiniband/traffic' "${more[@]}"
finish
