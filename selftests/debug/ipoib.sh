#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The ground and selftests of ipoib/ on the debug kernel, in one boot: it boots slowly. The others are soak/debug's.
#
# nodes: 2
# kernels: debug
# timeout: 500

. selftests/lib/node.sh

parts '2 ground/boot' '2 ipoib/traffic' '2 ipoib/removal 10'
finish
