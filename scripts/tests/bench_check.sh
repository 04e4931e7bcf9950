#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The check of the benchmark's results. Runs in the toolchain root.

set -u

# shellcheck source=scripts/tests/unittests.bash
. scripts/tests/unittests.bash
run_unittests scripts/tests/bench_check.py
