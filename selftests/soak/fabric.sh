#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A hundred fabrics are made and deleted under traffic, and namespaces end while their HCAs are deleted, many times.
#
# nodes: 1
# kernels: fast debug
# timeout: 3600
# memory: 2048
# soak: yes

. selftests/lib/node.sh

parts '1 fabric/storm 100' '1 fabric/removal 30'
finish
