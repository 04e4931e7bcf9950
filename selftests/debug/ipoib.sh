#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The selftests of ipoib/ on the debug kernel, in one boot: it boots slowly.
#
# nodes: 3
# kernels: debug
# timeout: 300

. selftests/node.sh

parts '2 ipoib/traffic' '2 ipoib/link' '2 ipoib/namespaces' '2 ipoib/malformed' '1 ipoib/load' '3 ipoib/multicast'
finish
