#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Random sequences of verbs for an hour, by another seed each time, which is printed.
#
# nodes: 1
# kernels: debug
# timeout: 4800
# soak: yes

. selftests/lib/node.sh

parts '1 fabric/random_verbs 3600 random'
finish
