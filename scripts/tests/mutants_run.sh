#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# scripts/mutants from end to end, with made-up mutants, builds and nodes. Runs in the toolchain root.

set -u

# shellcheck source=scripts/tests/unittests.bash
. scripts/tests/unittests.bash
run_unittests scripts/tests/mutants_run.py
