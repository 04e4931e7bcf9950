#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Selftests of fabric/ on the debug kernel, in one boot: it boots slowly.
#
# nodes: 1
# kernels: debug
# timeout: 600
# memory: 2048

. selftests/node.sh

parts '1 fabric/removal 1' '1 fabric/storm 3' '1 fabric/verbs' '1 fabric/bringup star'
finish
