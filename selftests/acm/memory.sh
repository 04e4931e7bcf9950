#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Memory that cannot be had in the middle of a bulk load, and of single requests: all of a request happens, or nothing.
#
# memory [SAMPLES]
#
# nodes: 1
# kernels: debug
# timeout: 900

. selftests/lib/node.sh
. selftests/lib/memory.sh

# Of the allocations of each request, as many fail, spread evenly over all of them.
samples=${1:-40}

load_oxib
arm
check "a request of which an allocation fails does all or nothing" python3 selftests/acm/memory.py "$samples"
check "oxib.ko unloads" unload_oxib
finish
