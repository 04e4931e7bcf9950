#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# ipoib/removal: a hundred of its events, one after the other.
#
# nodes: 2
# kernels: fast debug
# timeout: 3600
# soak: yes

. selftests/lib/node.sh

parts '2 ipoib/removal 100'
finish
