#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Selftests of cm/ on the debug kernel, in one boot: it boots slowly. More is in soak/cm.
#
# nodes: 2
# kernels: debug
# timeout: 600
# memory: 2048

. selftests/lib/node.sh

parts '2 cm/programs few oxib:oxib' '2 cm/cycles oxib 300' '2 cm/load oxib 16 50 4'
finish
