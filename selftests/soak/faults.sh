#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# ipoib/faults with each single allocation of loading and of coming up failed in turn.
#
# nodes: 2
# kernels: debug
# timeout: 1800
# soak: yes

exec bash selftests/ipoib/faults.sh 0
