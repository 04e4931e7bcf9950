#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What scripts/mutants takes for a test that has failed. Runs in the toolchain root.

set -u

# shellcheck source=scripts/tests/unittests.bash
. scripts/tests/unittests.bash
run_unittests scripts/tests/mutant_trial.py
