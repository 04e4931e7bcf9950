#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Connections on the debug kernel, 100,000 of them in turn; and what of cm/ takes too long there for every run.
#
# nodes: 2
# kernels: debug
# timeout: 10000
# memory: 3072
# soak: yes

. selftests/lib/node.sh

parts '2 cm/cycles oxib 100000' '2 cm/load oxib 64 10000' '2 cm/nvme oxib:oxib' \
	'2 cm/programs oxib:kernel kernel:oxib'
finish
