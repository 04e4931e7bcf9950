#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Selftests of fabric/ on the debug kernel, in one boot: it boots slowly. The others are soak/fabric_debug's and soak/fabric's.
#
# nodes: 1
# kernels: debug
# timeout: 600
# memory: 2048

. selftests/lib/node.sh

parts '1 fabric/removal 1 short' '1 fabric/verbs'
finish
