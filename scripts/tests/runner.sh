#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The test runner and .ci/run, with made-up jobs: what is run again, what fails, and what is said. Runs in the toolchain root.

set -u

# shellcheck source=scripts/tests/unittests.bash
. scripts/tests/unittests.bash
run_unittests scripts/tests/runner.py
