#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Sequences of forged messages for longer than in every run.
#
# nodes: 1
# kernels: debug
# timeout: 1800
# soak: yes

. selftests/lib/node.sh

parts '1 infiniband/sequences 300'
finish
