#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What of fabric/ the debug kernel takes too long for in every run; debug/fabric has the rest. Memory that fails is
# fabric/faults', a hundred fabrics are soak/fabric's.
#
# nodes: 2
# kernels: debug
# timeout: 1800
# memory: 2048
# soak: yes

. selftests/lib/node.sh

# NVMe first: the first node waits for the second in that alone.
parts '2 fabric/nvme' '1 fabric/ipoib' '1 fabric/partitions' '1 fabric/handover' '1 fabric/malformed' '1 fabric/offload' \
	'1 fabric/router' '1 fabric/routes' '1 fabric/peers' '1 fabric/configuration' '1 fabric/documentation' \
	'1 fabric/bringup pair star fattree two_ports routed' '1 fabric/topology' '1 fabric/storm 3'
finish
