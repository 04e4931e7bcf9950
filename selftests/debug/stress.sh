#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What is hard on ipoib, on the debug kernel, in one boot.
#
# nodes: 2
# kernels: debug
# timeout: 300

. selftests/node.sh

parts '2 ipoib/removal 10'
finish
