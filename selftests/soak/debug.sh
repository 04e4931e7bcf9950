#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the debug kernel takes too long for in every run: the rest of ipoib/.
#
# nodes: 3
# kernels: debug
# timeout: 900
# soak: yes

. selftests/lib/node.sh

parts '2 ipoib/link' '2 ipoib/namespaces' '2 ipoib/malformed' '2 ipoib/adapters' '1 ipoib/load' '3 ipoib/multicast'
finish
