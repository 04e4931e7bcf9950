#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# ipoib/removal, a hundred times.
#
# nodes: 2
# kernels: debug
# timeout: 1800
# soak: yes

exec bash selftests/ipoib/removal.sh 100
