#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# One test of each subject on Debian's kernel, in a machine, with less to do than where nodes are processes: in one boot, as it boots
# slowly.
#
# nodes: 2
# kernels: stock
# timeout: 900

. selftests/lib/node.sh

parts '1 fabric/bringup star' '2 ipoib/traffic short' '2 infiniband/connected oxib oxib short' '2 cm/programs few oxib:oxib' \
	'1 acm/routed short'
finish
