#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# When nodes are booted again. Runs in the toolchain root.

set -u

# shellcheck source=scripts/tests/unittests.bash
. scripts/tests/unittests.bash
run_unittests scripts/tests/node_run.py
