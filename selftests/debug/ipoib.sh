#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Selftests of ipoib/ on the debug kernel, in one boot: it boots slowly. The others are soak/debug's.
#
# nodes: 2
# kernels: debug
# timeout: 300

. selftests/node.sh

parts '2 ipoib/traffic' '2 ipoib/link' '2 ipoib/namespaces'
finish
