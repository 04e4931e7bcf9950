#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# ipoib/removal on the debug kernel, a hundred times each of its three events.
#
# nodes: 2
# kernels: debug
# timeout: 3600
# soak: yes

. selftests/node.sh

parts '2 ipoib/removal 300'
finish
