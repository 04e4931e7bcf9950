#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Memory that cannot be had in the middle of a bulk load, and of single requests: all of a request happens, or nothing.
#
# nodes: 1
# kernels: debug
# timeout: 900

. selftests/node.sh
. selftests/memory.sh

load_oxib
arm
check "a request of which an allocation fails does all or nothing" python3 selftests/acm/memory.py 40
check "oxib.ko unloads" unload_oxib
finish
